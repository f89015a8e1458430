// Serves the route handlers of examples/next as Next.js does: each file's functions at its path.
import { createServer } from "node:http";
import * as order from "./next/app/orders/[invoice]/route";
import * as orders from "./next/app/orders/route";
import * as webhooks from "./next/app/webhooks/route";

async function route(request: Request): Promise<Response> {
  const [, first, invoice] = new URL(request.url).pathname.split("/");
  switch (`${request.method} /${first}${invoice ? "/[invoice]" : ""}`) {
    case "POST /orders":
      return orders.POST(request);
    case "GET /orders/[invoice]":
      return order.GET(request, { params: Promise.resolve({ invoice: invoice! }) });
    case "POST /webhooks":
      return webhooks.POST(request);
    default:
      return new Response(null, { status: 404 });
  }
}

createServer(async (incoming, response) => {
  const body: Buffer[] = [];
  for await (const chunk of incoming) {
    body.push(chunk);
  }
  const request = new Request(`http://${incoming.headers.host}${incoming.url}`, {
    method: incoming.method!, headers: incoming.headers as Record<string, string>, ...(body.length > 0 && { body: Buffer.concat(body) }),
  });
  const answer = await route(request);
  response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
}).listen(Number(process.env.PORT), "127.0.0.1", () => console.log(`open for business at http://127.0.0.1:${process.env.PORT}`));
