/**
 * Calls the REST interface of Quittance. `@quittance/client/webhook` receives its events. The README shows how to use
 * both.
 *
 * @module
 */
export { formatAmount, parseAmount } from "./amount.js";
export { Quittance } from "./client.js";
export type { QuittanceOptions } from "./connection.js";
export { ConnectionError, InvalidResponseError, ResponseError, TimeoutError } from "./callerrors.js";
export { InvalidArgumentError, QuittanceError, type FailedCall } from "./error.js";
export { EventsLostError } from "./gone.js";
export type { List, Page } from "./pages.js";
export { maxResponseBytes, type ResponseInfo, type RetryOptions } from "./retry.js";
export type { StreamedEvent } from "./stream.js";
export type { CallOptions, CreateOptions, EventRecord, ExportFilter, Filter, StreamOptions } from "./types.js";
export type { WebhookEvent } from "./webhook/event.js";
export type * from "./openapi.js";
