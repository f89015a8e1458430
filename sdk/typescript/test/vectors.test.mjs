import "./webcrypto.mjs";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Readable } from "node:stream";
import { SignatureError, nodeWebhookHandler, parseEvent, verify, webhookHandler } from "../dist/esm/webhook/index.js";

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
    assert.throws(() => parseEvent(body), TypeError);
  }
});

const post = (body, header) =>
  new Request("https://shop.example/webhooks", {
    method: "POST", body, headers: header ? { "X-Service-Signature": header, "X-Service-Delivery": "dlv_1" } : {},
  });

/** Posts to a handler of node:http. parsed is what a body parser has left. */
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
