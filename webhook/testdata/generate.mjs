// Writes vectors.json: node testdata/generate.mjs > testdata/vectors.json
//
// The digests come from node:crypto, which shares no code with the Go package; the results are written down by hand.
import { createHmac } from "node:crypto";

const secret = "whsec_4e1b0f6c9d2a7385";
const t = 1_700_000_000;
const body =
  '{"id":"evt_01hf8z","type":"invoice.paid","createdAt":1700000000,"data":{"invoice":{"id":"inv_01hf8y"}}}';

const sign = (timestamp, bytes = body, key = secret) =>
  createHmac("sha256", key).update(`${timestamp}.`).update(bytes).digest("hex");

const vectors = [];
const add = (basis, name, want, header, options = {}) => {
  const { body: bytes = body, now = t, secret: key = secret, canonical } = options;
  const vector = { name, basis, secret: key, header };
  if (Buffer.isBuffer(bytes)) vector.bodyBase64 = bytes.toString("base64");
  else vector.body = bytes;
  vectors.push({ ...vector, now, want, ...(canonical ? { canonical } : {}) });
};
const contract = (...args) => add("contract", ...args);
const decision = (...args) => add("decision", ...args);

// A header as a signer writes it, over what the vector holds.
const signed = (name, options = {}) => {
  const { body: bytes = body, secret: key = secret, at = t } = options;
  contract(name, "ok", `t=${at},v1=${sign(at, bytes, key)}`, { now: at, ...options, canonical: true });
};

const good = sign(t);
const header = `t=${t},v1=${good}`;
const flip = (hex, index) => hex.slice(0, index) + (hex[index] === "0" ? "1" : "0") + hex.slice(index + 1);

// What a signer makes.
signed("signed now");
signed("empty body", { body: "" });
signed("empty object", { body: "{}" });
signed("body with non-ASCII text", { body: '{"label":"Café ☕ 請求書 🧾"}' });
signed("body that is not UTF-8", { body: Buffer.from([0x00, 0xff, 0xfe, 0x80, 0x0a, 0x0d]) });
signed("body with a final newline", { body: `${body}\n` });
signed("body with insignificant blanks", { body: '{ "id" : "evt_1",\r\n\t"data" : { } }' });
signed("body that starts like a timestamp", { body: "1700000000.1700000000." });
signed("secret without prefix", { secret: "k" });
signed("secret of 64 bytes, a block", { secret: "s".repeat(64) });
signed("secret of 65 bytes, longer than a block", { secret: "s".repeat(65) });
signed("secret with non-ASCII text", { secret: "whsec_schlüssel" });
signed("secret that looks like base64 is not decoded", { secret: "whsec_c2VjcmV0" });
signed("at the epoch", { at: 0 });
signed("after 32 bits of seconds", { at: 4_294_967_296 });

// The tolerance.
contract("299 s old", "ok", header, { now: t + 299 });
contract("300 s old", "ok", header, { now: t + 300 });
contract("301 s old", "stale_timestamp", header, { now: t + 301 });
contract("300 s ahead", "ok", header, { now: t - 300 });
contract("301 s ahead", "stale_timestamp", header, { now: t - 301 });
contract("t in milliseconds", "stale_timestamp", `t=${t}000,v1=${sign(`${t}000`)}`);
contract("t is zero", "stale_timestamp", `t=0,v1=${sign("0")}`);
contract("t is negative", "stale_timestamp", `t=-5,v1=${sign("-5")}`);

// Missing.
contract("no header", "missing_header", null);
contract("empty header", "missing_header", "");
decision("blank header", "missing_header", " \t ");

// Malformed.
contract("t absent", "malformed_header", `v1=${good}`);
contract("v1 absent", "malformed_header", `t=${t}`);
contract("v1 absent, stale", "malformed_header", `t=${t}`, { now: t + 9999 });
contract("only the digest", "malformed_header", good);
contract("free text", "malformed_header", "not a signature");
contract("t is a word", "malformed_header", `t=now,v1=${sign("now")}`);
contract("t is NaN", "malformed_header", `t=NaN,v1=${sign("NaN")}`);
contract("t is Infinity", "malformed_header", `t=Infinity,v1=${sign("Infinity")}`);
contract("t is -Infinity", "malformed_header", `t=-Infinity,v1=${sign("-Infinity")}`);
contract("t is inf", "malformed_header", `t=inf,v1=${sign("inf")}`);
contract("t is a date", "malformed_header", `t=2023-11-14T22:13:20Z,v1=${sign("2023-11-14T22:13:20Z")}`);
contract("t has a letter behind", "malformed_header", `t=${t}s,v1=${sign(`${t}s`)}`);
contract("t has two fractions", "malformed_header", `t=${t}.0.0,v1=${sign(`${t}.0.0`)}`);
decision("t is empty", "malformed_header", `t=,v1=${sign("")}`);
decision("v1 is empty", "malformed_header", `t=${t},v1=`);
decision("t overflows a float64", "malformed_header", `t=1e400,v1=${sign("1e400")}`);
decision("t is hexadecimal", "malformed_header", `t=0x6553F100,v1=${sign("0x6553F100")}`);
decision("t has underscores", "malformed_header", `t=1_700_000_000,v1=${sign("1_700_000_000")}`);
decision("t has a blank inside", "malformed_header", `t= ${t},v1=${sign(` ${t}`)}`);
decision("t is in full-width digits", "malformed_header", `t=１７０００００００,v1=${sign("１７０００００００")}`);
decision("two t", "malformed_header", `t=${t},t=${t},v1=${good}`);
decision("two v1, the first good", "ok", `t=${t},v1=${good},v1=${flip(good, 0)}`);
decision("two v1, the last good", "ok", `t=${t},v1=${flip(good, 0)},v1=${good}`);
decision("two v1, none good", "bad_signature", `t=${t},v1=${flip(good, 0)},v1=${flip(good, 63)}`);
decision("two v1 of two secrets, the second ours", "ok", `t=${t},v1=${sign(t, body, "whsec_other")},v1=${good}`);
decision("two v1, the last empty", "malformed_header", `t=${t},v1=${good},v1=`);
decision("two t, the first empty", "malformed_header", `t=,t=${t},v1=${good}`);
decision("two v1, the first empty", "malformed_header", `t=${t},v1=,v1=${good}`);
decision("an item without =", "malformed_header", `${header},extra`);
decision("an item without name", "malformed_header", `${header},=extra`);
decision("an empty item", "malformed_header", `t=${t},,v1=${good}`);
decision("comma at the end", "malformed_header", `${header},`);
decision("names in upper case", "malformed_header", `T=${t},V1=${good}`);
decision("semicolon between", "malformed_header", `t=${t};v1=${good}`);
decision("blank before =", "malformed_header", `t=${t},v1 =${good}`);
decision("4096 bytes", "ok", `${header},x=`.padEnd(4096, "y"));
decision("4097 bytes", "malformed_header", `${header},x=`.padEnd(4097, "y"));

// Numbers that are finite, though no signer of ours writes them.
decision("t has a fraction", "ok", `t=${t}.25,v1=${sign(`${t}.25`)}`);
decision("t has a fraction, within 300 s", "ok", `t=${t}.5,v1=${sign(`${t}.5`)}`, { now: t + 300 });
decision("t has a fraction, beyond 300 s", "stale_timestamp", `t=${t}.5,v1=${sign(`${t}.5`)}`, { now: t - 300 });
decision("t has an exponent", "ok", `t=1.7e9,v1=${sign("1.7e9")}`);
decision("t has a plus sign", "ok", `t=+${t},v1=${sign(`+${t}`)}`);
decision("t has leading zeros", "ok", `t=000${t},v1=${sign(`000${t}`)}`);
decision("t is the largest float64", "stale_timestamp", `t=1.7976931348623157e308,v1=${good}`);
decision("t is beyond 64 bits", "stale_timestamp", `t=99999999999999999999,v1=${good}`);
contract("t is signed as written, not as a number", "bad_signature", `t=1.7e9,v1=${good}`);

// The form of the list.
decision("v1 before t", "ok", `v1=${good},t=${t}`);
decision("an unknown pair", "ok", `t=${t},v0=abc,v1=${good},kid=7`);
decision("an unknown pair with an empty value", "ok", `${header},v2=`);
decision("blanks around the pairs", "ok", ` t=${t} ,\tv1=${good}  `);

// The digest.
contract("first digit changed", "bad_signature", `t=${t},v1=${flip(good, 0)}`);
contract("last digit changed", "bad_signature", `t=${t},v1=${flip(good, 63)}`);
contract("digest cut by one digit", "bad_signature", `t=${t},v1=${good.slice(0, 63)}`);
contract("digest longer by one digit", "bad_signature", `t=${t},v1=${good}0`);
contract("digest in upper case", "bad_signature", `t=${t},v1=${good.toUpperCase()}`);
contract("digest is not hex", "bad_signature", `t=${t},v1=${"z".repeat(64)}`);
contract("digest in base64", "bad_signature", `t=${t},v1=${Buffer.from(good, "hex").toString("base64")}`);
contract("another secret", "bad_signature", header, { secret: "whsec_4e1b0f6c9d2a7386" });
contract("key without the prefix", "bad_signature", `t=${t},v1=${sign(t, body, secret.slice(6))}`);
contract("another body", "bad_signature", header, { body: body.replace("paid", "void") });
contract("body written anew with blanks", "bad_signature", header, { body: JSON.stringify(JSON.parse(body), null, 2) });
contract("body with a newline added", "bad_signature", header, { body: `${body}\n` });
contract("body cut off", "bad_signature", header, { body: body.slice(0, -1) });
contract("another t", "bad_signature", `t=${t + 1},v1=${good}`);
contract("signed without t", "bad_signature",
  `t=${t},v1=${createHmac("sha256", secret).update(body).digest("hex")}`);
contract("signed without the dot", "bad_signature",
  `t=${t},v1=${createHmac("sha256", secret).update(t + body).digest("hex")}`);
contract("SHA-512 in place of SHA-256", "bad_signature",
  `t=${t},v1=${createHmac("sha512", secret).update(`${t}.${body}`).digest("hex")}`);
contract("stale and bad", "stale_timestamp", `t=${t},v1=${flip(good, 0)}`, { now: t + 301 });
decision("empty secret", "bad_signature", `t=${t},v1=${sign(t, body, "")}`, { secret: "" });

process.stdout.write(`${JSON.stringify({ toleranceSeconds: 300, vectors }, null, 2)}\n`);
