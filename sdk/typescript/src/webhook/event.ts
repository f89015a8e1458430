import type {
  InvoiceCreatedEvent,
  InvoiceExpiredEvent,
  InvoicePaidEvent,
  PaymentReceivedEvent,
  PaymentRefundedEvent,
  PaymentUnattributedEvent,
} from "../openapi.js";

/** An event. Its type determines its data. More types may be added. */
export type WebhookEvent =
  | InvoiceCreatedEvent
  | InvoicePaidEvent
  | InvoiceExpiredEvent
  | PaymentReceivedEvent
  | PaymentRefundedEvent
  | PaymentUnattributedEvent;

/**
 * Reads the body of a verified request.
 *
 * @throws TypeError when it is not an event. An event of a type that this version does not know is returned: answer it with 2xx.
 */
export function parseEvent(body: Uint8Array | string): WebhookEvent {
  const text = typeof body === "string" ? body : new TextDecoder("utf-8", { fatal: true }).decode(body);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new TypeError("the body is not JSON", { cause });
  }
  const event = value as Partial<WebhookEvent> | null;
  if (
    typeof event !== "object" || event === null || typeof event.id !== "string" || typeof event.type !== "string" ||
    typeof event.createdAt !== "number" || typeof event.data !== "object" || event.data === null
  ) {
    throw new TypeError("the body is not an event with id, type, createdAt and data");
  }
  return event as WebhookEvent;
}
