import { SignatureError } from "./errors.js";
import { parseEvent, type WebhookEvent } from "./event.js";
import { verify, type VerifyOptions } from "./verify.js";

/** The size in bytes of the largest body that is read. */
const maxBody = 1 << 20;

/**
 * Answers a webhook given as a Fetch API request, which is what workers, Deno, Bun, Next.js and Hono have: 401 for what
 * Quittance did not send, 400 for what is no event, 413 for what is too long, else 204 once handle has returned. When
 * handle throws, the error is thrown on: answer it with 5xx, and the event comes again.
 *
 * An event can come more than once. deliveryId is the same each time: remember it.
 */
export async function receive(
  request: Request,
  secret: string | readonly string[],
  handle: (event: WebhookEvent, deliveryId: string) => void | Promise<void>,
  options: VerifyOptions = {},
): Promise<Response> {
  const body = await read(request);
  if (body === undefined) {
    return new Response("the body is too long\n", { status: 413 });
  }
  let event: WebhookEvent;
  try {
    await verify(secret, request.headers.get("X-Service-Signature"), body, options);
    event = parseEvent(body);
  } catch (error) {
    if (error instanceof SignatureError) {
      return Response.json({ code: error.code, detail: error.message }, { status: error.status });
    }
    if (error instanceof TypeError) {
      return new Response(error.message + "\n", { status: 400 });
    }
    throw error;
  }
  await handle(event, request.headers.get("X-Service-Delivery") ?? event.id);
  return new Response(null, { status: 204 });
}

/** Returns the body, or nothing when it is longer than maxBody. */
async function read(request: Request): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (const reader = request.body?.getReader(); reader; ) {
    const { done, value } = await reader.read();
    if (done) {
      break;
    }
    length += value.length;
    if (length > maxBody) {
      await reader.cancel();
      return undefined;
    }
    chunks.push(value);
  }
  const body = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    body.set(chunk, at);
    at += chunk.length;
  }
  return body;
}
