import { ConnectionError, InvalidResponseError, ResponseError, TimeoutError } from "./callerrors.js";
import { InvalidArgumentError } from "./error.js";

/** A successful response, without its body. */
export interface ResponseInfo {
  method: string;
  /** The path of the URL, without its query. */
  path: string;
  /** The HTTP status. */
  status: number;
  /** The id of the request, to give to the operator of the service. */
  requestId: string | undefined;
  /** Whether an earlier request with the same idempotency key did the work. */
  replayed: boolean;
  /** The number of attempts made. */
  attempts: number;
  headers: Headers;
}

/** The limits of calls and their attempts. */
export interface RetryOptions {
  /** Milliseconds for a call with all its attempts; 60000 if left out. */
  timeoutMs?: number | undefined;
  /** Milliseconds for one attempt; 20000 if left out. The service takes up to 15 s. */
  attemptTimeoutMs?: number | undefined;
  /** The number of attempts after the first; 3 if left out. */
  retries?: number | undefined;
  /** The bytes of the largest response that is read; 64 MiB if left out. A larger one is an InvalidResponseError. */
  maxResponseBytes?: number | undefined;
  /** Called with each successful response. */
  onResponse?: ((response: ResponseInfo) => void) | undefined;
  /** The function that makes one request; the global one if left out. */
  fetch?: ((request: Request, init: { signal: AbortSignal }) => Promise<Response>) | undefined;
  /** A number from 0 to 1, for jitter; Math.random if left out. */
  random?: (() => number) | undefined;
  /** The clock, in Unix milliseconds; Date.now if left out. */
  now?: (() => number) | undefined;
  /** Waits between attempts; a timer if left out. */
  sleep?: ((ms: number, signal: AbortSignal) => Promise<void>) | undefined;
}

/** The bytes of the largest response that is read, by default. */
export const maxResponseBytes = 64 << 20;
/** The milliseconds of a call and of an attempt, and the attempts after the first, by default. */
export const defaults = { timeoutMs: 60_000, attemptTimeoutMs: 20_000, retries: 3, maxResponseBytes } as const;

const firstDelayMs = 500;
const maxDelayMs = 8_000;
/** The longest accepted Retry-After. A longer one ends the call. */
const maxRetryAfterMs = 30_000;

/** Throws an InvalidArgumentError for an invalid limit. */
export function checkBounds(options: RetryOptions): void {
  for (const name of Object.keys(defaults) as (keyof typeof defaults)[]) {
    const value: unknown = options[name];
    if (value !== undefined && !(typeof value === "number" && value >= 0)) {
      throw new InvalidArgumentError(`the option ${name} must be a number of at least 0; it is ${String(value)}`);
    }
  }
}

/**
 * Returns the milliseconds to wait after attempt n, counted from 0, or undefined if the service asked for too long a
 * wait.
 */
export function backoff(n: number, error: unknown, options: RetryOptions): number | undefined {
  const asked = error instanceof ResponseError ? error.retryAfterMs : 0;
  const longest = Math.min(firstDelayMs * 2 ** n, maxDelayMs);
  const delay = longest - ((options.random ?? Math.random)() * longest) / 2;
  return asked > maxRetryAfterMs ? undefined : Math.max(delay, asked);
}

/** Returns whether another attempt may succeed, and cannot do anything twice. */
export function retryable(error: unknown, idempotent: boolean): boolean {
  if (error instanceof ResponseError) {
    // With 429 the service refused the request before processing it.
    const passes = error.status >= 500 || error.status === 408 || error.code === "idempotency_in_progress";
    return error.status === 429 || (idempotent && passes);
  }
  if (error instanceof ConnectionError) {
    return idempotent || error.unsent;
  }
  return idempotent && (error instanceof TimeoutError || (error instanceof InvalidResponseError && error.repeatable));
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
