import { QuittanceError } from "./error.js";

/** What bounds calls and their attempts. */
export interface RetryOptions {
  /** Milliseconds for a call with all its attempts; 60000 if left out. */
  timeoutMs?: number;
  /** Milliseconds for one attempt; 20000 if left out. The service itself takes at most 15 s. */
  attemptTimeoutMs?: number;
  /** The number of attempts after the first; 3 if left out. */
  retries?: number;
  /** The function that makes one request; the global one if left out. */
  fetch?: (request: Request) => Promise<Response>;
  /** A number from 0 to 1, for jitter; Math.random if left out. */
  random?: () => number;
  /** The clock, in Unix milliseconds; Date.now if left out. */
  now?: () => number;
  /** Waits between attempts; a timer if left out. */
  sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
}

const firstDelayMs = 500;
const maxDelayMs = 8_000;
/** The longest Retry-After that is waited for. A longer one ends the call. */
const maxRetryAfterMs = 30_000;

/** Returns whether the service may get a request twice, with the effect of one. */
function repeatable(request: Request): boolean {
  return request.method === "GET" || request.headers.has("Idempotency-Key");
}

/**
 * Returns a fetch that makes attempts until one succeeds or no other is to be made. A response that is not a success is
 * thrown as a QuittanceError. idempotent says that every request may be repeated; otherwise only a GET and what has an
 * Idempotency-Key may. waitMs is how long the service may wait before it answers.
 */
export function retrying(options: RetryOptions, idempotent = false, waitMs = 0): (request: Request) => Promise<Response> {
  const retries = options.retries ?? 3;
  return (request) =>
    within(request.signal, (options.timeoutMs ?? 60_000) + waitMs, async (call) => {
      for (let n = 0; ; n++) {
        try {
          return await attempt(request.clone(), call, options, waitMs);
        } catch (error) {
          const delay = backoff(n, error, options);
          if (n >= retries || call.aborted || delay === undefined || !retryable(error, idempotent || repeatable(request))) {
            throw error;
          }
          await (options.sleep ?? sleep)(delay, call);
        }
      }
    });
}

function attempt(request: Request, call: AbortSignal, options: RetryOptions, waitMs: number): Promise<Response> {
  return within(call, (options.attemptTimeoutMs ?? 20_000) + waitMs, async (signal) => {
    // A redirect could send the key elsewhere.
    const response = await (options.fetch ?? fetch)(new Request(request, { signal, redirect: "manual" }));
    const body = await response.text(); // a connection that breaks here is a failed attempt
    if (!response.ok) {
      throw new QuittanceError(response, body, (options.now ?? Date.now)());
    }
    return new Response(response.status === 204 ? null : body, response);
  });
}

/** Returns the milliseconds to wait after attempt n, counted from 0, or undefined if the service asked for too many. */
export function backoff(n: number, error: unknown, options: RetryOptions): number | undefined {
  const asked = error instanceof QuittanceError ? error.retryAfterMs : 0;
  const longest = Math.min(firstDelayMs * 2 ** n, maxDelayMs);
  const delay = longest - ((options.random ?? Math.random)() * longest) / 2;
  return asked > maxRetryAfterMs ? undefined : Math.max(delay, asked);
}

/** Calls f with a signal that is aborted with the parent, or after ms with a TimeoutError. */
async function within<T>(parent: AbortSignal, ms: number, f: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const end = () => controller.abort(parent.reason);
  const timer = setTimeout(() => controller.abort(new DOMException(`no answer within ${ms} ms`, "TimeoutError")), ms);
  parent.addEventListener("abort", end, { once: true });
  if (parent.aborted) {
    end();
  }
  try {
    return await f(controller.signal);
  } finally {
    clearTimeout(timer);
    parent.removeEventListener("abort", end);
  }
}

/** Returns whether a further attempt may succeed, and cannot do anything twice. */
export function retryable(error: unknown, idempotent: boolean): boolean {
  if (!(error instanceof QuittanceError)) {
    return idempotent || unsent(error);
  }
  if (error.status === 429) {
    return true; // the service refused it before it looked at it
  }
  return idempotent && (error.status >= 500 || error.code === "idempotency_in_progress");
}

/** The codes of errors that say that there was no connection to send a request on, of Node, Deno and Bun. */
const noConnection = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "ConnectionRefused"]);

function unsent(error: unknown): boolean {
  for (let e = error; e instanceof Error; e = e.cause) {
    if ("code" in e && typeof e.code === "string" && noConnection.has(e.code)) {
      return true;
    }
  }
  return false;
}

/** Waits, or throws the reason of the signal. */
export async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", end);
      resolve();
    }, ms);
    signal.addEventListener("abort", end, { once: true });
  });
}
