import { failedCall, parts, type CallSettings } from "./call.js";
import { InvalidResponseError, ResponseError, TimeoutError } from "./callerrors.js";
import { QuittanceError, type FailedCall } from "./error.js";
import { EventsLostError, Moves, type Positions } from "./gone.js";
import { backoff, defaults, retryable, sleep } from "./retry.js";
import { Watch } from "./watch.js";
import { parseEvent, type WebhookEvent } from "./webhook/event.js";

/** An event of a stream. */
export interface StreamedEvent {
  /** The position after the event: streamEvents and eventsAfter continue there, with the same filter. */
  position: string;
  event: WebhookEvent;
}

/** The longest silence of a stream. The service sends a comment every 15 s. */
const idleMs = 45_000;
/** The longest message of a stream, in characters. */
export const maxMessage = 2 << 20;

/**
 * Yields the events of a stream. A broken stream is continued where it broke, until the signal is aborted or after a
 * permanent error. request returns the request for the stream after a position. Events that positions remembers for the
 * caller are not yielded again after a restore.
 */
export async function* stream(
  request: (after: string) => Request,
  after: string,
  settings: CallSettings,
  positions: Positions,
): AsyncGenerator<StreamedEvent, void> {
  const got = positions.take(after);
  let given = after; // the caller's position
  try {
    yield* follow();
  } catch (error) {
    given = error instanceof EventsLostError ? error.position : given;
    throw error;
  } finally {
    positions.put(given, got);
  }

  async function* follow(): AsyncGenerator<StreamedEvent, void> {
    const signal = settings.signal ?? new AbortController().signal;
    const moves = new Moves();
    for (let failures = 0; ; ) {
      const asked = request(after);
      const failed: FailedCall = { ...failedCall(asked), attempts: failures + 1 };
      let failure: unknown; // undefined if the stream ended
      let handling = false; // an error now does not come from the stream
      try {
        for await (const message of messages(asked, settings, failed)) {
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
      if (failure instanceof ResponseError && failure.code === "cursor_gone") {
        after = moves.from(failure);
        got.move();
        continue;
      }
      const delay = backoff(failures, failure, settings);
      const foreign = failure instanceof InvalidResponseError && failures >= (settings.retries ?? defaults.retries);
      if (failure !== undefined && (delay === undefined || foreign || !retryable(failure, true))) {
        throw failure;
      }
      failures++;
      await (settings.sleep ?? sleep)(delay!, signal);
    }
  }
}

interface Message {
  id: string | undefined;
  data: string;
}

/** Yields the messages of one stream, including those without data. */
async function* messages(request: Request, settings: CallSettings, failed: FailedCall): AsyncGenerator<Message, void> {
  const watch = new Watch(settings.signal, idleMs, () => new TimeoutError(`no message within ${idleMs} ms`, failed));
  try {
    let message: Message = { id: undefined, data: "" };
    for await (const line of lines(parts(request, "text/event-stream", watch, settings, failed), failed)) {
      watch.restart();
      const [, name, value] = /^([^:]*):? ?(.*)$/.exec(line)!;
      if (name === "id") {
        message.id = value;
      } else if (name === "data") {
        message.data += (message.data && "\n") + value;
        if (message.data.length > maxMessage) {
          throw tooLong(failed);
        }
      } else if (line === "") {
        watch.pause(); // the time of the message's handler does not count
        yield message;
        watch.restart();
        message = { id: message.id, data: "" };
      }
    }
  } finally {
    watch.close();
  }
}

async function* lines(chunks: AsyncIterable<Uint8Array>, failed: FailedCall): AsyncGenerator<string, void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of chunks) {
    const text = decoder.decode(chunk, { stream: true });
    rest += text;
    if (rest.length > maxMessage + chunk.length) {
      throw tooLong(failed);
    }
    if (text.includes("\n")) { // so that a long line is not searched again with each part
      const complete = rest.split(/\r?\n/);
      rest = complete.pop()!;
      yield* complete;
    }
  }
}

function tooLong(failed: FailedCall): QuittanceError {
  return new QuittanceError(`a message of the stream has more than ${maxMessage} characters`, failed);
}
