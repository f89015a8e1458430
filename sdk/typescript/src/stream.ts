import { QuittanceError } from "./error.js";
import { EventsLostError, Moves, type Positions } from "./gone.js";
import { backoff, retryable, sleep, type RetryOptions } from "./retry.js";
import { parseEvent, type WebhookEvent } from "./webhook/event.js";

/** An event of a stream. */
export interface StreamedEvent {
  /** Behind the event: streamEvents and eventsAfter continue there, with the same filter. */
  position: string;
  event: WebhookEvent;
}

/** The longest silence of a stream. The service sends a comment every 15 s. */
const idleMs = 45_000;

/**
 * Yields the events of a stream. A broken one is continued where it broke, until the signal is aborted or after an error
 * that would not change. request returns the request of the stream after a position. What positions remembers of the
 * caller is not yielded again after a restore.
 */
export async function* stream(
  request: (after: string) => Request,
  after: string,
  options: RetryOptions,
  signal: AbortSignal,
  positions: Positions,
): AsyncGenerator<StreamedEvent, void> {
  const got = positions.take(after);
  let given = after; // the position that the caller has
  try {
    yield* follow();
  } catch (error) {
    given = error instanceof EventsLostError ? error.position : given;
    throw error;
  } finally {
    positions.put(given, got);
  }

  async function* follow(): AsyncGenerator<StreamedEvent, void> {
    const moves = new Moves();
    for (let failures = 0; ; ) {
      let failure: unknown = new TypeError("the stream of events ended");
      let handling = false; // an error now is not the stream's
      try {
        for await (const message of messages(request(after), options, signal)) {
          after = message.id ?? after;
          failures = 0;
          moves.reset();
          if (message.data !== "") {
            handling = true;
            const event = parseEvent(message.data);
            if (!got.repeats(event.id)) {
              given = after;
              yield { position: after, event };
            }
            handling = false;
          }
        }
      } catch (error) {
        if (handling) {
          throw error;
        }
        failure = error;
      }
      signal.throwIfAborted();
      if (failure instanceof QuittanceError && failure.code === "cursor_gone") {
        after = moves.from(failure);
        got.move();
        continue;
      }
      const delay = backoff(failures++, failure, options);
      if (delay === undefined || !retryable(failure, true)) {
        throw failure;
      }
      await (options.sleep ?? sleep)(delay, signal);
    }
  }
}

interface Message {
  id: string | undefined;
  data: string;
}

/** Yields the messages of one stream, those without data too. */
async function* messages(request: Request, options: RetryOptions, signal: AbortSignal): AsyncGenerator<Message, void> {
  const controller = new AbortController();
  const end = () => controller.abort(signal.reason);
  const silent = () => controller.abort(new DOMException(`no message within ${idleMs} ms`, "TimeoutError"));
  let timer = setTimeout(silent, idleMs);
  signal.addEventListener("abort", end, { once: true });
  try {
    const response = await (options.fetch ?? fetch)(new Request(request, { signal: controller.signal, redirect: "manual" }));
    if (response.status !== 200) {
      throw new QuittanceError(response, await response.text(), (options.now ?? Date.now)());
    }
    let message: Message = { id: undefined, data: "" };
    for await (const line of lines(response)) {
      clearTimeout(timer);
      timer = setTimeout(silent, idleMs);
      const [, name, value] = /^([^:]*):? ?(.*)$/.exec(line)!;
      if (name === "id") {
        message.id = value;
      } else if (name === "data") {
        message.data += (message.data && "\n") + value;
      } else if (line === "") {
        yield message;
        message = { id: message.id, data: "" };
      }
    }
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", end);
    controller.abort(); // closes the connection if the reader has stopped
  }
}

async function* lines(response: Response): AsyncGenerator<string, void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of response.body ?? []) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split(/\r?\n/);
    rest = parts.pop()!;
    yield* parts;
  }
}
