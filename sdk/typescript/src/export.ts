import { failedCall, parts, retryDelay, type CallSettings } from "./call.js";
import { TimeoutError } from "./callerrors.js";
import { Watch } from "./watch.js";

/** The longest silence of an export. The service pauses between its reads. */
const idleMs = 120_000;

/** Yields the parts of a CSV response. Attempts are repeated until one is answered; a response that breaks off throws. */
export async function* exported(request: Request, settings: CallSettings): AsyncGenerator<Uint8Array, void> {
  const failed = failedCall(request);
  for (let begun = false; !begun; ) {
    const watch = new Watch(settings.signal, idleMs, () => new TimeoutError(`nothing was received for ${idleMs} ms`, failed));
    failed.attempts++;
    try {
      for await (const part of parts(request.clone(), "text/csv", watch, settings, failed)) {
        begun = true;
        watch.pause();
        yield part;
        watch.restart();
      }
      return;
    } catch (error) {
      if (begun) {
        throw error;
      }
      watch.pause();
      await retryDelay(failed.attempts - 1, error, request, settings, watch.signal);
    } finally {
      watch.close();
    }
  }
}
