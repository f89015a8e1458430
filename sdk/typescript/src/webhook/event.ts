import type { webhooks } from "../openapi.js";
import { InvalidEventError } from "./errors.js";
import { bytes, verify, type Body, type Header, type VerifyOptions } from "./verify.js";

/** An event. Its type determines its data. More types may be added. */
export type WebhookEvent = {
  [T in keyof webhooks]: webhooks[T]["post"]["requestBody"]["content"]["application/json"];
}[keyof webhooks];

/**
 * Reads the body of a verified request.
 *
 * @throws InvalidEventError when it is not an event. An event of a type that this version does not know is returned: answer it with 2xx.
 */
export function parseEvent(body: Body): WebhookEvent {
  const raw = bytes(body);
  let value: unknown;
  try {
    // A byte order mark is kept, and JSON.parse refuses it, whether the body is bytes or text.
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(raw));
  } catch (cause) {
    throw new InvalidEventError("the body is not JSON", { cause });
  }
  const event = (isObject(value) ? value : {}) as Partial<WebhookEvent>;
  if (
    !isText(event.id) || !isText(event.type) || !Number.isInteger(event.createdAt) || event.createdAt! <= 0 ||
    !isObject(event.data)
  ) {
    throw new InvalidEventError("the body is not an event with id, type, createdAt and data");
  }
  return event as WebhookEvent;
}

/**
 * Verifies the signature of a body, and reads its event.
 *
 * @throws SignatureError as verify does, and InvalidEventError as parseEvent does.
 */
export async function constructEvent(
  body: Body,
  header: Header,
  secret: string | readonly string[],
  options: VerifyOptions = {},
): Promise<WebhookEvent> {
  await verify(secret, header, body, options);
  return parseEvent(body);
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isText(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}
