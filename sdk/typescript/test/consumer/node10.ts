// Compiled with module resolution node10, which does not read the exports of package.json.
import { Quittance, type Invoice } from "@quittance/client";
import { webhookHandler, type WebhookEvent } from "@quittance/client/webhook";

export const get = (quittance: Quittance): Promise<Invoice> => quittance.getInvoice("inv_1");
export const handler = webhookHandler("whsec_1", { other: (event: WebhookEvent) => console.log(event.id) });
