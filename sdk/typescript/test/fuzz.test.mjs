// Passes thousands of damaged headers and bodies to the verifier, and compares its results with node:crypto and a
// second, simpler parser of the header. The numbers are the same in each run; QUITTANCE_FUZZ_SEED changes them.
import "./webcrypto.mjs";
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { InvalidEventError, SignatureError, maxHeader, parseEvent, toleranceSeconds, verify } from "../dist/esm/webhook/index.js";

const rounds = 3000;
const seed = Number(process.env.QUITTANCE_FUZZ_SEED ?? 20_240_229);
const codes = ["missing_header", "malformed_header", "stale_timestamp", "bad_signature"];

/** Returns mulberry32, a small generator of numbers below a bound. */
function generator(state) {
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let x = Math.imul(state ^ (state >>> 15), 1 | state);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) % below;
  };
}

const pick = (random, list) => list[random(list.length)];
const bytes = (random, length) => Uint8Array.from({ length }, () => random(256));
const hmac = (secret, timestamp, body) => createHmac("sha256", secret).update(timestamp + ".").update(body).digest("hex");

/** Returns a delivery that is valid. */
function delivery(random) {
  const now = 1_700_000_000 + random(1_000_000);
  const skew = random(2 * toleranceSeconds + 1) - toleranceSeconds;
  const timestamp = pick(random, [(n) => `${n}`, (n) => `+${n}`, (n) => `${n}.0`, (n) => `0${n}`, (n) => `${n}e0`])(now + skew);
  const secret = pick(random, ["whsec_", "", "ü", " "]) + Buffer.from(bytes(random, 1 + random(40))).toString("base64");
  const text = `{"id":"evt_${random(1e9)}","type":"invoice.paid","createdAt":${now},"data":{"label":"Café ☕"}}`;
  const body = random(2) ? new TextEncoder().encode(text) : bytes(random, random(200));
  return { now, secret, timestamp, body, digest: hmac(secret, timestamp, body) };
}

const pieces = [
  ",", "=", "t", "v1", "t=", "v1=", "v2=abc", ",t=1", ",v1=" + "0".repeat(64), " ", "\t", "\n", "\r\n", "\0", "é", "\ud800", "T=1", "V1=a", "NaN", "Infinity",
  "1e9", "1e999", "0x10", "-", "+", ".", "_", "\u00a0", "\ufeff", "a=b,", ",,", "==", "__proto__=1,", "constructor=1,",
];

/** Changes a text a little, somewhere. */
function damageText(random, text) {
  const at = random(text.length + 1);
  const size = random(8);
  switch (random(9)) {
    case 0:
      return text.slice(0, at) + pick(random, pieces) + text.slice(at);
    case 1: {
      const edge = pick(random, [0, text.length, text.indexOf(","), text.indexOf(",") + 1, text.indexOf("=") + 1]);
      return text.slice(0, edge) + pick(random, pieces) + text.slice(edge);
    }
    case 2:
      return text.replace(/\d/g, (digit) => (random(30) ? digit : random(10)));
    case 3:
      return text.slice(0, at) + text.slice(at + 1 + size);
    case 4:
      return text.slice(0, at) + String.fromCharCode(random(pick(random, [128, 0x10000]))) + text.slice(at + 1);
    case 5:
      return text.slice(0, at) + text.slice(at).toUpperCase();
    case 6:
      return text + pick(random, [",", ", ", ""]) + text.slice(at);
    case 7:
      return text.split(",").reverse().join(pick(random, [",", " ,\t", ";", ",,"]));
    default:
      return pick(random, [" ", "\t", ",", "x=" + "y".repeat(random(2 * maxHeader)) + ","]).repeat(size) + text;
  }
}

/** Changes bytes a little, somewhere, and always into different ones. */
function damageBytes(random, body) {
  const at = random(body.length + 1);
  const changed = [...body];
  switch (body.length > at ? random(3) : 0) {
    case 0:
      changed.splice(at, 0, random(256));
      break;
    case 1:
      changed.splice(at, 1);
      break;
    default:
      changed[at] ^= 1 + random(255);
  }
  return Uint8Array.from(changed);
}

/** Parses a header that the verifier may accept; returns undefined for one that it must not accept. */
function read(header) {
  const pairs = header.split(",").map((pair) => /^[ \t]*([^= \t][^=]*)=([^]*?)[ \t]*$/.exec(pair));
  const values = (name) => pairs.filter((p) => p?.[1] === name).map((p) => p[2]);
  const [t, v1] = [values("t"), values("v1")];
  if (pairs.includes(null) || t.length !== 1 || v1.length === 0 || [...t, ...v1].includes("") || new TextEncoder().encode(header).length > maxHeader) {
    return undefined;
  }
  return { t: t[0], v1 };
}

/** Returns ok or the code of the error, and fails for any other error. */
async function outcome(secret, header, body, now) {
  try {
    await verify(secret, header, body, { now: now * 1000 });
    return "ok";
  } catch (error) {
    assert.ok(error instanceof SignatureError, `threw ${error}`);
    assert.ok(codes.includes(error.code), error.code);
    return error.code;
  }
}

/** Runs a check with a new generator for each round, and reports the round that fails. */
function fuzz(name, check, times = rounds) {
  test(name, async () => {
    for (let round = 0; round < times; round++) {
      const random = generator(seed + round * 7919);
      for (let i = 0; i < 3; i++) {
        random(2); // the first numbers of neighboring seeds are similar
      }
      try {
        await check(random);
      } catch (error) {
        throw new Error(`round ${round} of QUITTANCE_FUZZ_SEED=${seed}: ${error.message}`, { cause: error });
      }
    }
  });
}

fuzz("what is valid is accepted, and with another body, secret or time it is not", async (random) => {
  const d = delivery(random);
  const header = `t=${d.timestamp},v1=${d.digest}`;
  const around = Uint8Array.from([1, ...d.body, 2]).subarray(1, d.body.length + 1);
  assert.equal(await outcome(d.secret, header, around, d.now), "ok");
  assert.equal(await outcome(d.secret, header, damageBytes(random, d.body), d.now), "bad_signature");
  assert.equal(await outcome(d.secret + pick(random, [" ", "\n", "x"]), header, d.body, d.now), "bad_signature");
  const later = d.now + pick(random, [-1, 1]) * (2 * toleranceSeconds + 1 + random(1e6));
  assert.equal(await outcome(d.secret, header, d.body, later), "stale_timestamp");
}, rounds / 3);

const seen = new Map();

fuzz("a damaged header is accepted only while it says the same", async (random) => {
  const d = delivery(random);
  let header = `t=${d.timestamp},v1=${d.digest}`;
  for (let n = 1 + random(3); n > 0; n--) {
    header = damageText(random, header);
  }
  const found = read(header);
  const same = found?.t === d.timestamp && found.v1.includes(d.digest);
  const got = await outcome(d.secret, header, d.body, d.now);
  assert.equal(got === "ok", same, `${got} for ${JSON.stringify(header)}`);
  seen.set(got, (seen.get(got) ?? 0) + 1);
});

test("all ends were met", () => {
  for (const code of ["ok", ...codes.slice(1)]) {
    assert.ok(seen.get(code) >= rounds / 200, `${code}: ${seen.get(code)} of ${rounds}`);
  }
});

fuzz("what is no header and no event is refused, and nothing else happens", async (random) => {
  const text = Array.from({ length: random(40) }, () => pick(random, [...pieces, "{", "}", '"id"', ":", '"', "1", "null", "[", "]"])).join("");
  const header = pick(random, [text, "", null, undefined, " \t ".repeat(random(9))]);
  const body = pick(random, [text, bytes(random, random(60)), new TextEncoder().encode(text)]);
  assert.notEqual(await outcome("whsec_secret", header, body, random(2 ** 31)), "ok");
  try {
    assert.equal(typeof parseEvent(body).id, "string");
  } catch (error) {
    assert.ok(error instanceof InvalidEventError, `threw ${error}`);
  }
});

test("a long header costs no more than its length", async () => {
  const blanks = " ".repeat(1 << 20);
  assert.equal(await outcome("whsec_secret", blanks, "", 0), "missing_header");
  assert.equal(await outcome("whsec_secret", "t=0," + blanks + "v1=a" + blanks + "x", "", 0), "malformed_header");
});
