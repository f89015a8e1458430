import type { components, paths } from "./openapi.js";
import type { WebhookEvent } from "./webhook/event.js";

/** An event and its delivery. */
export type EventRecord = Omit<components["schemas"]["EventRecord"], "event"> & { event: WebhookEvent };

/** The query parameters of a list, without those of its pages. */
export type Filter<P extends keyof paths> = paths[P] extends { get: { parameters: { query?: infer Q } } } ? Omit<NonNullable<Q>, "cursor" | "after"> : never;

/** The query parameters of an export. */
export type ExportFilter<P extends keyof paths> = Omit<Filter<P>, "limit" | "q">;

/** What one call can be given. */
export interface CallOptions {
  /** Ends the call. */
  signal?: AbortSignal;
}

/** What a call can be given that creates something. */
export interface CreateOptions extends CallOptions {
  /**
   * The key under which the request is safe to repeat for 24 hours; a random one if left out. One that is derived from an
   * order makes the call safe to repeat from another process.
   */
  idempotencyKey?: string;
}
