/** The longest delay of a timer, in milliseconds. Timers with longer delays fire immediately. */
const maxTimerMs = 2 ** 31 - 1;

/**
 * Ends a wait when a caller's signal is aborted, or when its time is over. Its timer and the promise of the call keep
 * it alive. Signals that only follow each other do not: a Request, and fetch with it, follows its signal only until a
 * garbage collection.
 */
export class Watch {
  readonly #controller = new AbortController();
  readonly #parent: AbortSignal | undefined;
  readonly #end = () => this.#controller.abort(this.#parent?.reason);
  readonly #late: () => void;
  readonly #ms: number;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** late makes the error for a timeout after ms milliseconds. */
  constructor(parent: AbortSignal | undefined, ms: number, late: () => Error) {
    this.#parent = parent;
    this.#ms = ms;
    this.#late = () => this.#controller.abort(late());
    parent?.addEventListener("abort", this.#end, { once: true });
    if (parent?.aborted) {
      this.#end();
    }
    this.restart();
  }

  /** The signal to pass to fetch. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Restarts the time. */
  restart(): void {
    this.pause();
    if (this.#ms <= maxTimerMs) {
      this.#timer = setTimeout(this.#late, this.#ms);
    }
  }

  /** Stops the time. */
  pause(): void {
    clearTimeout(this.#timer);
  }

  /** Waits for a promise, or throws the reason why the watch ended. */
  wait<T>(promise: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const end = () => reject(this.signal.reason);
      const done = () => this.signal.removeEventListener("abort", end);
      this.signal.addEventListener("abort", end, { once: true });
      if (this.signal.aborted) {
        end();
      }
      promise.then(resolve, reject).finally(done);
    });
  }

  /** Ends the watch, and closes the connection if a response was not read to its end. */
  close(): void {
    this.pause();
    this.#parent?.removeEventListener("abort", this.#end);
    this.#controller.abort();
  }
}

/** Calls f with a signal that is aborted with the parent, or after ms with an error. It does not wait for f longer than that. */
export async function within<T>(
  parent: AbortSignal | undefined,
  ms: number,
  late: () => Error,
  f: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const watch = new Watch(parent, ms, late);
  try {
    return await watch.wait(f(watch.signal));
  } finally {
    watch.close();
  }
}
