import { ResponseError } from "./callerrors.js";
import { QuittanceError } from "./error.js";

/**
 * The number of events remembered for a position: they are not returned again after the service's database was
 * restored.
 */
export const maxRecentEvents = 10_000;
/** The number of positions for which events are remembered. */
const maxPositions = 16;
/** The maximum number of consecutive answers that the log cannot be continued from a position. */
const maxMoves = 8;

/**
 * Events after the requested position were removed before they were requested. They cannot be retrieved any more:
 * compare with the lists of invoices and payments.
 */
export class EventsLostError extends QuittanceError {
  override readonly name = "EventsLostError";
  /** The position at which the remaining events begin: streamEvents and eventsAfter continue there. */
  readonly position: string;

  constructor(position: string, detail: string | undefined) {
    super(`events are lost: ${detail}`);
    this.position = position;
  }
}

/** Follows a log that cannot be continued from the requested positions. */
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

  /** Records that the log continued. */
  reset(): void {
    this.#made = 0;
  }
}

/** The ids of the last events that a caller got. */
export class Recent {
  #before = new Set<string>(); // the last events before the log was interrupted: these may come again
  #ids = new Set<string>(); // in order
  readonly #always: boolean;

  /** always means that no event may come twice, for a list that may begin again. */
  constructor(always = false) {
    this.#always = always;
  }

  /** Records that the log could not be continued from a position. */
  move(): void {
    if (this.#before.size > maxRecentEvents) {
      this.#before = new Set();
    }
    this.#ids.forEach((id) => this.#before.add(id));
  }

  /** Records an event. Returns whether the caller got it before the log was interrupted. */
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

/** The events that callers got before their last positions. */
export class Positions {
  #all = new Map<string, Recent>(); // the oldest position first

  /** Returns and forgets the events of the caller who continues from a position. */
  take(position: string): Recent {
    const got = this.#all.get(position);
    this.#all.delete(position);
    return got === undefined || position === "start" || position === "end" ? new Recent() : got;
  }

  /** Remembers the events that a caller got before a position. */
  put(position: string, got: Recent): void {
    this.#all.delete(position);
    this.#all.set(position, got);
    if (this.#all.size > maxPositions) {
      const [oldest] = this.#all.keys();
      this.#all.delete(oldest!);
    }
  }
}
