import { webhookHandler } from "@quittance/client/webhook";
import { orders, required } from "../../lib/shop";

export function POST(request: Request): Promise<Response> {
  return webhookHandler(required("WEBHOOK_SECRET"), {
    "invoice.paid": (event) => close(event.data.invoice.id, "paid"),
    "invoice.expired": (event) => close(event.data.invoice.id, "expired"),
  })(request);
}

// Repeated events have no effect.
function close(invoiceId: string, status: "paid" | "expired"): void {
  const order = orders.get(invoiceId);
  if (!order) {
    throw new Error(`there is no order of ${invoiceId} yet`); // the event is delivered again
  }
  order.status = status;
}
