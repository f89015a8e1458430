import { SignatureError } from "./errors.js";

/** How far a signature's time may lie from the receiver's clock, either way; exactly this far is accepted. */
export const toleranceSeconds = 300;

/** The length in bytes of the longest header that is read. */
export const maxHeader = 4096;

/** What a test, or a receiver in the middle of a rotation, changes. */
export interface VerifyOptions {
  /** The receiver's clock, in Unix milliseconds or as a Date; now, when it is left out. */
  now?: number | Date;
}

/**
 * Checks the value of X-Service-Signature against the raw bytes of a body. The secret is the text as it was shown,
 * prefix included; while it is rotated, give the old and the new one.
 *
 * @throws SignatureError when the header is missing, malformed or stale, or was made with none of the secrets.
 */
export async function verify(
  secret: string | readonly string[],
  header: string | null | undefined,
  body: Uint8Array | string,
  options: VerifyOptions = {},
): Promise<void> {
  const signature = parse(header);
  const now = Math.floor(Number(options.now ?? Date.now()) / 1000);
  const skew = Math.abs(now - signature.seconds);
  if (!(skew <= toleranceSeconds)) {
    throw new SignatureError("stale_timestamp", `t is ${skew} s from the clock; at most ${toleranceSeconds} s are accepted`);
  }
  for (const one of typeof secret === "string" ? [secret] : secret) {
    // Anyone can sign with the empty key; it stands for a secret that was not configured.
    if (one !== "" && equal(await digest(one, signature.timestamp, body), signature.digest)) {
      return;
    }
  }
  throw new SignatureError("bad_signature", "the signature was not made over this body with this secret");
}

interface Signature {
  timestamp: string; // t as written, which is what was signed
  seconds: number; // t as a number, finite
  digest: string; // v1 as written
}

const encoder = new TextEncoder();

function parse(header: string | null | undefined): Signature {
  if (header == null || trim(header) === "") {
    throw new SignatureError("missing_header", "the request has no X-Service-Signature");
  }
  if (encoder.encode(header).length > maxHeader) {
    throw malformed(`it is longer than ${maxHeader} bytes`);
  }
  const found: Record<"t" | "v1", string> = { t: "", v1: "" };
  for (const pair of header.split(",")) {
    const trimmed = trim(pair);
    const at = trimmed.indexOf("=");
    if (at <= 0) {
      throw malformed("want name=value pairs with commas between them");
    }
    const name = trimmed.slice(0, at);
    if (name !== "t" && name !== "v1") {
      continue; // room for other schemes beside v1
    }
    const value = trimmed.slice(at + 1);
    // To choose among several would let two receivers read one header differently.
    if (found[name] !== "" || value === "") {
      throw malformed(`${name} must occur once, with a value`);
    }
    found[name] = value;
  }
  if (found.t === "" || found.v1 === "") {
    throw malformed("want both t=<timestamp> and v1=<digest>");
  }
  // Number alone would let blanks, hex and infinities through.
  const seconds = /^[-+.0-9eE]+$/.test(found.t) ? Number(found.t) : NaN;
  if (!Number.isFinite(seconds)) {
    throw malformed("t is not a finite decimal number");
  }
  return { timestamp: found.t, seconds, digest: found.v1 };
}

function malformed(why: string): SignatureError {
  return new SignatureError("malformed_header", `X-Service-Signature cannot be read: ${why}`);
}

/** Takes off the optional blanks of RFC 9110, section 5.6.3, and nothing else that looks like one. */
function trim(text: string): string {
  // A regular expression would try the end anew from each blank.
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
async function digest(secret: string, timestamp: string, body: Uint8Array | string): Promise<string> {
  const raw = typeof body === "string" ? encoder.encode(body) : body;
  const prefix = encoder.encode(timestamp + ".");
  const signed = new Uint8Array(prefix.length + raw.length);
  signed.set(prefix);
  signed.set(raw, prefix.length);
  const key = await crypto.subtle.importKey("raw", encoder.encode(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const mac = new Uint8Array(await crypto.subtle.sign("HMAC", key, signed));
  return Array.from(mac, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Compares in a time that does not tell where two texts of one length differ. */
function equal(a: string, b: string): boolean {
  let differs = a.length ^ b.length;
  for (let i = 0; i < a.length; i++) {
    differs |= a.charCodeAt(i) ^ b.charCodeAt(i % Math.max(1, b.length));
  }
  return differs === 0;
}
