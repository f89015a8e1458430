import { orders } from "../../../lib/shop";

export async function GET(_: Request, context: { params: Promise<{ invoice: string }> }): Promise<Response> {
  const order = orders.get((await context.params).invoice);
  return Response.json(order ?? { error: "no such order" }, { status: order ? 200 : 404 });
}
