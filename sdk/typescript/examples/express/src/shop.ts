import express, { type Express } from "express";
import { ResponseError, type Quittance } from "@quittance/client";
import { nodeWebhookHandler } from "@quittance/client/webhook";

/** An order of the shop. A real shop keeps it in its database. */
interface Order {
  id: string;
  status: "open" | "paid" | "expired";
}

const prices: Record<string, string> = { espresso: "2500000", cake: "4900000" }; // minor units: USDC has 6 decimals

/** Returns a shop that sells coffee. */
export function shop(quittance: Quittance, secret: string, chainKey: string): Express {
  const orders = new Map<string, Order>();
  const app = express();

  // Before any body parser: the signature covers the body as it came over the wire.
  app.post("/webhooks", nodeWebhookHandler(secret, {
    "invoice.paid": (event) => close(event.data.invoice.id, "paid"),
    "invoice.expired": (event) => close(event.data.invoice.id, "expired"),
  }));

  // Repeated events have no effect.
  function close(invoiceId: string, status: "paid" | "expired"): void {
    const order = orders.get(invoiceId);
    if (!order) {
      throw new Error(`there is no order of ${invoiceId} yet`); // the event is delivered again
    }
    order.status = status;
  }

  app.use(express.urlencoded({ extended: false }));

  app.post("/orders", async (request, response) => {
    const amount = prices[String(request.body?.product)];
    if (amount === undefined) {
      response.status(400).send("no such product\n");
      return;
    }
    const id = crypto.randomUUID();
    try {
      const created = await quittance.createInvoice(
        { amount, currency: "USDC", chainKey, expiresAt: Math.floor(Date.now() / 1000) + 3600, lineItems: [{ label: request.body.product, amount }] },
        { idempotencyKey: id }, // the order's id, so that it has only one invoice
      );
      orders.set(created.id, { id, status: "open" });
      response.redirect(303, created.checkoutPage);
    } catch (error) {
      console.error(error instanceof ResponseError ? `${error.code} ${error.requestId}` : error);
      response.status(502).send("the payment service does not answer, try again\n");
    }
  });

  app.get("/orders/:invoice", (request, response) => {
    const order = orders.get(request.params.invoice);
    response.status(order ? 200 : 404).json(order ?? { error: "no such order" });
  });

  return app;
}
