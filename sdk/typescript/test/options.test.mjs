import "./webcrypto.mjs";
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import {
  ConnectionError, EventsLostError, InvalidArgumentError, InvalidResponseError, Quittance, QuittanceError, ResponseError, TimeoutError, formatAmount,
  maxResponseBytes, parseAmount,
} from "../dist/esm/index.js";
import { load } from "js-yaml";
import { checked } from "../dist/esm/shape.js";
import { InvalidEventError, SignatureError } from "../dist/esm/webhook/index.js";

const ok = (body, status = 200, headers = {}) => () => Response.json(body, { status, headers });
const problem = (status, code, members = {}) => () => Response.json({ status, code, detail: "D.", ...members }, { status });
const order = { amount: "1", currency: "USDC", chainKey: "base", expiresAt: 2 };
const created = ok({ id: "inv_1", onChainInvoiceId: "1", checkoutUrl: "/checkout/inv_1", invoice: { id: "inv_1" } }, 201);
const invoice = ok({ invoice: { id: "inv_1" } });

/** Returns a client of a service that gives the outcomes in turn, and what it was sent. */
function client(outcomes, options = {}) {
  const sent = [];
  const quittance = new Quittance({
    url: "https://pay.example", key: "qk_1", random: () => 0, sleep: async () => {}, ...options,
    fetch: async (request) => {
      sent.push(request);
      assert.ok(outcomes.length >= sent.length, "one request too many");
      return outcomes[sent.length - 1](request);
    },
  });
  return { quittance, sent };
}

const text = (body, type = "application/json", status = 200) => () => new Response(body, { status, headers: { "Content-Type": type } });
const foreign = {
  "another object": ok({}), "an array": ok([]), null: ok(null), "a member of another type": ok({ invoice: "inv_1", id: 1 }),
  "an object without its id": ok({ invoice: {}, id: "inv_1", onChainInvoiceId: "1", checkoutUrl: "/" }), "a page": text("<html>", "text/html"),
  "a truncated object": text('{"invoice":{"id":"inv'), "no body": text(""), "no content": () => new Response(null, { status: 204 }),
};

for (const [name, outcome] of Object.entries(foreign)) {
  test(`a success with ${name} is no success, and repeated if that does nothing twice`, async () => {
    const { quittance, sent } = client([outcome, created, outcome, invoice]);
    assert.equal((await quittance.createInvoice(order)).id, "inv_1");
    assert.equal(sent[0].headers.get("Idempotency-Key"), sent[1].headers.get("Idempotency-Key"));
    assert.equal((await quittance.getInvoice("inv_1")).id, "inv_1");
    const failing = client([outcome, outcome, outcome, outcome]);
    await assert.rejects(failing.quittance.getInvoice("inv_1"), (error) => error instanceof InvalidResponseError && error.attempts === 4 && error.status >= 200);
    const once = client([outcome]);
    await assert.rejects(once.quittance.createKey({ name: "x", scopes: ["read"] }), InvalidResponseError);
    assert.equal(once.sent.length, 1);
  });
}

test("lists, deletions and other media types are checked too", async () => {
  for (const call of [
    (q) => q.listInvoices().next(), (q) => q.listCustomers().page(), (q) => q.eventsAfter("start"), (q) => q.revokeKey("key_1"), (q) => q.getMerchantLogo("acme"),
    (q) => q.exportInvoices().next(), (q) => q.streamEvents().next(), (q) => q.getServiceStatus(), (q) => q.putWebhook("acme", { url: "https://x.example" }),
  ]) {
    for (const outcome of [ok({ events: [{}], invoices: [{}] }), foreign["a page"]]) {
      await assert.rejects(call(client([outcome, outcome], { retries: 1 }).quittance), InvalidResponseError);
    }
  }
  const png = Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0xff]);
  const logo = await client([text(png, "image/png")]).quittance.getMerchantLogo("acme");
  assert.deepEqual(new Uint8Array(await logo.arrayBuffer()), png);
});

test("what openapi.yaml shows as a response is one", () => {
  const api = load(readFileSync(new URL("../../../openapi.yaml", import.meta.url), "utf8"));
  const resolve = (node) => (node.$ref ? resolve(node.$ref.slice(2).split("/").reduce((at, name) => at[name], api)) : node);
  let shown = 0;
  for (const [path, item] of Object.entries(api.paths)) {
    for (const [method, { responses }] of Object.entries(item).filter(([, operation]) => operation.operationId)) {
      for (const response of Object.entries(responses).filter(([status]) => status.startsWith("2")).map(([, r]) => resolve(r))) {
        for (const example of Object.values(response.content?.["application/json"]?.examples ?? {})) {
          const operation = `${method.toUpperCase()} ${path}`;
          const body = new TextEncoder().encode(JSON.stringify(resolve(example).value));
          assert.equal(checked(operation)(new Response(), body), undefined, operation);
          shown++;
        }
      }
    }
  }
  assert.ok(shown > 50, `${shown} examples`);
});

test("a body is read up to a bound", async () => {
  const invoices = (bytes) => text(`{"invoices":[]${" ".repeat(bytes - 15)}}`);
  assert.deepEqual(await client([invoices(1000)], { maxResponseBytes: 1000 }).quittance.listInvoices().toArray({ limit: 1 }), []);
  const { quittance, sent } = client([invoices(1001)], { maxResponseBytes: 1000 });
  await assert.rejects(quittance.listInvoices().next(), (error) => error instanceof InvalidResponseError && /more than 1000 bytes/.test(error.message));
  assert.equal(sent.length, 1);
  assert.equal(maxResponseBytes, 64 << 20);
  let pulled = 0;
  const endless = () => new Response(new ReadableStream({ pull: (c) => (pulled++, c.enqueue(new Uint8Array(1 << 20))) }));
  await assert.rejects(client([endless]).quittance.getInvoice("inv_1"), InvalidResponseError);
  assert.ok(pulled <= 66, `${pulled} MiB were read`);
  const failed = () => new Response(new ReadableStream({ pull: (c) => c.enqueue(new Uint8Array(1 << 20)) }), { status: 400 });
  await assert.rejects(client([failed]).quittance.getInvoice("inv_1"), { status: 400, code: undefined });
  const line = () => new Response(new ReadableStream({ pull: (c) => c.enqueue(new Uint8Array(1 << 20)) }), { headers: { "Content-Type": "text/event-stream" } });
  await assert.rejects(client([line]).quittance.streamEvents().next(), /more than 2097152 characters/);
});

test("every error is a QuittanceError, and says which call failed after how many attempts", async () => {
  const broken = () => { throw new TypeError("fetch failed", { cause: new Error("read ECONNRESET") }); };
  const { quittance } = client([broken, broken, broken, broken]);
  await assert.rejects(quittance.getInvoice("inv_1", { retries: 3 }), (error) => {
    assert.ok(error instanceof ConnectionError && error instanceof QuittanceError && error.cause instanceof TypeError);
    assert.equal(error.message, "GET /api/invoices/inv_1: no complete response: fetch failed: read ECONNRESET (4 attempts)");
    assert.deepEqual([error.method, error.path, error.attempts, error.unsent], ["GET", "/api/invoices/inv_1", 4, false]);
    return true;
  });
  await assert.rejects(client([broken]).quittance.createKey({ name: "x", scopes: ["read"] }), { method: "POST", path: "/api/keys", attempts: 1 });
  await assert.rejects(client([broken, broken], { retries: 1 }).quittance.exportInvoices().next(), { name: "ConnectionError", path: "/api/invoices", attempts: 2 });
  const hangs = () => new Promise(() => {});
  await assert.rejects(client([hangs], { timeoutMs: 1 }).quittance.getInvoice("inv_1"), (error) => error instanceof TimeoutError && error.path === "/api/invoices/inv_1");
  for (const of of [ConnectionError, EventsLostError, InvalidArgumentError, InvalidEventError, InvalidResponseError, ResponseError, SignatureError, TimeoutError]) {
    assert.ok(of.prototype instanceof QuittanceError && of.prototype instanceof Error, of.name);
  }
});

test("a problem keeps all of its members", async () => {
  const taken = { invoiceId: "inv_2", reason: "restored", after: "c1", title: "T", type: "https://t.example", more: [1] };
  await assert.rejects(client([problem(409, "reference_taken", taken)]).quittance.createInvoice(order), (error) => {
    assert.ok(error instanceof ResponseError);
    assert.deepEqual([error.code, error.invoiceId, error.reason, error.after], ["reference_taken", "inv_2", "restored", "c1"]);
    assert.deepEqual(error.problem, { status: 409, code: "reference_taken", detail: "D.", ...taken });
    return true;
  });
  await assert.rejects(client([ok({ code: 7, detail: {} }, 400)]).quittance.getInvoice("inv_1"), { code: undefined, detail: undefined, problem: {} });
});

test("a client is not made without a key, a url and bounds", () => {
  const url = "https://pay.example", key = "qk_1";
  for (const [options, want] of [
    [{ url, key: undefined }, /key.*undefined/], [{ url, key: "" }, /key.*empty/], [{ url, key: "qk_1\n" }, /blanks/], [{ key }, /url/],
    [{ url: undefined, key }, /url/], [{ url, key, timeoutMs: NaN }, /timeoutMs/], [{ url, key, retries: -1 }, /retries/], [{ url, key, maxResponseBytes: "1" }, /maxResponseBytes/],
  ]) {
    assert.throws(() => new Quittance(options), (error) => error instanceof InvalidArgumentError && want.test(error.message) && !error.message.includes("qk_1\n"));
  }
  assert.ok(new Quittance({ url })); // as with quittance dev, which needs no key
});

test("a call has its own bounds, headers, key and version", async () => {
  const down = problem(503, "unavailable");
  const { quittance, sent } = client([down, down, invoice, invoice], { version: "2026-11-22" });
  await assert.rejects(quittance.getInvoice("inv_1", { retries: 1 }), { attempts: 2 });
  await quittance.getInvoice("inv_1", { key: "qk_2", version: "2027-01-01", headers: { traceparent: "00-1" } });
  await quittance.getInvoice("inv_1");
  assert.deepEqual(sent.slice(2).map((r) => ["Authorization", "Quittance-Version", "traceparent"].map((name) => r.headers.get(name))), [
    ["Bearer qk_2", "2027-01-01", "00-1"], ["Bearer qk_1", "2026-11-22", null],
  ]);
  const hangs = () => new Promise(() => {});
  await assert.rejects(client([hangs]).quittance.getInvoice("inv_1", { timeoutMs: 1 }), TimeoutError);
  await assert.rejects(client([hangs]).quittance.getInvoice("inv_1", { attemptTimeoutMs: 1, retries: 0 }), TimeoutError);
  await assert.rejects(client([hangs]).quittance.awaitInvoice("inv_1", "open", { timeoutMs: 1 }), TimeoutError);
  await assert.rejects(quittance.getInvoice("inv_1", { key: undefined }), InvalidArgumentError);
  await assert.rejects(quittance.getInvoice("inv_1", { timeoutMs: NaN }), InvalidArgumentError);
  const csv = client([text("id\r\n", "text/csv"), problem(401, "unauthorized")]);
  await csv.quittance.exportInvoices({}, { key: "qk_2" }).next();
  await assert.rejects(csv.quittance.streamEvents({}, "end", { key: "qk_3" }).next(), ResponseError);
  assert.deepEqual(csv.sent.map((r) => r.headers.get("Authorization")), ["Bearer qk_2", "Bearer qk_3"]);
});

test("the timeouts of an export hold until its first byte", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let body;
  const begins = () => new Response(new ReadableStream({ start: (c) => (body = c, c.enqueue(new Uint8Array(4))) }), { headers: { "Content-Type": "text/csv" } });
  const parts = client([begins]).quittance.exportInvoices({}, { timeoutMs: 300, attemptTimeoutMs: 100 });
  assert.equal((await parts.next()).value.length, 4);
  t.mock.timers.tick(600_000); // the caller takes its time
  const next = parts.next();
  t.mock.timers.tick(100_000);
  body.enqueue(new Uint8Array(2));
  assert.equal((await next).value.length, 2);
  const silent = parts.next();
  t.mock.timers.tick(120_000);
  await assert.rejects(silent, (error) => error instanceof TimeoutError && /nothing was received for 120000 ms/.test(error.message));
});

test("a report takes as long as the service may make it", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let answer;
  const late = () => new Promise((resolve) => (answer = () => resolve(Response.json({ report: {}, statement: {} }))));
  const { quittance } = client([late, late]);
  for (const report of [() => quittance.getSettlementReport({ from: "2026-11-01", to: "2026-12-01" }), () => quittance.getStatement({ month: "2026-11" })]) {
    answer = undefined;
    const made = report();
    while (!answer) await new Promise(setImmediate);
    t.mock.timers.tick(120_000);
    answer();
    await made;
  }
});

test("headers that cannot be sent are errors of this package", async () => {
  for (const options of [{ headers: { "bad name": "x" } }, { headers: { a: "qk_2\n3" } }, { version: "a\nb" }]) {
    await assert.rejects(client([]).quittance.getInvoice("inv_1", options), (error) => error instanceof InvalidArgumentError && !error.message.includes("qk_2"));
  }
  await assert.rejects(client([]).quittance.createInvoice(order, { idempotencyKey: "a\nb" }), InvalidArgumentError);
  assert.throws(() => client([], { version: "a\nb" }), InvalidArgumentError);
  await assert.rejects(client([]).quittance.listInvoices().toArray(), InvalidArgumentError);
});

test("every write has an idempotency key", async () => {
  const { quittance, sent } = client([
    ok({ submission: { id: "sub_1" } }), ok({ webhook: {} }), () => new Response(null, { status: 204 }), ok({ invoices: [] }), ok({ redelivered: 1 }),
    ok({ refund: { id: "ref_1" } }), ok({ link: { id: "plink_1", url: "/p/a" } }),
  ]);
  await quittance.submitRefund("ref_1");
  await quittance.putWebhook("acme", { url: "https://x.example" });
  await quittance.revokeKey("key_1");
  await quittance.listInvoices().next();
  await quittance.redeliverEvents({ status: "failed" });
  await quittance.prepareRefund("pay_1", {}, { idempotencyKey: "return-1" });
  await quittance.createPaymentLink({ title: "a" }, { idempotencyKey: "link-1" });
  const keys = sent.map((r) => r.headers.get("Idempotency-Key"));
  assert.equal(new Set(keys).size, keys.length);
  assert.deepEqual(keys.map((key) => key !== null), [true, true, true, false, true, true, true]);
  assert.deepEqual(keys.slice(5), ["return-1", "link-1"]);
});

test("a request timeout is repeated if that does nothing twice", async () => {
  const late = () => new Response(null, { status: 408 });
  assert.equal((await client([late, created]).quittance.createInvoice(order)).id, "inv_1");
  await assert.rejects(client([late]).quittance.createKey({ name: "x", scopes: ["read"] }), { status: 408 });
  const forever = () => new Response(null, { status: 429, headers: { "Retry-After": "99999999999999999999" } });
  await assert.rejects(client([forever]).quittance.getInvoice("inv_1"), { status: 429, attempts: 1 });
});

test("a list has pages and arrays", async () => {
  const page = (nextCursor, ...ids) => ok({ invoices: ids.map((id) => ({ id })), nextCursor });
  const { quittance, sent } = client([page("c1", "a", "b"), page("c2", "c"), page("c1", "a", "b"), page(undefined, "c"), page("c1", "a", "b"), page("c2", "c")]);
  const list = quittance.listInvoices({ status: "paid", limit: 2 });
  assert.deepEqual(await list.page(), { items: [{ id: "a" }, { id: "b" }], nextCursor: "c1" });
  assert.deepEqual(await list.page("c1"), { items: [{ id: "c" }], nextCursor: "c2" });
  assert.deepEqual(await list.toArray({ limit: 9 }), [{ id: "a" }, { id: "b" }, { id: "c" }]);
  assert.deepEqual(await quittance.listInvoices({ limit: 2 }).toArray({ limit: 2 }), [{ id: "a" }, { id: "b" }]);
  assert.deepEqual(await quittance.listInvoices({}).page("c1"), { items: [{ id: "c" }], nextCursor: "c2" });
  assert.equal(sent[1].url, "https://pay.example/api/invoices?status=paid&limit=2&cursor=c1");
  for (const limit of [0, -1, 1.5, NaN, undefined]) {
    await assert.rejects(quittance.listInvoices().toArray({ limit }), InvalidArgumentError);
  }
});

test("a successful response is shown", async () => {
  const seen = [], own = [];
  const replay = ok({ id: "inv_1", onChainInvoiceId: "1", checkoutUrl: "/", invoice: { id: "inv_1" } }, 201, { "X-Request-Id": "req_2", "Idempotency-Replayed": "true" });
  const { quittance } = client([problem(503, "unavailable"), invoice, replay, problem(404, "not_found")], { onResponse: (r) => seen.push(r.status) });
  assert.equal(quittance.lastResponse, undefined);
  await quittance.getInvoice("inv_1", { onResponse: (r) => own.push(r) });
  assert.deepEqual({ ...own[0], headers: undefined }, {
    method: "GET", path: "/api/invoices/inv_1", status: 200, requestId: undefined, replayed: false, attempts: 2, headers: undefined,
  });
  await quittance.createInvoice(order);
  await assert.rejects(quittance.getInvoice("inv_1"), ResponseError);
  const { status, requestId, replayed, headers } = quittance.lastResponse;
  assert.deepEqual([status, requestId, replayed, headers.get("X-Request-Id")], [201, "req_2", true, "req_2"]);
  assert.deepEqual(seen, [200, 201]);
  assert.equal(own.length, 1);
});

/** The messages of errors, by the names in amounts.json. */
const mistakes = {
  syntax: /plain decimal number/, precision: /more decimals than the currency/, range: /below 2\^256/, units: /minor units/, decimals: /decimals of a currency/,
};

test("amounts are parsed and formatted exactly, as in Go", () => {
  const { parse, format } = JSON.parse(readFileSync(new URL("../../../client/testdata/amounts.json", import.meta.url), "utf8"));
  assert.ok(parse.length > 40 && format.length > 25, "the vectors are not all there");
  const expect = (get, { want, error }, name) => {
    if (error === undefined) {
      assert.equal(get(), want, name);
    } else {
      assert.throws(get, (thrown) => thrown instanceof InvalidArgumentError && mistakes[error].test(thrown.message), name);
    }
  };
  for (const v of parse) {
    expect(() => parseAmount(v.text, v.decimals), v, JSON.stringify(v));
  }
  for (const v of format) {
    expect(() => formatAmount(v.amount, v.decimals, { minDecimals: v.minDecimals }), v, JSON.stringify(v));
  }
  assert.equal(formatAmount(4900000n, 6), "4.9");
  assert.equal(formatAmount(-5n, 2), "-0.05");
  for (const amount of ["", ".5", "5.", "01", "-1", "+1", "1e3", "1,5", " 1", "1 ", "0x1", "1.0000000", "٣", 4.9, 5n, null, undefined, String(2n ** 256n)]) {
    assert.throws(() => parseAmount(amount, 6), InvalidArgumentError, String(amount));
  }
  for (const amount of ["", "1.5", "x", "1e3", 5, null, undefined, {}, "9".repeat(79)]) {
    assert.throws(() => formatAmount(amount, 6), InvalidArgumentError, String(amount));
  }
  for (const decimals of [-1, 1.5, 78, NaN, "6", undefined]) {
    assert.throws(() => parseAmount("1", decimals), InvalidArgumentError);
    assert.throws(() => formatAmount("1", decimals), InvalidArgumentError);
  }
});

test("the package has source maps, and an entry for node10", () => {
  for (const file of ["esm/client.js", "cjs/client.js", "esm/webhook/verify.js"]) {
    const url = new URL(`../dist/${file}`, import.meta.url);
    assert.match(readFileSync(url, "utf8"), /\n\/\/# sourceMappingURL=\w+\.js\.map\s*$/);
    const map = JSON.parse(readFileSync(`${url.pathname}.map`, "utf8"));
    assert.ok(map.sourcesContent[0].length > 100);
  }
  assert.equal(typeof createRequire(import.meta.url)("../webhook").webhookHandler, "function"); // by its folder, as resolvers without exports do
});
