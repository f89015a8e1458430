import type { components, paths } from "./openapi.js";
import type { ResponseInfo } from "./retry.js";
import type { WebhookEvent } from "./webhook/event.js";

/** An event and its delivery. */
export type EventRecord = Omit<components["schemas"]["EventRecord"], "event"> & { event: WebhookEvent };

/** The query parameters of a list, without the paging parameters. */
export type Filter<P extends keyof paths> = paths[P] extends { get: { parameters: { query?: infer Q } } } ? Omit<NonNullable<Q>, "cursor" | "after"> : never;

/** The query parameters of an export. */
export type ExportFilter<P extends keyof paths> = Omit<Filter<P>, "limit" | "q">;

/** The options of a stream of events. */
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

/** The options of one call. Options that are left out have the client's values. A list makes one call for each page. */
export interface CallOptions extends StreamOptions {
  /** Milliseconds for the call with all its attempts. Without it `awaitInvoice` waits until the status changes. */
  timeoutMs?: number | undefined;
  /** Milliseconds for one attempt. */
  attemptTimeoutMs?: number | undefined;
  /** The number of attempts after the first. */
  retries?: number | undefined;
}

/** The options of a call that the service carries out once per key. */
export interface CreateOptions extends CallOptions {
  /**
   * The key with which the request is safe to repeat for 24 hours; random if left out. A key that is derived from an
   * order makes a create safe to repeat from another process. Do not derive the key of submitRefund, which locks the
   * refund, or of eraseCustomer: use a random one, and use it again only for retries.
   */
  idempotencyKey?: string | undefined;
}
