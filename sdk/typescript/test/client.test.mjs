import "./webcrypto.mjs";
import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { EventsLostError, InvalidArgumentError, InvalidResponseError, Quittance, QuittanceError, ResponseError } from "../dist/esm/index.js";

const now = 1_700_000_000_000;
const problem = (status, code, headers = {}) => () => Response.json({ status, code, detail: "D." }, { status, headers });
const ok = (body, status = 200) => () => Response.json(body, { status });
const whole = { id: "inv_1", onChainInvoiceId: "1", checkoutUrl: "/checkout/inv_1", invoice: { id: "inv_1" } };
const created = ok(whole, 201);
const broken = () => { throw new TypeError("fetch failed", { cause: Object.assign(new Error(), { code: "ECONNRESET" }) }); };
const noListener = () => { throw new TypeError("fetch failed", { cause: Object.assign(new Error(), { code: "ECONNREFUSED" }) }); };
const cutOff = () => new Response(new ReadableStream({ pull: (c) => c.error(new TypeError("terminated")) }));

/** Returns a client of a service that gives the outcomes in turn, and what it was sent. */
function client(...outcomes) {
  const sent = [], waits = [];
  const quittance = new Quittance({
    url: "https://pay.example/base/", key: "qk_1", random: () => 0, now: () => now,
    sleep: async (ms) => void waits.push(ms),
    fetch: async (request) => {
      sent.push({ method: request.method, url: request.url, headers: request.headers, body: await request.text(), redirect: request.redirect });
      assert.ok(outcomes.length >= sent.length, "one request too many");
      return outcomes[sent.length - 1](request);
    },
  });
  return { quittance, sent, waits };
}

const order = { amount: "1", currency: "USDC", chainKey: "base", expiresAt: 2 };

for (const [name, outcome] of Object.entries({
  "in progress": problem(409, "idempotency_in_progress"), "rate limited": problem(429, "rate_limited"), internal: problem(500, "internal"),
  "a proxy": () => new Response("<html>", { status: 502 }), unavailable: problem(503, "unavailable"),
  "a lost connection": broken, "no connection": noListener, "an answer cut off": cutOff,
})) {
  test(`a create is repeated under one key after ${name}`, async () => {
    const { quittance, sent } = client(outcome, created);
    const made = await quittance.createInvoice(order);
    assert.equal(made.checkoutPage, "https://pay.example/base/checkout/inv_1");
    assert.equal(sent.length, 2);
    for (const { method, url, headers, body, redirect } of sent) {
      assert.deepEqual([method, url, JSON.parse(body), redirect], ["POST", "https://pay.example/base/api/invoices", order, "manual"]);
      assert.equal(headers.get("Authorization"), "Bearer qk_1");
      assert.match(headers.get("Idempotency-Key"), /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    }
    assert.equal(sent[0].headers.get("Idempotency-Key"), sent[1].headers.get("Idempotency-Key"));
  });
}

for (const [name, outcome] of Object.entries({
  "an invalid field": problem(400, "invalid_field"), "no key": problem(401, "unauthorized"), "not found": problem(404, "not_found"),
  "a key mismatch": problem(422, "idempotency_mismatch"), "a redirect": () => new Response(null, { status: 307, headers: { Location: "https://x.example" } }),
  "a long wait": problem(503, "unavailable", { "Retry-After": "31" }),
})) {
  test(`a create is not repeated after ${name}`, async () => {
    const { quittance, sent } = client(outcome);
    await assert.rejects(quittance.createInvoice(order), QuittanceError);
    assert.equal(sent.length, 1);
  });
}

test("what is not idempotent is repeated only if the service has not looked at it", async () => {
  const key = { name: "x", scopes: ["read"] };
  for (const outcome of [problem(503, "unavailable"), broken]) {
    const { quittance, sent } = client(outcome);
    await assert.rejects(quittance.createKey(key));
    assert.equal(sent.length, 1);
  }
  for (const outcome of [problem(429, "rate_limited"), noListener]) {
    const { quittance } = client(outcome, ok({ key: { id: "key_1" }, secret: "qk_2" }, 201));
    assert.equal((await quittance.createKey(key)).secret, "qk_2");
  }
});

test("a submission and an erasure are repeated under their key after a lost answer", async () => {
  for (const outcome of [problem(503, "unavailable"), broken, cutOff]) {
    const { quittance, sent } = client(outcome, ok({ submission: { id: "sub_1" } }, 201), outcome, ok({ erasure: { id: "ers_1" } }));
    assert.equal((await quittance.submitRefund("ref_1")).id, "sub_1");
    assert.equal((await quittance.eraseCustomer({ customer: "c-77" }, { idempotencyKey: "erase-c-77" })).id, "ers_1");
    const keys = sent.map((r) => r.headers.get("Idempotency-Key"));
    assert.equal(keys[0], keys[1]);
    assert.deepEqual(keys.slice(2), ["erase-c-77", "erase-c-77"]);
  }
});

test("delays double, and Retry-After delays", async () => {
  const down = problem(503, "unavailable");
  const { quittance, waits, sent } = client(down, down, down, down);
  await assert.rejects(quittance.getInvoice("inv_1"), { status: 503 });
  assert.deepEqual(waits, [500, 1000, 2000]);
  assert.equal(sent.length, 4);
  for (const [header, want] of [["0", 500], ["3", 3000], ["30", 30_000], ["soon", 500], [new Date(now + 7000).toUTCString(), 7000]]) {
    const { quittance, waits } = client(problem(429, "rate_limited", { "Retry-After": header }), ok({ invoice: { id: "inv_1" } }));
    await quittance.getInvoice("inv_1");
    assert.deepEqual(waits, [want]);
  }
});

test("an error has what the service said", async () => {
  const { quittance } = client(() =>
    Response.json({ status: 400, code: "invalid_field", field: "amount", detail: "D.", requestId: "req_1" }, { status: 400 }));
  const want = { name: "ResponseError", status: 400, code: "invalid_field", field: "amount", detail: "D.", requestId: "req_1", retryAfterMs: 0 };
  await assert.rejects(quittance.createInvoice(order), want);
  const { quittance: proxied } = client(() => new Response("<html>", { status: 404, headers: { "X-Request-Id": "req_2" } }));
  await assert.rejects(proxied.getInvoice("inv_1"), { status: 404, code: undefined, requestId: "req_2" });
});

test("a list requests pages as needed", async () => {
  const { quittance, sent } = client(ok({ payments: [{ id: "a" }, { id: "b" }], nextCursor: "c1" }), ok({ payments: [{ id: "c" }] }));
  const ids = [];
  for await (const payment of quittance.listPayments({ include: ["pending", "unattributed"], limit: 2 })) {
    ids.push(payment.id);
  }
  assert.deepEqual(ids, ["a", "b", "c"]);
  assert.deepEqual(sent.map((r) => r.url), [
    "https://pay.example/base/api/payments?include=pending,unattributed&limit=2",
    "https://pay.example/base/api/payments?include=pending,unattributed&limit=2&cursor=c1",
  ]);
  const { quittance: once, sent: asked } = client(ok({ invoices: [{ id: "a" }, { id: "b" }], nextCursor: "c1" }));
  for await (const invoice of once.listInvoices()) {
    assert.equal(invoice.id, "a");
    break;
  }
  assert.equal(asked.length, 1);
  const round = ok({ invoices: [], nextCursor: "c1" });
  await assert.rejects(client(round, round).quittance.listInvoices().next(), /same page/);
});

test("the payments and the timeline of an invoice have pages", async () => {
  const { quittance, sent } = client(
    ok({ payments: [{ id: "a" }], nextCursor: "c1" }), ok({ payments: [{ id: "b" }] }),
    ok({ entries: [{ kind: "invoice.created" }], nextCursor: "c2", truncated: true }), ok({ entries: [{ kind: "event" }], truncated: true }),
  );
  const got = [];
  for await (const payment of quittance.listInvoicePayments("inv_1")) {
    got.push(payment.id);
  }
  const timeline = quittance.listInvoiceTimeline("inv_1");
  let entry = await timeline.next();
  for (; !entry.done; entry = await timeline.next()) {
    got.push(entry.value.kind);
  }
  assert.deepEqual(entry.value, { truncated: true });
  assert.deepEqual(got, ["a", "b", "invoice.created", "event"]);
  const path = "https://pay.example/base/api/invoices/inv_1";
  assert.deepEqual(sent.map((r) => r.url), [`${path}/payments`, `${path}/payments?cursor=c1`, `${path}/timeline`, `${path}/timeline?cursor=c2`]);
  for (const id of ["", ".", ".."]) { // these would be other lists
    await assert.rejects(quittance.listInvoicePayments(id).next(), InvalidArgumentError);
    await assert.rejects(quittance.revokeKey(id), InvalidArgumentError);
  }
  assert.equal(sent.length, 4);
});

const rows = (...parts) => () => new Response(
  new ReadableStream({
    start(c) {
      parts.forEach((part) => (part instanceof Error ? c.error(part) : c.enqueue(new TextEncoder().encode(part))));
      parts.some((part) => part instanceof Error) || c.close();
    },
  }),
  { headers: { "Content-Type": "text/csv; charset=utf-8; header=present" } },
);

test("each list is exported in parts, after an attempt that failed", async () => {
  const { quittance, sent, waits } = client(problem(503, "unavailable"), rows("id\r\n", "inv_1\r\n"), rows("id\r\n"), rows("id\r\n"), rows("id\r\n"));
  const read = async (parts) => {
    let text = "";
    for await (const part of parts) {
      text += new TextDecoder().decode(part);
    }
    return text;
  };
  assert.equal(await read(quittance.exportInvoices({ status: "paid", metadata: { a: "b" }, timezone: "Europe/Berlin" })), "id\r\ninv_1\r\n");
  assert.equal(await read(quittance.exportPayments({ include: ["pending", "unattributed"] })), "id\r\n");
  await read(quittance.exportRefunds());
  await read(quittance.exportEvents({ type: "invoice.paid" }));
  const base = "https://pay.example/base/api";
  assert.deepEqual(sent.slice(1).map((r) => decodeURIComponent(r.url)), [
    `${base}/invoices?status=paid&metadata[a]=b&timezone=Europe/Berlin`, `${base}/payments?include=pending,unattributed`,
    `${base}/refunds`, `${base}/events?type=invoice.paid`,
  ]);
  assert.ok(sent.every((r) => r.headers.get("Accept") === "text/csv, application/problem+json" && r.headers.get("Authorization") === "Bearer qk_1"));
  assert.deepEqual(waits, [500]);
});

test("an export that breaks off throws", async () => {
  const breaks = rows("id\r\n", "inv_1\r\n", new TypeError("terminated"));
  const cutOff = client(breaks, breaks, breaks, breaks).quittance.exportInvoices();
  await assert.rejects(async () => { for await (const part of cutOff) { assert.ok(part); } }, /terminated/);
  const list = ok({ invoices: [] });
  await assert.rejects(client(list, list, list, list).quittance.exportInvoices().next(), InvalidResponseError);
  await assert.rejects(client(problem(400, "invalid_field")).quittance.exportEvents().next(), QuittanceError);
});

test("every request has the version, and an inspection does not show the key", async () => {
  const sent = [];
  const quittance = new Quittance({
    url: "https://pay.example", key: "qk_secret", version: "2026-11-22", retries: 0,
    fetch: async (request) => {
      sent.push(request.headers.get("Quittance-Version"));
      return problem(404, "not_found")();
    },
  });
  for (const call of [
    quittance.getInvoice("inv_1"), quittance.createInvoice(order), quittance.voidInvoice("inv_1"), quittance.streamEvents().next(), quittance.exportEvents().next(),
  ]) {
    await assert.rejects(call, QuittanceError);
  }
  assert.deepEqual(sent, Array(5).fill("2026-11-22"));
  assert.ok(!inspect(quittance, { depth: 9, showHidden: true }).includes("qk_secret"));
  const { quittance: without, sent: requests } = client(ok({ invoice: { id: "inv_1" } }));
  await without.getInvoice("inv_1");
  assert.equal(requests[0].headers.get("Quittance-Version"), null);
});

test("identifiers are escaped, and responses without a body are taken", async () => {
  const { quittance, sent } = client(() => new Response(null, { status: 204 }));
  assert.equal(await quittance.revokeKey("a/b?c"), undefined);
  assert.equal(sent[0].url, "https://pay.example/base/api/keys/a%2Fb%3Fc");
});

const message = (position, id) => `id: ${position}\nevent: invoice.paid\ndata: ${JSON.stringify({ id, type: "invoice.paid", createdAt: 1, data: {} })}\n\n`;
const streamed = (...chunks) => () => new Response(new ReadableStream({
  start(c) {
    chunks.forEach((chunk) => c.enqueue(new TextEncoder().encode(chunk)));
    c.close();
  },
}), { headers: { "Content-Type": "text/event-stream" } });

test("a stream of events is continued where it broke", async () => {
  const first = message("c1", "evt_1");
  const { quittance, sent, waits } = client(
    streamed("retry: 2000\nid: c0\n\n: nothing yet\n\n", first.slice(0, 20), first.slice(20), "id: c2\ndata: {"), problem(503, "unavailable"), noListener,
    streamed(message("c2", "evt_2").replaceAll("\n", "\r\n")), problem(401, "unauthorized"),
  );
  const got = [];
  await assert.rejects(async () => {
    for await (const { position, event } of quittance.streamEvents({ merchantId: "acme" })) {
      got.push(`${position} ${event.id}`);
    }
  }, { code: "unauthorized" });
  assert.deepEqual(got, ["c1 evt_1", "c2 evt_2"]);
  assert.deepEqual(sent.map((r) => new URL(r.url).search), ["end", "c1", "c1", "c1", "c2"].map((after) => `?merchantId=acme&after=${after}`));
  assert.equal(sent[0].headers.get("Authorization"), "Bearer qk_1");
  assert.deepEqual(waits, [500, 1000, 2000, 500]);
});

test("a stream ends with its reader and with its signal", async () => {
  const { quittance, sent } = client(streamed(message("c1", "evt_1"), message("c2", "evt_2")));
  for await (const { event } of quittance.streamEvents({}, "start")) {
    assert.equal(event.id, "evt_1");
    break;
  }
  assert.equal(sent.length, 1);
  const ended = client(broken);
  const signal = AbortSignal.abort(new Error("enough"));
  await assert.rejects(ended.quittance.streamEvents({}, "start", { signal }).next(), /enough/);
  await assert.rejects(client(streamed("data: {}\n\n")).quittance.streamEvents().next(), /not an event/);
});

const gone = (reason, after) => () => Response.json({ status: 410, code: "cursor_gone", detail: "D.", reason, after }, { status: 410 });
const eventPage = (nextCursor, ...numbers) => ok({ events: numbers.map((n) => ({ event: { id: `evt_${n}` }, merchantId: "acme" })), nextCursor });
const after = (sent) => sent.map((r) => new URL(r.url).searchParams.get("after"));

test("pages of events go on after restores, without repeating any", async () => {
  const { quittance, sent } = client(
    eventPage("c3", 1, 2, 3), gone("restored", "d1"), eventPage("d3", 2, 3), eventPage("d4", 4), gone("replaced", "e0"), gone("removed", "e1"), eventPage("e5", 4, 5),
    eventPage("c3", 1),
  );
  const got = [];
  let at = "start";
  for (let n = 0; n < 4; n++) {
    try {
      const { events, next } = await quittance.eventsAfter(at);
      got.push(...events.map((e) => e.event.id));
      at = next;
    } catch (error) {
      assert.ok(error instanceof EventsLostError);
      got.push("lost");
      at = error.position;
    }
  }
  assert.deepEqual(got, ["evt_1", "evt_2", "evt_3", "evt_4", "lost", "evt_5"]);
  assert.deepEqual(after(sent), ["start", "c3", "d1", "d3", "d4", "e0", "e1"]);
  assert.equal((await quittance.eventsAfter("start")).events.length, 1); // another caller
});

test("10,000 events are remembered, and 8 moves in a row followed", async () => {
  const all = Array.from({ length: 10_001 }, (_, n) => n);
  const { quittance } = client(eventPage("c", ...all), gone("restored", "d"), eventPage("d1", ...all), ...Array.from({ length: 9 }, (_, n) => gone("restored", `f${n}`)));
  const { next } = await quittance.eventsAfter("start");
  assert.deepEqual((await quittance.eventsAfter(next)).events.map((e) => e.event.id), ["evt_0"]);
  await assert.rejects(quittance.eventsAfter("d1"), { code: "cursor_gone", after: "f8" });
});

test("a stream of events goes on after a restore, and in another stream after a loss", async () => {
  const { quittance, sent } = client(
    streamed(message("c1", "evt_1"), message("c2", "evt_2")), gone("restored", "d0"), streamed(message("d1", "evt_2"), message("d2", "evt_3")), gone("removed", "e"),
    streamed(message("e1", "evt_4")), problem(401, "unauthorized"),
  );
  const got = [];
  let at = "start";
  for (const want of [EventsLostError, ResponseError]) {
    await assert.rejects(async () => {
      for await (const { position, event } of quittance.streamEvents({}, at)) {
        got.push(`${position} ${event.id}`);
      }
    }, (error) => {
      at = error.position;
      return error instanceof want;
    });
  }
  assert.deepEqual(got, ["c1 evt_1", "c2 evt_2", "d2 evt_3", "e1 evt_4"]);
  assert.deepEqual(after(sent), ["start", "c2", "d0", "d2", "e", "e1"]);
});

test("a list of events begins again after a restore", async () => {
  const { quittance, sent } = client(eventPage("c", 5, 4), gone("restored", "d"), eventPage(undefined, 6, 5, 4, 1));
  const got = [];
  for await (const { event } of quittance.listEvents()) {
    got.push(event.id);
  }
  assert.deepEqual(got, ["evt_5", "evt_4", "evt_6", "evt_1"]);
  assert.equal(new URL(sent[2].url).searchParams.get("cursor"), "d");
});

test("an invoice is awaited", async () => {
  const { quittance, sent, waits } = client(ok({ invoice: { id: "inv_1", status: "open" } }), problem(503, "unavailable"), ok({ invoice: { id: "inv_1", status: "paid" } }));
  assert.equal((await quittance.awaitInvoice("inv_1")).status, "paid");
  assert.equal(sent[2].url, "https://pay.example/base/api/invoices/inv_1?wait=60&status=open");
  assert.deepEqual(waits, [1000, 500]); // even a service that does not wait is not asked continuously
});

test("refunds are prepared under one key, canceled and listed", async () => {
  const refund = ok({ refund: { id: "ref_1" }, claimUrl: "/refunds/x?y" });
  const submission = ok({ submission: { id: "sub_1" } });
  const { quittance, sent } = client(broken, refund, refund, refund, refund, submission, submission, submission, ok({ refunds: [{ id: "ref_1" }] }), ok({ refunds: [{ id: "ref_1" }] }), ok({ report: {} }));
  assert.equal((await quittance.prepareRefund("pay_1", { amount: "1" })).claimUrl, "https://pay.example/base/refunds/x?y");
  assert.equal(sent[0].headers.get("Idempotency-Key"), sent[1].headers.get("Idempotency-Key"));
  await quittance.getRefund("ref_1", { include: ["safe"] });
  await quittance.cancelRefund("ref_1");
  await quittance.approveRefund("ref_1", { to: "0x1" });
  assert.equal((await quittance.submitRefund("ref_1")).id, "sub_1");
  assert.equal((await quittance.recordTransaction("ref_1", "sub_1", { txHash: "0x1" })).id, "sub_1");
  assert.equal((await quittance.withdrawSubmission("ref_1", "sub_1", { checkedInWallet: true })).id, "sub_1");
  for await (const { id } of quittance.listRefunds({ status: "pending" })) assert.equal(id, "ref_1");
  for await (const { id } of quittance.listPaymentRefunds("pay_1", "pending")) assert.equal(id, "ref_1");
  await quittance.getSettlementReport({ from: "2026-11-01", to: "2026-12-01", groupBy: "day" });
  assert.deepEqual(sent.slice(2).map((r) => `${r.method} ${r.url.slice("https://pay.example/base/api".length)}`), [
    "GET /refunds/ref_1?include=safe", "POST /refunds/ref_1/cancel", "POST /refunds/ref_1/approve",
    "POST /refunds/ref_1/submissions", "PUT /refunds/ref_1/submissions/sub_1", "POST /refunds/ref_1/submissions/sub_1/withdraw?checkedInWallet=true", "GET /refunds?status=pending",
    "GET /payments/pay_1/refunds?status=pending", "GET /reports/settlement?from=2026-11-01&to=2026-12-01&groupBy=day",
  ]);
});

test("invoices are changed, and filtered by metadata", async () => {
  const invoice = ok({ invoice: { id: "inv_1" } });
  const { quittance, sent } = client(invoice, ok(whole), invoice, () => new Response(null, { status: 204 }), ok({ invoices: [] }));
  await quittance.updateInvoice("inv_1", { reference: "order-1" });
  assert.equal((await quittance.finalizeInvoice("inv_1")).checkoutPage, "https://pay.example/base/checkout/inv_1");
  await quittance.voidInvoice("inv_1");
  await quittance.deleteInvoice("inv_1");
  await quittance.listInvoices({ metadata: { order: "1" }, reference: "a" }).next();
  assert.deepEqual(sent.map((r) => `${r.method} ${decodeURIComponent(r.url.slice("https://pay.example/base/api".length))}`), [
    "PATCH /invoices/inv_1", "POST /invoices/inv_1/finalize", "POST /invoices/inv_1/void", "DELETE /invoices/inv_1",
    "GET /invoices?metadata[order]=1&reference=a",
  ]);
});

test("a logo is sent as it is", async () => {
  const { quittance, sent } = client(ok({ merchant: { id: "acme" } }));
  await quittance.putMerchantLogo("acme", new Blob(["\x89PNG"], { type: "image/png" }));
  assert.equal(sent[0].headers.get("Content-Type"), "image/png");
  assert.equal(sent[0].body, "\x89PNG");
});

test("an attempt, a call and a signal have an end", { timeout: 10_000 }, async () => {
  const hangs = () => new Promise(() => {}); // a fetch that ignores its signal
  const at = (options) => new Quittance({ url: "http://h.example", key: "qk_1", fetch: hangs, sleep: async () => {}, ...options });
  await assert.rejects(at({ attemptTimeoutMs: 1, retries: 2 }).getInvoice("inv_1"), { name: "TimeoutError", attempts: 3 });
  await assert.rejects(at({ timeoutMs: 1 }).getInvoice("inv_1"), { name: "TimeoutError", attempts: 1 });
  const signal = AbortSignal.abort(new Error("enough"));
  for (const call of [
    at({}).getInvoice("inv_1", { signal }), at({}).awaitInvoice("inv_1", "open", { signal }), at({}).streamEvents({}, "end", { signal }).next(),
    at({}).exportInvoices({}, { signal }).next(), at({}).listInvoices({}, { signal }).next(), at({}).http.GET("/api/invoices", { signal }),
  ]) {
    await assert.rejects(call, /enough/);
  }
  const real = new Quittance({ url: "http://h.example", key: "qk_1", fetch: noListener, timeoutMs: 20, random: () => 0 });
  await assert.rejects(real.getInvoice("inv_1"), { name: "TimeoutError" });
});

test("a url of another form is refused", () => {
  for (const url of ["", "localhost:8080", "/api", "ftp://h", "https://h?x=1", "https://h#x"]) {
    assert.throws(() => new Quittance({ url, key: "qk_1" }), InvalidArgumentError, url);
  }
});
