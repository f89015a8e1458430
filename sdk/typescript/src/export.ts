import { QuittanceError } from "./error.js";
import { backoff, retryable, sleep, type RetryOptions } from "./retry.js";

/** The longest silence of an export. The service pauses between its reads. */
const idleMs = 120_000;

/** Yields the parts of a CSV response. Attempts are repeated until one is answered; a response that breaks off throws. */
export async function* exported(request: () => Request, options: RetryOptions, signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
  const controller = new AbortController();
  const end = () => controller.abort(signal.reason);
  const silent = () => controller.abort(new DOMException(`nothing was received for ${idleMs} ms`, "TimeoutError"));
  signal.addEventListener("abort", end, { once: true });
  if (signal.aborted) {
    end();
  }
  let timer = setTimeout(silent, idleMs);
  try {
    const response = await opened(request, options, controller.signal);
    for await (const chunk of response.body ?? []) {
      clearTimeout(timer);
      yield chunk;
      timer = setTimeout(silent, idleMs);
    }
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", end);
    controller.abort(); // closes the connection if the reader has stopped
  }
}

/** Returns the first response that is CSV. */
async function opened(request: () => Request, options: RetryOptions, signal: AbortSignal): Promise<Response> {
  for (let n = 0; ; n++) {
    try {
      const response = await (options.fetch ?? fetch)(new Request(request(), { signal, redirect: "manual" }));
      if (response.status !== 200) {
        throw new QuittanceError(response, await response.text(), (options.now ?? Date.now)());
      }
      if (response.headers.get("Content-Type")?.startsWith("text/csv")) {
        return response;
      }
    } catch (error) {
      const delay = backoff(n, error, options);
      if (n >= (options.retries ?? 3) || signal.aborted || delay === undefined || !retryable(error, true)) {
        throw error;
      }
      await (options.sleep ?? sleep)(delay, signal);
      continue;
    }
    throw new TypeError("the answer is not CSV");
  }
}
