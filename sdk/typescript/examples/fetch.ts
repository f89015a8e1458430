// A worker (Cloudflare, Deno, Bun) or any server that speaks the Fetch API.
import { receive } from "@quittance/webhook";

interface Env {
  WEBHOOK_SECRET: string;
  SEEN: { get(key: string): Promise<string | null>; put(key: string, value: string): Promise<void> };
}

export default {
  fetch: (request: Request, env: Env): Promise<Response> =>
    receive(request, env.WEBHOOK_SECRET, async (event, deliveryId) => {
      if (event.type !== "invoice.paid" || (await env.SEEN.get(deliveryId)) !== null) {
        return; // nothing to ship, or shipped already
      }
      // Ship event.data.invoice.id here.
      await env.SEEN.put(deliveryId, event.data.invoice.id);
    }),
};
