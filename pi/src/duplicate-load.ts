/**
 * Detects a second copy of the extension, for example one that is installed and one from `-e`: pi refuses to start when
 * two extensions register the same flag, and one gate is enough, so the second copy does nothing. The copies find each
 * other over pi's event bus, which the extensions of one load share. A mark for the whole process would also be seen by
 * sub-agents in the same process, which need a gate of their own.
 */

/** The part of `pi.events` that is used. */
export interface Bus {
  emit(channel: string, data: unknown): void;
  on(channel: string, handler: (data: unknown) => void): unknown;
}

const CHANNEL = "portcullis:copies";

interface Inquiry {
  /** The session_start event that the asking copy has got, if its inquiry is about that event. */
  start?: unknown;
  present: boolean;
  started: boolean;
}

/** Returns whether another copy is present in this load, and whether it started with this very event. */
export function inquire(bus: Bus, start?: unknown): { present: boolean; started: boolean } {
  const inquiry: Inquiry = { present: false, started: false, ...(start === undefined ? {} : { start }) };
  bus.emit(CHANNEL, inquiry);
  return inquiry;
}

/** Answers inquiries for this copy until the returned `leave` is called. */
export function announce(bus: Bus): { started(event: unknown): void; leave(): void } {
  let here = true;
  let start: unknown;
  const unsubscribe = bus.on(CHANNEL, (data) => {
    const inquiry = data as Inquiry;
    if (!here) return;
    inquiry.present = true;
    inquiry.started ||= start !== undefined && inquiry.start === start;
  });
  return {
    started: (event) => { start = event; },
    leave: () => {
      here = false;
      start = undefined;
      if (typeof unsubscribe === "function") unsubscribe();
    },
  };
}
