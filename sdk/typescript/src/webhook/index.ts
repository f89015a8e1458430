/**
 * Receives the events that Quittance posts to a merchant's URL. It depends on WebCrypto alone.
 *
 * @module
 */
export { SignatureError, type SignatureErrorCode } from "./errors.js";
export { parseEvent, type WebhookEvent } from "./event.js";
export { maxBody, webhookHandler, type WebhookHandlerOptions, type WebhookHandlers } from "./handler.js";
export { nodeWebhookHandler, type NodeRequest, type NodeResponse } from "./node.js";
export { maxHeader, toleranceSeconds, verify, type VerifyOptions } from "./verify.js";
