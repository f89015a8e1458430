import "./webcrypto.mjs";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { SignatureError, parseEvent, receive, verify } from "../dist/index.js";

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

test("receive answers as the README says", async () => {
  const options = { now: good.now * 1000 };
  const got = [];
  const keep = (event, id) => void got.push([event.type, id]);
  assert.equal((await receive(post(good.body, good.header), good.secret, keep, options)).status, 204);
  assert.deepEqual(got, [["invoice.paid", "dlv_1"]]);

  const refused = await receive(post(good.body, undefined), good.secret, keep, options);
  assert.equal(refused.status, 401);
  assert.equal((await refused.json()).code, "missing_header");
  assert.equal((await receive(post(good.body + " ", good.header), good.secret, keep, options)).status, 401);

  const none = vectors.find((v) => v.want === "ok" && v.body === "{}");
  assert.equal((await receive(post(none.body, none.header), none.secret, keep, { now: none.now * 1000 })).status, 400);

  const long = "x".repeat((1 << 20) + 1);
  assert.equal((await receive(post(long, good.header), good.secret, keep, options)).status, 413);
  assert.equal((await receive(post(long.slice(1), good.header), good.secret, keep, options)).status, 401);
  assert.equal(got.length, 1);

  await assert.rejects(receive(post(good.body, good.header), good.secret, () => { throw new Error("no stock"); }, options), /no stock/);
});
