/**
 * Verifies the events that Quittance posts to a merchant's URL, with WebCrypto
 * and nothing else. See the README for how to use it.
 *
 * @module
 */
export { SignatureError, type SignatureErrorCode } from "./errors.js";
export { parseEvent, type Envelope, type EventType, type Invoice, type Payment, type Refund, type WebhookEvent } from "./event.js";
export { maxHeader, toleranceSeconds, verify, type VerifyOptions } from "./verify.js";
export { receive } from "./receive.js";
