import { InvalidArgumentError } from "../error.js";
import { SignatureError } from "./errors.js";

/**
 * The maximum difference between a signature's time and the receiver's clock; a difference of exactly this is accepted.
 */
export const toleranceSeconds = 300;

/** The length in bytes of the longest header that is read. */
export const maxHeader = 4096;

/** A raw body, exactly as received. */
export type Body = Uint8Array | ArrayBuffer | string;

/** The value of X-Service-Signature; the lines of several headers count as one list (RFC 9110, section 5.3). */
export type Header = string | readonly string[] | null | undefined;

/** Options for a test, or for a receiver during a rotation. */
export interface VerifyOptions {
  /** The receiver's clock, in Unix milliseconds or as a Date; now, when it is left out. */
  now?: number | Date;
}

/**
 * Checks the value of X-Service-Signature against the raw bytes of a body. The secret is the text as it was shown,
 * including its prefix; while it is rotated, pass the old and the new one. If the header has several v1, one must
 * match.
 *
 * @throws SignatureError when the header is missing, malformed or stale, or was not made with any of the secrets.
 * @throws InvalidArgumentError when a secret is not a text, or the body neither bytes nor text.
 */
export async function verify(secret: string | readonly string[], header: Header, body: Body, options: VerifyOptions = {}): Promise<void> {
  const secrets = texts(secret);
  const raw = bytes(body);
  const signature = parse(header);
  const now = Math.floor(Number(options.now ?? Date.now()) / 1000);
  const skew = Math.abs(now - signature.seconds);
  if (!(skew <= toleranceSeconds)) {
    throw new SignatureError("stale_timestamp", `t is ${skew} s from the clock; at most ${toleranceSeconds} s are accepted`);
  }
  for (const one of secrets) {
    // Anyone can sign with the empty key; it stands for a secret that was not configured.
    const want = one === "" ? undefined : await digest(one, signature.timestamp, raw);
    if (want !== undefined && signature.digests.some((given) => equal(want, given))) {
      return;
    }
  }
  throw new SignatureError("bad_signature", "the signature was not made over this body with this secret");
}

/**
 * Returns the value of X-Service-Signature for a body, signed now. It is for tests of a receiver: the service signs its
 * deliveries. With several secrets there is one v1 for each.
 */
export async function signEvent(body: Body, secret: string | readonly string[], options: VerifyOptions = {}): Promise<string> {
  const timestamp = String(Math.floor(Number(options.now ?? Date.now()) / 1000));
  const raw = bytes(body);
  const digests = await Promise.all(configured(secret).map((one) => digest(one, timestamp, raw)));
  return [`t=${timestamp}`, ...digests.map((hex) => `v1=${hex}`)].join(",");
}

/**
 * Returns secrets that are all configured. Otherwise it throws an InvalidArgumentError, so that a server does not start
 * with them.
 */
export function configured(secret: string | readonly string[]): readonly string[] {
  const secrets = texts(secret);
  if (secrets.length === 0 || secrets.includes("")) {
    throw new InvalidArgumentError("the secret of a webhook is empty; pass what the service showed when the endpoint was set, such as whsec_…");
  }
  return secrets;
}

function texts(secret: unknown): readonly string[] {
  const all: readonly unknown[] = Array.isArray(secret) ? secret : [secret];
  for (const one of all) {
    if (typeof one !== "string") {
      throw new InvalidArgumentError(`the secret of a webhook must be a text; it is ${kind(one)}. Is the environment variable set?`);
    }
  }
  return all as readonly string[];
}

/** Returns the bytes of a body. */
export function bytes(body: Body): Uint8Array {
  if (typeof body === "string") {
    return encoder.encode(body);
  }
  if (ArrayBuffer.isView(body)) {
    return new Uint8Array(body.buffer, body.byteOffset, body.byteLength);
  }
  if (body instanceof ArrayBuffer) {
    return new Uint8Array(body);
  }
  throw new InvalidArgumentError(`the body must be the raw bytes or the text of the request; it is ${kind(body)}. Has a body parser read it before?`);
}

function kind(value: unknown): string {
  return value === null || value === undefined ? String(value) : `of type ${typeof value}`;
}

interface Signature {
  timestamp: string; // t as written, which is the signed text
  seconds: number; // t as a number, finite
  digests: readonly string[]; // each v1 as written; a sender may sign with two secrets during a rotation
}

const encoder = new TextEncoder();

function parse(lines: Header): Signature {
  const header: unknown = Array.isArray(lines) ? lines.join(",") : lines;
  if (header == null || (typeof header === "string" && trim(header) === "")) {
    throw new SignatureError("missing_header", "the request has no X-Service-Signature");
  }
  if (typeof header !== "string") {
    throw malformed(`it is ${kind(header)}, not a text`);
  }
  if (encoder.encode(header).length > maxHeader) {
    throw malformed(`it is longer than ${maxHeader} bytes`);
  }
  let timestamp = "";
  const digests: string[] = [];
  for (const pair of header.split(",")) {
    const trimmed = trim(pair);
    const at = trimmed.indexOf("=");
    if (at <= 0) {
      throw malformed("want name=value pairs with commas between them");
    }
    const name = trimmed.slice(0, at);
    const value = trimmed.slice(at + 1);
    if (name !== "t" && name !== "v1") {
      continue; // other schemes than v1 may be added
    }
    if (value === "") {
      throw malformed(`${name} has no value`);
    }
    if (name === "v1") {
      digests.push(value);
    } else if (timestamp === "") {
      timestamp = value;
    } else {
      throw malformed("t must occur once"); // with several, two receivers could read one header differently
    }
  }
  if (timestamp === "" || digests.length === 0) {
    throw malformed("want both t=<timestamp> and v1=<digest>");
  }
  // Number also accepts blanks, hex and infinities.
  const seconds = /^[-+.0-9eE]+$/.test(timestamp) ? Number(timestamp) : NaN;
  if (!Number.isFinite(seconds)) {
    throw malformed("t is not a finite decimal number");
  }
  return { timestamp, seconds, digests };
}

function malformed(why: string): SignatureError {
  return new SignatureError("malformed_header", `X-Service-Signature cannot be read: ${why}`);
}

/** Removes only the optional white space of RFC 9110, section 5.6.3. */
function trim(text: string): string {
  // A regular expression would search for the end again from each blank.
  let [start, end] = [0, text.length];
  while (start < end && blank(text, start)) {
    start++;
  }
  while (start < end && blank(text, end - 1)) {
    end--;
  }
  return text.slice(start, end);
}

function blank(text: string, at: number): boolean {
  return text[at] === " " || text[at] === "\t";
}

/** Returns the lower-case hex HMAC-SHA256 over the timestamp, a dot and the body. */
async function digest(secret: string, timestamp: string, raw: Uint8Array): Promise<string> {
  const prefix = encoder.encode(timestamp + ".");
  const signed = new Uint8Array(prefix.length + raw.length);
  signed.set(prefix);
  signed.set(raw, prefix.length);
  const key = await crypto.subtle.importKey("raw", encoder.encode(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const mac = new Uint8Array(await crypto.subtle.sign("HMAC", key, signed));
  return Array.from(mac, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Compares in a time that does not reveal where two texts of the same length differ. */
function equal(a: string, b: string): boolean {
  let differs = a.length ^ b.length;
  for (let i = 0; i < a.length; i++) {
    differs |= a.charCodeAt(i) ^ b.charCodeAt(i % Math.max(1, b.length));
  }
  return differs === 0;
}
