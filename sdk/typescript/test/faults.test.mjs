// Makes calls to peers that answer wrongly, late or never, while garbage is collected all the time. Each call must end
// within its limit. If a signal or a timer were known only to a collected object, the call would never end. Node runs
// this with --expose-gc. The test's timeout, which is generous, ends a call that does not end.
import "./webcrypto.mjs";
import assert from "node:assert/strict";
import { createServer } from "node:net";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import { Quittance, QuittanceError } from "../dist/esm/index.js";

const patience = 120_000;
const maxResponseBytes = 1 << 20;

const answer = (status, body, headers = "Content-Type: application/json") =>
  Buffer.concat([Buffer.from(`HTTP/1.1 ${status} X\r\n${headers}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n`), Buffer.from(body)]);
const head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
const long = `${head}Content-Length: 1000\r\n\r\n`;
const chunked = `${head}Transfer-Encoding: chunked\r\n\r\n`;
const streamed = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";

/** Sends a text without end, as fast as it is read. */
const endless = (socket, text) => {
  const more = () => {
    while (!socket.destroyed && socket.write(text));
  };
  socket.on("drain", more);
  more();
};
/** Sends a text without end, slowly. */
const drip = (socket, text) => {
  const timer = setInterval(() => socket.destroyed || socket.write(text), 20);
  socket.on("close", () => clearInterval(timer));
};
const says = (bytes) => (socket) => void socket.write(bytes);
const then = (bytes, next) => (socket) => socket.write(bytes, () => next(socket));
const closes = (socket) => socket.end();
const resets = (socket) => socket.resetAndDestroy();

/** What peers do with a request. */
const faults = {
  "does not answer": () => {},
  "closes at once": closes,
  "resets at once": resets,
  "sends a status line and nothing else": says("HTTP/1.1 200 OK\r\n"),
  "closes in its headers": then(head, closes),
  "resets in its headers": then(head, resets),
  "drips a header": (socket) => then("HTTP/1.1 200 OK\r\nX-A: ", () => drip(socket, "a"))(socket),
  "drips headers": (socket) => then(head, () => drip(socket, "X-A: b\r\n"))(socket),
  "sends headers without end": (socket) => then(head, () => endless(socket, `X-A: ${"b".repeat(1000)}\r\n`))(socket),
  "sends interim responses without end": (socket) => drip(socket, "HTTP/1.1 103 Early Hints\r\n\r\n"),
  "switches protocols": says("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"),
  "sends something else than HTTP": says("220 mail.example ESMTP\r\n"),
  "sends headers and no body": says(long),
  "begins a file of CSV and sends no body": says("HTTP/1.1 200 OK\r\nContent-Type: text/csv\r\nContent-Length: 1000\r\n\r\n"),
  "drips the body": (socket) => then(long, () => drip(socket, " "))(socket),
  "drips chunks": (socket) => then(chunked, () => drip(socket, "1\r\n \r\n"))(socket),
  "sends half a body": says(long + '{"invoice":'),
  "closes in the body": then(long + '{"invoice":', closes),
  "resets in the body": then(long + '{"invoice":', resets),
  "sends a chunk of no size": says(chunked + "zz\r\n"),
  "sends a body without end": (socket) => then(chunked, () => endless(socket, `ffff\r\n${" ".repeat(0xffff)}\r\n`))(socket),
  "sends a short body that becomes long": says(answer(200, gzipSync(Buffer.alloc(8 << 20)), "Content-Type: application/json\r\nContent-Encoding: gzip")),
  "sends what is not gzip": says(answer(200, "{}", "Content-Type: application/json\r\nContent-Encoding: gzip")),
  "sends an event without end": (socket) => then(streamed, () => endless(socket, `data: ${"a".repeat(60_000)}`))(socket),
  "drips an event": (socket) => then(streamed, () => drip(socket, "d"))(socket),
  "sends a page": says(answer(200, "<html>", "Content-Type: text/html")),
  "sends another object": says(answer(200, "{}")),
  "sends an array": says(answer(200, "[]")),
  "sends null": says(answer(200, "null")),
  "sends a truncated object": says(answer(201, '{"invoice":{"id":"inv_1"')),
  "sends nothing": says(answer(200, "")),
  "sends no content": says("HTTP/1.1 204 No Content\r\n\r\n"),
  "redirects to itself": says(answer(307, "", "Location: /")),
  "redirects to nowhere": says(answer(301, "")),
  "fails": says(answer(500, '{"code":"internal","detail":"D."}')),
  "fails with half a problem": says("HTTP/1.1 503 X\r\nContent-Type: application/problem+json\r\nContent-Length: 99\r\n\r\n{"),
  "fails with a body without end": (socket) => then("HTTP/1.1 502 X\r\n\r\n", () => endless(socket, "x".repeat(60_000)))(socket),
  "has a request timeout": says(answer(408, "")),
  "asks to wait for ever": says(answer(429, "", "Retry-After: 99999999999999999999")),
  "has a request in progress": says(answer(409, '{"code":"idempotency_in_progress","detail":"D."}')),
};

/** The faults that make a connection useless: a call that ends must close it. */
const unfinished = /not answer|drips|without end|no body|half a body|nothing else/;

const order = { amount: "1", currency: "USDC", chainKey: "base", expiresAt: 2 };
const drained = async (iteration) => {
  for await (const each of iteration) assert.ok(each);
};

/** The kinds of calls. The limit of the first ones is an option, and of the last ones a signal. */
const calls = {
  getInvoice: (q) => q.getInvoice("inv_1"),
  createInvoice: (q) => q.createInvoice(order),
  createKey: (q) => q.createKey({ name: "x", scopes: ["read"] }),
  listInvoices: (q) => q.listInvoices().toArray({ limit: 3 }),
  awaitInvoice: (q) => q.awaitInvoice("inv_1", "open", { timeoutMs: 400 }),
  exportInvoices: (q) => drained(q.exportInvoices()),
  http: (q) => q.http.GET("/api/customers"),
  "getInvoice with a signal": (_, unbounded) => unbounded.getInvoice("inv_1", { signal: AbortSignal.timeout(400) }),
  "createInvoice with a signal": (_, unbounded) => unbounded.createInvoice(order, { signal: AbortSignal.timeout(400) }),
  "http with a signal": (_, unbounded) => unbounded.http.GET("/api/customers", { signal: AbortSignal.timeout(400) }),
  "awaitInvoice with a signal": (q) => q.awaitInvoice("inv_1", "open", { signal: AbortSignal.timeout(400) }),
  "streamEvents with a signal": (q) => drained(q.streamEvents({}, "start", { signal: AbortSignal.timeout(400) })),
  "exportInvoices with a signal": (q) => drained(q.exportInvoices({}, { signal: AbortSignal.timeout(400) })),
};

let collecting;
before(() => {
  assert.ok(globalThis.gc, "run this with node --expose-gc");
  collecting = setInterval(globalThis.gc, 20);
});
after(() => clearInterval(collecting));

assert.ok(Object.keys(faults).length >= 30);
for (const [fault, peer] of Object.entries(faults)) {
  test(`all calls end if a peer ${fault}`, { timeout: patience, concurrency: true }, async () => {
    const sockets = new Set();
    const closed = [];
    const server = createServer((socket) => {
      closed.push(new Promise((resolve) => socket.on("close", resolve)));
      sockets.add(socket.on("error", () => {}).once("data", () => peer(socket)).on("close", () => sockets.delete(socket)));
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    const options = { url: `http://127.0.0.1:${server.address().port}`, key: "qk_1", retries: 1, maxResponseBytes };
    const quittance = new Quittance({ ...options, timeoutMs: 400, attemptTimeoutMs: 150 });
    const unbounded = new Quittance({ ...options, timeoutMs: Infinity, attemptTimeoutMs: Infinity });
    try {
      await Promise.all(Object.entries(calls).map(async ([name, call]) => {
        const error = await call(quittance, unbounded).then(() => undefined, (e) => e);
        const aborted = error instanceof DOMException && error.name === "TimeoutError"; // the signal's own reason
        assert.ok(error instanceof QuittanceError || aborted, `${name}: ${error?.stack}`);
      }));
      if (unfinished.test(fault)) {
        await Promise.all(closed); // the signals have reached the connections, too
      }
    } finally {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    }
  });
}

test("calls end if there is no peer", { timeout: patience }, async () => {
  const quittance = new Quittance({ url: "http://127.0.0.1:1", key: "qk_1", timeoutMs: 400, retries: 1 });
  for (const call of Object.values(calls)) {
    await assert.rejects(call(quittance, quittance));
  }
});
