/**
 * Tells whether a file can be run on this machine. The C library gives anything that the kernel refuses to a shell, which
 * then says strange things.
 */
import { closeSync, fstatSync, openSync, readSync } from "node:fs";

/** The processors of ELF files, by Node's names. */
const MACHINES: Readonly<Record<string, number>> = { x64: 62, arm64: 183 };
/** The length of the header of a 64-bit ELF file. */
const HEADER = 64;

/** Returns true for a script, and for a whole ELF file for the processor `arch`. */
export function isForThisMachine(path: string, arch: string): boolean {
  const file = openSync(path, "r");
  try {
    const head = Buffer.alloc(HEADER);
    const length = readSync(file, head, 0, HEADER, 0);
    if (head.toString("latin1", 0, 2) === "#!") return true;
    if (length < HEADER || head.toString("latin1", 0, 4) !== "\x7fELF") return false;
    const machine = head.readUInt16LE(18);
    return (MACHINES[arch] ?? machine) === machine && fstatSync(file).size >= end(head);
  } finally {
    closeSync(file);
  }
}

/** Returns the end of the table of sections, which is the last part of a file. */
function end(head: Buffer): number {
  return Number(head.readBigUInt64LE(40)) + head.readUInt16LE(58) * head.readUInt16LE(60);
}
