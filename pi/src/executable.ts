/**
 * Tells whether a file can be run on this machine. The C library gives anything that the kernel refuses to a shell, which
 * then says strange things.
 */
import { closeSync, fstatSync, openSync, readSync } from "node:fs";

/** The processors of ELF files (Linux) and of Mach-O files (macOS), by Node's names. */
const ELF_MACHINES: Readonly<Record<string, number>> = { x64: 62, arm64: 183 };
const MACHO_MACHINES: Readonly<Record<string, number>> = { x64: 0x01000007, arm64: 0x0100000c };
/** The length of the header of a 64-bit ELF file. */
const ELF_HEADER = 64;
const MACHO_MAGIC = 0xfeedfacf;
const MACHO_HEADER = 32;
/** The most bytes of load commands that are read; programs have a few thousand. */
const COMMANDS_MAX = 64 * 1024;
/** The command `LC_SEGMENT_64`, and its length without sections. */
const SEGMENT = 0x19;
const SEGMENT_LENGTH = 72;

/** Returns true for a script, and for a whole program for this system and processor. */
export function isForThisMachine(path: string, { platform, arch }: { platform: string; arch: string }): boolean {
  const file = openSync(path, "r");
  try {
    const buffer = Buffer.alloc(MACHO_HEADER + COMMANDS_MAX);
    const head = buffer.subarray(0, readSync(file, buffer, 0, buffer.length, 0));
    if (head.toString("latin1", 0, 2) === "#!") return true;
    const end = platform === "darwin" ? endOfMachO(head, arch) : endOfElf(head, arch);
    return end !== undefined && fstatSync(file).size >= end;
  } finally {
    closeSync(file);
  }
}

/** Returns the end of the table of sections, which is the last part of an ELF file; nothing for another file. */
function endOfElf(head: Buffer, arch: string): number | undefined {
  if (head.length < ELF_HEADER || head.toString("latin1", 0, 4) !== "\x7fELF") return undefined;
  const machine = head.readUInt16LE(18);
  if ((ELF_MACHINES[arch] ?? machine) !== machine) return undefined;
  return Number(head.readBigUInt64LE(40)) + head.readUInt16LE(58) * head.readUInt16LE(60);
}

/** Returns the end of the last segment of a Mach-O file; nothing for another file. */
function endOfMachO(head: Buffer, arch: string): number | undefined {
  if (head.length < MACHO_HEADER || head.readUInt32LE(0) !== MACHO_MAGIC) return undefined;
  const machine = head.readUInt32LE(4);
  if ((MACHO_MACHINES[arch] ?? machine) !== machine) return undefined;
  let end = 0;
  let at = MACHO_HEADER;
  for (let left = head.readUInt32LE(16); left > 0; left--) {
    if (at + 8 > head.length) return undefined;
    const length = head.readUInt32LE(at + 4);
    if (length < 8 || at + length > head.length) return undefined;
    if (head.readUInt32LE(at) === SEGMENT && length >= SEGMENT_LENGTH) {
      end = Math.max(end, Number(head.readBigUInt64LE(at + 40) + head.readBigUInt64LE(at + 48)));
    }
    at += length;
  }
  return end;
}
