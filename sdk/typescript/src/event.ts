/** The kinds of events. */
export type EventType = "invoice.created" | "invoice.paid" | "invoice.expired" | "payment.received" | "payment.refunded";

/** An invoice, as far as an event shows it. Amounts are integers in minor units, as text; times are Unix seconds. */
export interface Invoice {
  id: string;
  merchantId: string;
  amount: string;
  currency: string;
  chainKey: string;
  status: "draft" | "open" | "paid" | "expired" | "void";
  settledTxHash?: string;
  settledAt?: number;
  merchantAddress?: string;
  lineItems?: { label: string; amount: string }[];
  createdAt?: number;
  expiresAt?: number;
  exception?: "underpaid" | "overpaid" | "late" | "duplicate";
  amountPaid?: string;
  amountRefunded?: string;
}

/** A transfer to a merchant's address. */
export interface Payment {
  id: string;
  invoiceId?: string;
  chainKey: string;
  txHash: string;
  amount: string;
  currency: string;
  from: string;
  to: string;
  blockNumber: number;
  confirmedAt?: number;
  status?: "pending" | "confirmed" | "orphaned";
}

/** A transfer from a merchant's address back to a payer. */
export interface Refund {
  id: string;
  paymentId: string;
  invoiceId: string;
  chainKey: string;
  txHash: string;
  amount: string;
  currency: string;
  from: string;
  to: string;
  blockNumber: number;
  confirmedAt: number;
}

/** What all events have in common. */
export interface Envelope<T extends string, D> {
  id: string;
  type: T;
  createdAt: number;
  data: D;
}

/** An event. Its type says what its data holds. */
export type WebhookEvent =
  | Envelope<"invoice.created" | "invoice.paid" | "invoice.expired", { invoice: Invoice }>
  | Envelope<"payment.received", { payment: Payment }>
  | Envelope<"payment.refunded", { refund: Refund; payment: Payment }>;

/**
 * Reads the body of a verified request.
 *
 * @throws TypeError when it is not an event. Kinds that this version does not know are passed on: answer them with 2xx.
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
