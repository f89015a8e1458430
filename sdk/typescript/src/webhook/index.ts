/**
 * Receives the events that Quittance posts to a merchant's URL. It depends only on WebCrypto.
 *
 * @module
 */
export { InvalidArgumentError, QuittanceError } from "../error.js";
export { InvalidEventError, SignatureError, type SignatureErrorCode } from "./errors.js";
export { constructEvent, parseEvent, type WebhookEvent } from "./event.js";
export { maxBody, webhookHandler, type WebhookHandlerOptions, type WebhookHandlers } from "./handler.js";
export { nodeWebhookHandler, type NodeRequest, type NodeResponse } from "./node.js";
export { maxHeader, signEvent, toleranceSeconds, verify, type Body, type Header, type VerifyOptions } from "./verify.js";
