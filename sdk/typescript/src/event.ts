/** The types of events. */
export type EventType =
  | "invoice.created"
  | "invoice.paid"
  | "invoice.expired"
  | "payment.received"
  | "payment.refunded"
  | "payment.unattributed";

export type InvoiceStatus = "draft" | "open" | "paid" | "expired" | "void";

export type InvoiceException = "underpaid" | "overpaid" | "late" | "duplicate";

export type PaymentStatus = "pending" | "confirmed" | "orphaned";

/** How a payment was attributed to its invoice. More methods may be added. */
export type AttributionMethod =
  | "registry"
  | "authorization"
  | "calldata"
  | "transfer_amount"
  | "amount"
  | "tolerance"
  | "by_hand"
  | "by_claim";

/** An invoice. Amounts are integers in minor units, as text; times are Unix seconds. */
export interface Invoice {
  id: string;
  merchantId: string;
  merchantAddress: string;
  amount: string;
  currency: string;
  chainKey: string;
  status: InvoiceStatus;
  lineItems: LineItem[];
  createdAt: number;
  expiresAt: number;
  transferAmount?: string;
  amountRemaining?: string;
  remainingTransferAmount?: string;
  settledTxHash?: string;
  settledAt?: number;
  tolerance?: string;
  exception?: InvoiceException;
  amountPaid: string;
  amountRefunded: string;
}

export interface LineItem {
  label: string;
  amount: string;
}

/** An invoice as `invoice.paid` shows it. */
export interface PaidInvoice {
  id: string;
  merchantId: string;
  amount: string;
  currency: string;
  chainKey: string;
  status: InvoiceStatus;
  settledTxHash: string;
  settledAt: number;
}

/** A transfer to a merchant's settlement address. */
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
  status?: PaymentStatus;
  attribution?: Attribution;
  amountRefunded?: string;
  candidates?: PaymentCandidate[];
  claims?: Claim[];
}

export interface Attribution {
  method: AttributionMethod;
  by?: string;
  at?: number;
}

/** An invoice that an unattributed payment could be meant for. */
export interface PaymentCandidate {
  invoiceId: string;
  merchantId: string;
  status: InvoiceStatus;
  amount: string;
  amountDifference: string;
  lateBy?: number;
  early?: boolean;
  covered?: boolean;
  ambiguous?: boolean;
}

/** A payer's statement that a payment is for an invoice. */
export interface Claim {
  id: string;
  paymentId: string;
  invoiceId: string;
  merchantId: string;
  signed: boolean;
  status: "open" | "accepted" | "declined";
  createdAt: number;
}

/** A transfer from a settlement address back to a payer. */
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
  preparedRefundId?: string;
}

/** The members that all events have. */
export interface Envelope<T extends string, D> {
  id: string;
  type: T;
  createdAt: number;
  data: D;
}

/** An event. Its type determines its data. */
export type WebhookEvent =
  | Envelope<"invoice.created" | "invoice.expired", { invoice: Invoice }>
  | Envelope<"invoice.paid", { invoice: PaidInvoice }>
  | Envelope<"payment.received", { payment: Payment }>
  | Envelope<"payment.refunded", { refund: Refund; payment: Payment }>
  | Envelope<"payment.unattributed", { payment: Payment; candidates: PaymentCandidate[] }>;

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
