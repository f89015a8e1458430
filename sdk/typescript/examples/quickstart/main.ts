import { createServer } from "node:http";
import { Quittance, ResponseError } from "@quittance/client";
import { nodeWebhookHandler } from "@quittance/client/webhook";

function env(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`the environment variable ${name} is not set`);
  return value;
}

const quittance = new Quittance({ url: env("QUITTANCE_URL"), key: env("QUITTANCE_API_KEY") });

createServer(
  nodeWebhookHandler(env("WEBHOOK_SECRET"), {
    "invoice.paid": (event) => console.log("paid", event.data.invoice.id),
  }),
).listen(env("PORT"));

quittance
  .createInvoice({ amount: "4900000", currency: "USDC", chainKey: "local", expiresAt: Math.floor(Date.now() / 1000) + 3600 })
  .then((created) => console.log("pay at", created.checkoutPage))
  .catch((error) => console.error(error instanceof ResponseError ? `${error.code} ${error.field ?? ""}` : error));
