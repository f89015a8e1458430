import { ResponseError } from "./callerrors.js";
import { QuittanceError } from "./error.js";

/** How many events are remembered behind a position: they are not given again after the service's database was restored. */
export const maxRecentEvents = 10_000;
/** For how many positions events are remembered. */
const maxPositions = 16;
/** How many answers in a row may say that the log does not continue from a position. */
const maxMoves = 8;

/**
 * The service did not keep the events behind a position until they were asked for. They cannot be had any more: compare
 * with the lists of invoices and payments.
 */
export class EventsLostError extends QuittanceError {
  override readonly name = "EventsLostError";
  /** Where the events that are left begin: streamEvents and eventsAfter continue there. */
  readonly position: string;

  constructor(position: string, detail: string | undefined) {
    super(`events are lost: ${detail}`);
    this.position = position;
  }
}

/** Follows a log that does not continue from the positions that were asked for. */
export class Moves {
  #made = 0;

  /** Returns the position from which to continue after an error. Otherwise it throws the error, or an EventsLostError. */
  from(error: unknown): string {
    if (!(error instanceof ResponseError) || error.code !== "cursor_gone" || !error.after) {
      throw error;
    }
    if (error.reason === "removed") {
      throw new EventsLostError(error.after, error.detail);
    }
    if (++this.#made > maxMoves) {
      throw error;
    }
    return error.after;
  }

  /** Notes that the log continued. */
  reset(): void {
    this.#made = 0;
  }
}

/** The ids of the events that a caller got last. */
export class Recent {
  #before = new Set<string>(); // what it got last before the log did not continue: these may come again
  #ids = new Set<string>(); // in their order
  readonly #always: boolean;

  /** always says that no event may come again: those of a list that may begin again. */
  constructor(always = false) {
    this.#always = always;
  }

  /** Notes that the log did not continue from a position. */
  move(): void {
    if (this.#before.size > maxRecentEvents) {
      this.#before = new Set();
    }
    this.#ids.forEach((id) => this.#before.add(id));
  }

  /** Notes an event. Returns whether the caller got it before the log did not continue. */
  repeats(id: string): boolean {
    if (this.#before.has(id) || (this.#always && this.#ids.has(id))) {
      return true;
    }
    this.#ids.add(id);
    if (this.#ids.size > maxRecentEvents) {
      const [oldest] = this.#ids;
      this.#ids.delete(oldest!);
    }
    return false;
  }
}

/** What callers got before the positions that they were given last. */
export class Positions {
  #all = new Map<string, Recent>(); // the one that was given longest ago first

  /** Returns what the caller got who continues from a position, and forgets it. */
  take(position: string): Recent {
    const got = this.#all.get(position);
    this.#all.delete(position);
    return got === undefined || position === "start" || position === "end" ? new Recent() : got;
  }

  /** Remembers what a caller got before a position. */
  put(position: string, got: Recent): void {
    this.#all.delete(position);
    this.#all.set(position, got);
    if (this.#all.size > maxPositions) {
      const [oldest] = this.#all.keys();
      this.#all.delete(oldest!);
    }
  }
}
