import type { components, paths } from "./openapi.js";
import type { ResponseInfo } from "./retry.js";
import type { WebhookEvent } from "./webhook/event.js";

/** An event and its delivery. */
export type EventRecord = Omit<components["schemas"]["EventRecord"], "event"> & { event: WebhookEvent };

/** The query parameters of a list, without those of its pages. */
export type Filter<P extends keyof paths> = paths[P] extends { get: { parameters: { query?: infer Q } } } ? Omit<NonNullable<Q>, "cursor" | "after"> : never;

/** The query parameters of an export. */
export type ExportFilter<P extends keyof paths> = Omit<Filter<P>, "limit" | "q">;

/** What a stream of events can be given. */
export interface StreamOptions {
  /** Ends the call, which throws the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Another key than the client's. */
  key?: string | undefined;
  /** Another version of the interface than the client's. */
  version?: string | undefined;
  /** Headers to add to the request. */
  headers?: Record<string, string> | undefined;
  /** Called with each successful response of the call. */
  onResponse?: ((response: ResponseInfo) => void) | undefined;
}

/** What one call can be given. What is left out is as the client was given it. A list makes one call for each page. */
export interface CallOptions extends StreamOptions {
  /** Milliseconds for the call with all its attempts. `awaitInvoice` without it waits as long as the invoice has the status. */
  timeoutMs?: number | undefined;
  /** Milliseconds for one attempt. */
  attemptTimeoutMs?: number | undefined;
  /** The number of attempts after the first. */
  retries?: number | undefined;
}

/** What a call can be given that the service does once for one key. */
export interface CreateOptions extends CallOptions {
  /**
   * The key under which the request is safe to repeat for 24 hours; a random one if left out. One that is derived from an
   * order makes a create safe to repeat from another process. Do not derive that of submitRefund, which locks the refund, or
   * of eraseCustomer: use a random one, and the same for retries alone.
   */
  idempotencyKey?: string | undefined;
}
