/**
 * Calls the REST interface of Quittance. `@quittance/client/webhook` receives its events. The README shows how to use
 * both.
 *
 * @module
 */
export { Quittance } from "./client.js";
export type { QuittanceOptions } from "./connection.js";
export { QuittanceError } from "./error.js";
export { EventsLostError } from "./gone.js";
export type { RetryOptions } from "./retry.js";
export type { StreamedEvent } from "./stream.js";
export type { CallOptions, CreateOptions, EventRecord, ExportFilter, Filter } from "./types.js";
export type { WebhookEvent } from "./webhook/event.js";
export type * from "./openapi.js";
