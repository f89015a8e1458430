// agents.mjs buys each of the URLs that standard input has, one a line, with @x402/fetch, so many at a time as the
// argument says. A purchase that is not answered 200 is repeated with the same payment. For each URL it prints a line of
// JSON: the URL, the last status, the requests it took, the payments that were signed, and the settlement.
import { createInterface } from "node:readline";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { decodePaymentResponseHeader, wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { privateKeyToAccount } from "viem/accounts";

const payer = privateKeyToAccount(process.env.PAYER_KEY);
const patience = Number(process.env.PATIENCE_MS ?? 120_000);
const pause = ms => new Promise(resolve => setTimeout(resolve, ms));

async function buy(url) {
  const result = { url, status: 0, requests: 0, signed: 0, errors: [] };
  const deadline = Date.now() + patience;
  let payment; // the header that was signed
  // observed notes the payment that the wrapped client sends.
  const observed = async request => {
    result.requests++;
    const header = request.headers.get("PAYMENT-SIGNATURE");
    if (header && header !== payment) {
      payment = header;
      result.signed++;
    }
    return fetch(request);
  };
  const client = new x402Client().register("eip155:*", new ExactEvmScheme(payer)).setSpendControls({ allowedAssets: true });
  const pay = wrapFetchWithPayment(observed, client);
  while (Date.now() < deadline) {
    try {
      const response = payment
        ? await observed(new Request(url, { headers: { "PAYMENT-SIGNATURE": payment } }))
        : await pay(url);
      result.status = response.status;
      result.body = await response.text();
      const settled = response.headers.get("PAYMENT-RESPONSE");
      if (settled) result.settled = decodePaymentResponseHeader(settled);
      if (response.status === 200) break;
      result.errors.push(`${response.status} ${result.body.slice(0, 200)} ${JSON.stringify(result.settled ?? null)}`);
    } catch (error) {
      result.errors.push(String(error.cause ?? error));
    }
    await pause(200);
  }
  return result;
}

const urls = [];
for await (const line of createInterface({ input: process.stdin })) if (line) urls.push(line);
const buyers = Array.from({ length: Number(process.argv[2] ?? 1) }, async () => {
  for (let url; (url = urls.shift()); ) console.log(JSON.stringify(await buy(url)));
});
await Promise.all(buyers);
