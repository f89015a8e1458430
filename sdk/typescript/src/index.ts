/**
 * Verifies the events that Quittance posts to a merchant's URL, with WebCrypto
 * alone. The README shows how to use it.
 *
 * @module
 */
export { SignatureError, type SignatureErrorCode } from "./errors.js";
export {
  parseEvent,
  type Attribution,
  type AttributionMethod,
  type Claim,
  type Envelope,
  type EventType,
  type Invoice,
  type InvoiceException,
  type InvoiceStatus,
  type LineItem,
  type PaidInvoice,
  type Payment,
  type PaymentCandidate,
  type PaymentStatus,
  type Refund,
  type WebhookEvent,
} from "./event.js";
export { maxHeader, toleranceSeconds, verify, type VerifyOptions } from "./verify.js";
export { receive } from "./receive.js";
