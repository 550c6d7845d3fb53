/**
 * Loaded twice, installed and through `-e` for example: pi refuses to start when two extensions register
 * the same flag, and one gate is enough, so the second copy does nothing. The copies find each other over pi's event bus, which
 * extensions of one load share; a process-wide mark would also be seen by sub-agents in the same process,
 * which need a gate of their own.
 */

/** What is needed of `pi.events`. */
export interface Bus {
  emit(channel: string, data: unknown): void;
  on(channel: string, handler: (data: unknown) => void): unknown;
}

const CHANNEL = "portcullis:copies";

interface Inquiry {
  /** The session_start event the asker has seen, if it asks about that. */
  start?: unknown;
  present: boolean;
  started: boolean;
}

/** Returns whether another copy serves this load, or started with this very event. */
export function inquire(bus: Bus, start?: unknown): { present: boolean; started: boolean } {
  const inquiry: Inquiry = { present: false, started: false, ...(start === undefined ? {} : { start }) };
  bus.emit(CHANNEL, inquiry);
  return inquiry;
}

/** Answers for this copy until the returned `leave` is called. */
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
