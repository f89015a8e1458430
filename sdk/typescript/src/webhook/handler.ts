import { read } from "../bytes.js";
import { SignatureError } from "./errors.js";
import { parseEvent, type WebhookEvent } from "./event.js";
import { configured, verify, type Body, type VerifyOptions } from "./verify.js";

/** The size in bytes of the largest body that is read. */
export const maxBody = 1 << 20;

/**
 * The functions that are called with events, by type. An event may be delivered more than once, always with the same
 * event.id, and events in any order, so the functions must be idempotent by event.id, which is signed; deliveryId is
 * not. They should return within 5 seconds. If one throws, the event is answered with 500, and delivered again.
 */
export type WebhookHandlers = {
  [T in WebhookEvent["type"]]?: (event: Extract<WebhookEvent, { type: T }>, deliveryId: string) => unknown;
} & {
  /** Called with all other events, such as events of types that this version does not know. */
  other?: (event: WebhookEvent, deliveryId: string) => unknown;
};

/** The options of a handler. */
export interface WebhookHandlerOptions extends VerifyOptions {
  /** Called with errors that a function throws, and with errors in the request; console.error if left out. */
  onError?: (error: unknown) => void;
}

/** A delivery, as both kinds of handlers read it. */
export interface Delivery {
  signature: string | null | undefined;
  deliveryId: string | null | undefined;
  /** The raw body; undefined if it is longer than maxBody. */
  body: Body | undefined;
}

/** The answer to a delivery. */
export interface Answer {
  status: number;
  /** The body, as JSON; without it the response has no body. */
  problem?: { code: string; detail: string };
}

/** Verifies a delivery, calls the function for its type, and returns the answer. */
export async function handle(
  delivery: Delivery,
  secrets: readonly string[],
  handlers: WebhookHandlers,
  options: WebhookHandlerOptions,
): Promise<Answer> {
  if (delivery.body === undefined) {
    return { status: 413, problem: { code: "body_too_large", detail: `the body is larger than ${maxBody} bytes` } };
  }
  try {
    await verify(secrets, delivery.signature, delivery.body, options);
  } catch (error) {
    if (error instanceof SignatureError) {
      return { status: error.status, problem: { code: error.code, detail: error.message } };
    }
    throw error;
  }
  let event: WebhookEvent;
  try {
    event = parseEvent(delivery.body);
  } catch (error) {
    (options.onError ?? console.error)(error);
    return { status: 400, problem: { code: "invalid_payload", detail: "the body is not an event" } };
  }
  try {
    // Only own properties: a type may be called toString.
    const known = (Object.hasOwn(handlers, event.type) ? handlers[event.type] : undefined) as ((event: WebhookEvent, deliveryId: string) => unknown) | undefined;
    await (known ?? handlers.other)?.(event, delivery.deliveryId ?? event.id);
    return { status: 204 };
  } catch (error) {
    (options.onError ?? console.error)(error);
    return { status: 500, problem: { code: "internal", detail: "the event was not handled" } };
  }
}

/**
 * Returns a handler of Fetch API requests, for workers, Deno, Bun, Next.js and Hono. It answers 401 to a request
 * without a valid signature, 400 to a body that is not an event, 413 to a body over 1 MiB, 500 if a function has
 * thrown, and otherwise 204. While a secret is rotated, pass the old and the new one. It throws an InvalidArgumentError
 * if a secret is undefined or empty.
 */
export function webhookHandler(
  secret: string | readonly string[],
  handlers: WebhookHandlers,
  options: WebhookHandlerOptions = {},
): (request: Request) => Promise<Response> {
  const secrets = configured(secret);
  return async (request) => {
    const { status, problem } = await handle(
      {
        signature: request.headers.get("X-Service-Signature"),
        deliveryId: request.headers.get("X-Service-Delivery"),
        body: await read(request.body ?? [], maxBody),
      },
      secrets, handlers, options,
    );
    return problem ? Response.json(problem, { status }) : new Response(null, { status });
  };
}
