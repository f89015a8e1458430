import { read } from "../bytes.js";
import { InvalidArgumentError } from "../error.js";
import { handle, maxBody, type WebhookHandlerOptions, type WebhookHandlers } from "./handler.js";
import { configured } from "./verify.js";

/** A request of node:http, or of Express. */
export interface NodeRequest extends AsyncIterable<Uint8Array> {
  headers: Record<string, string | string[] | undefined>;
  /** The body, if a body parser has consumed it. */
  body?: unknown;
}

/** A response of node:http, or of Express. */
export interface NodeResponse {
  statusCode: number;
  setHeader(name: string, value: string): unknown;
  end(body?: string): unknown;
}

/**
 * Returns a handler for node:http and for Express, which answers like webhookHandler. It needs the unchanged body:
 * mount it before express.json(), or after express.raw({ type: "application/json" }).
 */
export function nodeWebhookHandler(
  secret: string | readonly string[],
  handlers: WebhookHandlers,
  options: WebhookHandlerOptions = {},
): (request: NodeRequest, response: NodeResponse) => Promise<void> {
  const secrets = configured(secret);
  return async (request, response) => {
    let answer;
    try {
      answer = await handle(
        {
          signature: header(request, "x-service-signature"),
          deliveryId: header(request, "x-service-delivery"),
          body: await raw(request),
        },
        secrets, handlers, options,
      );
    } catch (error) {
      (options.onError ?? console.error)(error);
      answer = { status: 500 };
    }
    response.statusCode = answer.status;
    if (answer.problem) {
      response.setHeader("Content-Type", "application/json");
    }
    response.end(answer.problem && JSON.stringify(answer.problem));
  };
}

/** Returns a header's lines as one list (RFC 9110, section 5.3). */
function header(request: NodeRequest, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}

async function raw(request: NodeRequest): Promise<Uint8Array | string | undefined> {
  if (request.body === undefined) {
    return read(request, maxBody);
  }
  if (request.body instanceof Uint8Array || typeof request.body === "string") {
    return request.body;
  }
  throw new InvalidArgumentError("a body parser has read the webhook: mount its handler before express.json()");
}
