/** The refusals of a pi without an interface, which shows them on standard error. */
import { refusedLine, refusedSummary } from "./messages.ts";
import type { EventNotification } from "./protocol.ts";

/** Lines are not printed beyond this number, but counted. */
const MOST_LINES = 50;

type Refused = Extract<EventNotification, { kind: "refused" }>;

export class Refusals {
  readonly #print: (line: string) => void;
  readonly #lines = new Set<string>();
  #count = 0;
  #unasked = 0;
  #fails = false;

  constructor(print: (line: string) => void) {
    this.#print = print;
  }

  /** Whether pi has to end with a status other than 0. */
  get fails(): boolean {
    return this.#fails;
  }

  /** Counts a refusal, and prints it unless the same line was printed before. */
  add(refused: Refused): void {
    this.#count += 1;
    if (refused.unasked) this.#unasked += 1;
    this.#fails ||= refused.fails;
    const line = refusedLine(refused.text);
    if (this.#lines.has(line) || this.#lines.size >= MOST_LINES) return;
    this.#lines.add(line);
    this.#print(line);
  }

  /** Prints the summary, if something was refused, and forgets everything. */
  end(): void {
    if (this.#count > 0) this.#print(refusedSummary(this.#count, this.#unasked, this.#fails));
    this.#lines.clear();
    [this.#count, this.#unasked, this.#fails] = [0, 0, false];
  }
}
