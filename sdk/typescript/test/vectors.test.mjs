import "./webcrypto.mjs";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Readable } from "node:stream";
import {
  InvalidArgumentError, InvalidEventError, SignatureError, constructEvent, nodeWebhookHandler, parseEvent, signEvent, verify, webhookHandler,
} from "../dist/esm/webhook/index.js";

const file = new URL("../../../webhook/testdata/vectors.json", import.meta.url);
const { toleranceSeconds, vectors } = JSON.parse(readFileSync(file, "utf8"));

const bodyOf = (v) => (v.bodyBase64 === undefined ? v.body : new Uint8Array(Buffer.from(v.bodyBase64, "base64")));

async function outcome(secret, header, body, nowSeconds) {
  try {
    await verify(secret, header, body, { now: nowSeconds * 1000 });
    return "ok";
  } catch (error) {
    assert.ok(error instanceof SignatureError, String(error));
    assert.equal(error.status, 401);
    return error.code;
  }
}

test("the tolerance is that of the vectors", () => assert.equal(toleranceSeconds, 300));

assert.ok(vectors.length >= 90, "the vectors are not all there");
for (const v of vectors) {
  test(v.name, async () => assert.equal(await outcome(v.secret, v.header, bodyOf(v), v.now), v.want));
}

const good = vectors.find((v) => v.want === "ok" && v.body?.includes("invoice.paid"));

test("the clock's fraction of a second does not count", async () => {
  await verify(good.secret, good.header, good.body, { now: new Date(good.now * 1000 + 300_999) });
  await assert.rejects(verify(good.secret, good.header, good.body, { now: good.now * 1000 + 301_000 }), { code: "stale_timestamp" });
  await verify(good.secret, good.header, good.body, { now: good.now * 1000 - 300_000 });
  await assert.rejects(verify(good.secret, good.header, good.body, { now: good.now * 1000 - 300_001 }), { code: "stale_timestamp" });
});

test("any of several secrets will do, and an empty one never", async () => {
  const now = good.now * 1000;
  await verify(["whsec_new", good.secret], good.header, good.body, { now });
  await assert.rejects(verify([], good.header, good.body, { now }), { code: "bad_signature" });
  await assert.rejects(verify(["", "whsec_new"], good.header, good.body, { now }), { code: "bad_signature" });
});

test("one changed character anywhere is noticed", async () => {
  for (let i = 0; i < good.body.length; i++) {
    const changed = good.body.slice(0, i) + String.fromCharCode(good.body.charCodeAt(i) ^ 1) + good.body.slice(i + 1);
    assert.equal(await outcome(good.secret, good.header, changed, good.now), "bad_signature");
  }
});

test("an event is read, and what is none refused", () => {
  assert.equal(parseEvent(good.body).type, "invoice.paid");
  for (const body of ["", "[]", "null", "1", "{}", '{"id":"a","type":"b","createdAt":"c","data":{}}', '{"id":"a","type":"b","createdAt":1,"data":null}', new Uint8Array([0xff])]) {
    assert.throws(() => parseEvent(body), InvalidEventError);
  }
  const bytes = new TextEncoder().encode("\ufeff" + good.body);
  for (const body of ["\ufeff" + good.body, bytes, bytes.buffer]) { // a byte order mark, which JSON has not
    assert.throws(() => parseEvent(body), InvalidEventError);
  }
});

test("bodies are bytes or text, and headers texts; what else they are is said", async () => {
  const now = good.now * 1000;
  const bytes = new TextEncoder().encode(good.body);
  for (const body of [bytes, bytes.buffer, Buffer.from(good.body), new DataView(bytes.buffer), good.body]) {
    await verify(good.secret, good.header, body, { now });
    assert.equal((await constructEvent(body, good.header, good.secret, { now })).type, "invoice.paid");
  }
  for (const body of [JSON.parse(good.body), null, undefined, 7, [good.body], true]) {
    await assert.rejects(verify(good.secret, good.header, body, { now }), InvalidArgumentError);
    assert.throws(() => parseEvent(body), InvalidArgumentError);
  }
  await verify(good.secret, [good.header], good.body, { now });
  await verify(good.secret, good.header.split(","), good.body, { now });
  await assert.rejects(verify(good.secret, [good.header, good.header], good.body, { now }), { code: "malformed_header" });
  await assert.rejects(verify(good.secret, [], good.body, { now }), { code: "missing_header" });
  for (const header of [7, {}, true, Symbol("t")]) {
    await assert.rejects(verify(good.secret, header, good.body, { now }), { name: "SignatureError", code: "malformed_header" });
  }
  for (const secret of [undefined, null, 7, {}, [undefined], [good.secret, null]]) {
    await assert.rejects(verify(secret, good.header, good.body, { now }), InvalidArgumentError);
  }
});

test("an event is constructed from a valid delivery only", async () => {
  const now = good.now * 1000;
  await assert.rejects(constructEvent(good.body + " ", good.header, good.secret, { now }), { code: "bad_signature" });
  await assert.rejects(constructEvent(good.body, undefined, good.secret, { now }), { code: "missing_header" });
  await assert.rejects(constructEvent("{}", await signEvent("{}", "k"), "k"), InvalidEventError);
});

test("a signature is made as the service makes it, with one v1 for each secret", async () => {
  for (const v of vectors.filter((v) => v.canonical)) {
    assert.equal(await signEvent(bodyOf(v), v.secret, { now: v.now * 1000 }), v.header);
  }
  const header = await signEvent(good.body, ["whsec_old", "whsec_new"]);
  assert.match(header, /^t=\d+,v1=[0-9a-f]{64},v1=[0-9a-f]{64}$/);
  await verify("whsec_old", header, good.body);
  await verify("whsec_new", header, good.body);
  await assert.rejects(verify("whsec_other", header, good.body), { code: "bad_signature" });
  for (const secret of ["", [], undefined, ["whsec_new", ""]]) {
    await assert.rejects(signEvent(good.body, secret), InvalidArgumentError);
  }
});

const post = (body, header) =>
  new Request("https://shop.example/webhooks", {
    method: "POST", body, headers: header ? { "X-Service-Signature": header, "X-Service-Delivery": "dlv_1" } : {},
  });

/** Posts to a handler of node:http. parsed is the body as a body parser left it. */
async function nodePost(handler, body, header, parsed) {
  const request = Object.assign(Readable.from(parsed === undefined ? [Buffer.from(body)] : []), {
    headers: header ? { "x-service-signature": header, "x-service-delivery": "dlv_1" } : {}, body: parsed,
  });
  const headers = {};
  let text;
  const response = { statusCode: 0, setHeader: (name, value) => (headers[name] = value), end: (t) => (text = t) };
  await handler(request, response);
  return { status: response.statusCode, json: () => JSON.parse(text) };
}

const empty = vectors.find((v) => v.want === "ok" && v.body === "{}");
const long = "x".repeat((1 << 20) + 1);

for (const [kind, make, send] of [
  ["webhookHandler", webhookHandler, (handler, ...args) => handler(post(...args))],
  ["nodeWebhookHandler", nodeWebhookHandler, nodePost],
]) {
  test(`${kind} is not made without a secret`, () => {
    for (const secret of [undefined, null, "", [], [""], ["whsec_new", undefined], ["whsec_new", ""], 7]) {
      assert.throws(() => make(secret, {}), InvalidArgumentError);
    }
  });

  test(`${kind} calls only functions that it was given`, async () => {
    for (const type of ["toString", "__proto__", "constructor", "hasOwnProperty"]) {
      const body = JSON.stringify({ id: "evt_1", type, createdAt: 1, data: {} });
      const got = [];
      const handler = make("whsec_1", { other: (event) => got.push(event.type) }, { onError: (error) => got.push(error) });
      assert.equal((await send(handler, body, await signEvent(body, "whsec_1"))).status, 204);
      assert.deepEqual(got, [type]);
    }
  });

  test(`${kind} answers as the README says`, async () => {
    const got = [], errors = [];
    const options = { now: good.now * 1000, onError: (error) => errors.push(error.message) };
    const keep = (event, id) => got.push([event.type, event.data.invoice.id, id]);
    const handler = make(["whsec_new", good.secret], { "invoice.paid": keep }, options);
    assert.equal((await send(handler, good.body, good.header)).status, 204);
    const id = JSON.parse(good.body).data.invoice.id;
    assert.deepEqual(got, [["invoice.paid", id, "dlv_1"]]);

    const refused = await send(handler, good.body, undefined);
    assert.equal(refused.status, 401);
    assert.equal((await refused.json()).code, "missing_header");
    assert.equal((await send(handler, good.body + " ", good.header)).status, 401);
    assert.equal((await send(handler, long, good.header)).status, 413);
    assert.equal((await send(handler, long.slice(1), good.header)).status, 401);
    const none = make(empty.secret, { other: keep }, { ...options, now: empty.now * 1000 });
    assert.equal((await send(none, empty.body, empty.header)).status, 400);
    assert.equal(got.length, 1);
    assert.equal(errors.length, 1);

    const failing = make(good.secret, { "invoice.paid": () => Promise.reject(new Error("no stock")) }, options);
    assert.equal((await send(failing, good.body, good.header)).status, 500);
    assert.equal(errors[1], "no stock");
    assert.equal((await send(make(good.secret, {}, options), good.body, good.header)).status, 204);
    assert.equal((await send(make(good.secret, { other: keep }, options), good.body, good.header)).status, 204);
    assert.equal(got.length, 2);
  });
}

test("nodeWebhookHandler takes a raw body, and no parsed one", async () => {
  const errors = [];
  const handler = nodeWebhookHandler(good.secret, {}, { now: good.now * 1000, onError: (error) => errors.push(error.message) });
  assert.equal((await nodePost(handler, "", good.header, Buffer.from(good.body))).status, 204);
  assert.equal((await nodePost(handler, "", good.header, good.body)).status, 204);
  assert.equal((await nodePost(handler, "", good.header, JSON.parse(good.body))).status, 500);
  assert.match(errors[0], /before express.json/);
});

const events = JSON.parse(readFileSync(new URL("../../../webhook/testdata/events.json", import.meta.url), "utf8"));
assert.ok(events.length >= 40, "the bodies of events are not all there");
for (const v of events) {
  test(`event: ${v.name}`, () => {
    for (const body of v.body === undefined ? [Buffer.from(v.bodyBase64, "base64")] : [v.body, Buffer.from(v.body), new Uint8Array(Buffer.from(v.body)).buffer]) {
      if (v.valid) {
        assert.equal(parseEvent(body).id, "evt_1");
      } else {
        assert.throws(() => parseEvent(body), InvalidEventError);
      }
    }
  });
}
