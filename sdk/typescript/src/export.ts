import { failedCall, parts, retryDelay, type CallSettings } from "./call.js";
import { TimeoutError } from "./callerrors.js";
import { defaults } from "./retry.js";
import { Watch } from "./watch.js";

/** The longest silence of an export that has begun. The service pauses between its reads. */
const idleMs = 120_000;

/**
 * Yields the parts of a CSV response. Attempts are repeated until one receives the first part, within the time of the
 * call. After it, only silence or the caller's signal ends the export; the caller's time for a part does not count. A
 * broken response throws.
 */
export async function* exported(request: Request, settings: CallSettings): AsyncGenerator<Uint8Array, void> {
  const failed = failedCall(request);
  const [callMs, attemptMs] = [settings.timeoutMs ?? defaults.timeoutMs, settings.attemptTimeoutMs ?? defaults.attemptTimeoutMs];
  const late = (ms: number) => () => new TimeoutError(`the export did not begin within ${ms} ms`, failed);
  const call = new Watch(settings.signal, callMs, late(callMs));
  const idle = new Watch(call.signal, idleMs, () => new TimeoutError(`nothing was received for ${idleMs} ms`, failed));
  idle.pause();
  try {
    for (let begun = false; !begun; ) {
      const attempt = new Watch(idle.signal, attemptMs, late(attemptMs));
      failed.attempts++;
      try {
        for await (const part of parts(request.clone(), "text/csv", attempt, settings, failed)) {
          begun = true;
          [call, attempt, idle].forEach((watch) => watch.pause());
          yield part;
          idle.restart();
        }
        return;
      } catch (error) {
        if (begun) {
          throw error;
        }
        attempt.pause();
        await call.wait(retryDelay(failed.attempts - 1, error, request, settings, call.signal));
      } finally {
        attempt.close();
      }
    }
  } finally {
    idle.close();
    call.close();
  }
}
