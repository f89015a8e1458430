import { read } from "./bytes.js";
import { ConnectionError, InvalidResponseError, requestId, ResponseError, TimeoutError } from "./callerrors.js";
import type { FailedCall } from "./error.js";
import { backoff, defaults, retryable, sleep, type RetryOptions } from "./retry.js";
import { within, type Watch } from "./watch.js";

/** The settings of one call. */
export interface CallSettings extends RetryOptions {
  /** Ends the call. */
  signal?: AbortSignal | undefined;
  /**
   * Whether the service may receive the request twice with the effect of one. This is so for a GET, and for a request
   * with an Idempotency-Key.
   */
  idempotent?: boolean | undefined;
  /** How long the service may wait before it answers. */
  waitMs?: number | undefined;
  /** Returns what is wrong with a successful response, or undefined. */
  check?: ((response: Response, body: Uint8Array) => string | undefined) | undefined;
}

/** The bytes of the largest response that is read for an error. */
const maxProblemBytes = 1 << 20;

/** Returns the description of a request for errors. */
export function failedCall(request: Request): FailedCall {
  return { method: request.method, path: new URL(request.url).pathname, attempts: 0 };
}

/**
 * Makes attempts until one succeeds or no other may be made. A response that is not a success is thrown as a
 * ResponseError.
 */
export function call(request: Request, settings: CallSettings): Promise<Response> {
  const failed = failedCall(request);
  const waitMs = settings.waitMs ?? 0;
  const [callMs, attemptMs] = [(settings.timeoutMs ?? defaults.timeoutMs) + waitMs, (settings.attemptTimeoutMs ?? defaults.attemptTimeoutMs) + waitMs];
  const late = (ms: number) => () => new TimeoutError(`no complete response within ${ms} ms`, failed);
  return within(settings.signal ?? request.signal, callMs, late(callMs), async (signal) => {
    for (;;) {
      failed.attempts++;
      try {
        return await within(signal, attemptMs, late(attemptMs), (attempt) => exchange(request.clone(), attempt, settings, failed));
      } catch (error) {
        await retryDelay(failed.attempts - 1, error, request, settings, signal);
      }
    }
  });
}

/** Waits before the next attempt, or throws the error of attempt n, counted from 0, if no other may be made. */
export async function retryDelay(n: number, error: unknown, request: Request, settings: CallSettings, signal: AbortSignal): Promise<void> {
  const idempotent = settings.idempotent ?? (request.method === "GET" || request.headers.has("Idempotency-Key"));
  const delay = backoff(n, error, settings);
  if (signal.aborted || n >= (settings.retries ?? defaults.retries) || delay === undefined || !retryable(error, idempotent)) {
    throw error;
  }
  await (settings.sleep ?? sleep)(delay, signal);
}

/** Makes one attempt, and reads the whole response. */
async function exchange(request: Request, signal: AbortSignal, settings: CallSettings, failed: FailedCall): Promise<Response> {
  const response = await connect(request, signal, settings, failed);
  if (!response.ok) {
    throw await refusal(response, settings, failed);
  }
  const limit = settings.maxResponseBytes ?? defaults.maxResponseBytes;
  const body = await connected(() => read(response.body ?? [], limit), signal, failed);
  if (body === undefined) {
    throw new InvalidResponseError(response, `the body has more than ${limit} bytes`, failed, false);
  }
  const wrong = settings.check?.(response, body);
  if (wrong !== undefined) {
    throw new InvalidResponseError(response, wrong, failed);
  }
  succeeded(response, settings, failed);
  return new Response(body.length === 0 ? null : body, response);
}

/** Sends a request, and returns the response without its body. */
async function connect(request: Request, signal: AbortSignal, settings: CallSettings, failed: FailedCall): Promise<Response> {
  // A redirect could send the key elsewhere. The request has the signal too, for a fetch that accepts no second
  // argument.
  const made = new Request(request, { signal, redirect: "manual" });
  return connected(() => (settings.fetch ?? fetch)(made, { signal }), signal, failed);
}

/** Returns the result of get. Its errors become a ConnectionError, except the reason of the signal. */
async function connected<T>(get: () => Promise<T>, signal: AbortSignal, failed: FailedCall): Promise<T> {
  try {
    return await get();
  } catch (error) {
    throw signal.aborted ? signal.reason : new ConnectionError(error, failed);
  }
}

/** Returns the error for a response that is not a success. */
async function refusal(response: Response, settings: CallSettings, failed: FailedCall): Promise<Error> {
  try {
    const body = await read(response.body ?? [], maxProblemBytes);
    return new ResponseError(response, new TextDecoder().decode(body), (settings.now ?? Date.now)(), failed);
  } catch (error) {
    return new ConnectionError(error, failed);
  }
}

function succeeded(response: Response, settings: CallSettings, failed: FailedCall): void {
  settings.onResponse?.({
    ...failed, status: response.status, requestId: requestId(response), headers: response.headers,
    replayed: response.headers.get("Idempotency-Replayed") === "true",
  });
}

/** Makes one attempt at a response of a media type, and yields the parts of its body until the watch ends. */
export async function* parts(
  request: Request,
  type: string,
  watch: Watch,
  settings: CallSettings,
  failed: FailedCall,
): AsyncGenerator<Uint8Array, void> {
  const response = await watch.wait(connect(request, watch.signal, settings, failed));
  if (response.status !== 200) {
    throw await watch.wait(refusal(response, settings, failed));
  }
  if (!response.headers.get("Content-Type")?.startsWith(type)) {
    throw new InvalidResponseError(response, `it is not ${type}`, failed);
  }
  succeeded(response, settings, failed);
  const reader = response.body?.getReader();
  while (reader) {
    const part = await watch.wait(connected(() => reader.read(), watch.signal, failed));
    if (part.done) {
      return;
    }
    yield part.value;
  }
}
