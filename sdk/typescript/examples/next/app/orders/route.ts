import { ResponseError } from "@quittance/client";
import { orders, prices, quittance } from "../../lib/shop";

export async function POST(request: Request): Promise<Response> {
  const product = String((await request.formData()).get("product"));
  const amount = prices[product];
  if (amount === undefined) {
    return new Response("no such product\n", { status: 400 });
  }
  const id = crypto.randomUUID();
  try {
    const created = await quittance().createInvoice(
      {
        amount, currency: "USDC", chainKey: process.env.CHAIN_KEY ?? "local", expiresAt: Math.floor(Date.now() / 1000) + 3600,
        lineItems: [{ label: product, amount }],
      },
      { idempotencyKey: id }, // the order's id, so that it has only one invoice
    );
    orders.set(created.id, { id, status: "open" });
    return Response.redirect(created.checkoutPage, 303);
  } catch (error) {
    console.error(error instanceof ResponseError ? `${error.code} ${error.requestId}` : error);
    return new Response("the payment service does not answer, try again\n", { status: 502 });
  }
}
