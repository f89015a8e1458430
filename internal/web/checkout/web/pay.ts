// Asks the wallet to pay, by a plan. Each request is recorded before it is made, so that no request is
// made twice.

import { encodeFunctionData, parseSignature } from "viem";

import { registry, token } from "./abi";
import { terms } from "./commitment";
import { Problem } from "./connect";
import { major } from "./format";
import type { Hex, Provider } from "./providers";
import { call, parse, quantity, read, send, rejected, unauthorized, WalletError } from "./rpc";
import { clear, load, save, type Authorization, type Sent } from "./sent";
import { now, report, type Invoice } from "./service";
import { sign } from "./typed";
import type { Plan } from "./ways";

const window = 1800; // seconds in which an authorization is valid, at most
const shortest = 40; // seconds to the invoice's end in which a wallet is still asked

// pay asks the wallet, and returns once it has answered. The record is then in state sent, or in state
// asked if the answer is inconclusive. A transaction gets the nonce, if it is given. Once canceled, it
// drops a signature, and asks for no transaction.
export async function pay(provider: Provider, invoice: Invoice, plan: Plan, wallet: string, canceled: AbortSignal, nonce?: number): Promise<void> {
  checkTime(invoice);
  if (plan.way === "authorization") {
    const authorization = await authorize(provider, invoice, plan);
    const signed = await record(provider, invoice, plan, wallet);
    canceled.throwIfAborted();
    save(invoice.invoiceId, { ...signed, state: "sent", authorization });
    return;
  }
  const calls = plan.way === "permit" ? [await permit(provider, invoice, plan)] : plan.calls;
  checkTime(invoice);
  const asked = await record(provider, invoice, plan, wallet);
  canceled.throwIfAborted();
  save(invoice.invoiceId, asked);
  try {
    if (plan.way === "calls") {
      save(invoice.invoiceId, { ...asked, state: "sent", calls: await sendCalls(provider, invoice, plan) });
      return;
    }
    const [only] = calls;
    const answer = await send<unknown>(provider, "eth_sendTransaction", [{
      from: plan.from, ...only, value: "0x0", chainId: quantity(invoice.chainId), ...(nonce !== undefined && { nonce: quantity(nonce) }),
    }]);
    if (!isHash(answer)) return; // it may or may not have sent a transaction
    const hash = answer.toLowerCase() as Hex;
    save(invoice.invoiceId, { ...asked, state: "sent", hash });
    report(invoice.invoiceId, hash);
  } catch (error) {
    // After a cancellation, the record may be of the next request.
    const isOwn = JSON.stringify(load(invoice.invoiceId)) === JSON.stringify(asked);
    if (isOwn && error instanceof WalletError && isNothingSent(error)) clear(invoice.invoiceId);
    throw error;
  }
}

// checkTime throws if too little time is left to be in a block before the end.
function checkTime(invoice: Invoice): void {
  if (invoice.expiresAt + 1 < now() + shortest) throw new Problem("wallet.late");
}

const isHash = (answer: unknown): answer is Hex => typeof answer === "string" && /^0x[0-9a-f]{64}$/i.test(answer);

// isNothingSent reports whether the code of an error means that the wallet sent no transaction. After
// any other error the page asks the chain and ignores the error's text. Wallets pass on the texts of
// nodes, and nodes use the same text if they already have the transaction or another one in its place.
export const isNothingSent = ({ code }: WalletError) => nothingSent.has(code);

// Codes of EIP-1193, EIP-5792 and, for a method that the wallet lacks, JSON-RPC.
const nothingSent = new Set([rejected, unauthorized, 4200, 5700, 5710, 5740, 5750, 5760, -32601]);

// record returns the record that is written before the wallet is asked.
async function record(provider: Provider, invoice: Invoice, plan: Plan, wallet: string): Promise<Sent> {
  const [count, block] = await Promise.all([
    read<Hex>(provider, "eth_getTransactionCount", [plan.from, "pending"]),
    read<Hex>(provider, "eth_blockNumber"),
  ]);
  return {
    version: 1, state: "asked", way: plan.way, wallet, from: plan.from, amount: plan.amount.toString(),
    shown: { Amount: major(plan.amount, invoice), Merchant: invoice.merchant },
    at: now(), nonce: Number(parse(count)), block: parse(block).toString(),
    known: invoice.payments.map((p) => p.txHash), named: !invoice.depositAddress && plan.amount === BigInt(invoice.due),
  };
}

// authorize has the account sign a transfer that the service sends. Its nonce is the invoice's id, so
// that the account can pay this invoice only once, unless an earlier payment failed or was too little.
async function authorize(provider: Provider, invoice: Invoice, plan: Plan): Promise<Authorization> {
  const validBefore = Math.min(now() + window, invoice.expiresAt + 1);
  if (!plan.domain) throw new Problem("wallet.cannot");
  const again = load(invoice.invoiceId) !== undefined || invoice.due !== invoice.amount;
  const message = {
    from: plan.from, to: plan.to, value: plan.amount.toString(), validAfter: 0, validBefore,
    nonce: again ? random() : invoice.onChainInvoiceId,
  };
  const signature = await sign(provider, plan.from, plan.domain, "TransferWithAuthorization", message);
  if (now() + 20 >= validBefore) throw new Problem("wallet.expired"); // the signature is dropped
  return { ...message, signature };
}

const random = (): Hex => `0x${Array.from(crypto.getRandomValues(new Uint8Array(32)), (b) => b.toString(16).padStart(2, "0")).join("")}`;

// permit has the account sign an allowance of exactly the amount, and returns the call that
// uses it. The call is tried first, since the contract reverts if the token refuses the signature.
async function permit(provider: Provider, invoice: Invoice, plan: Plan) {
  if (!plan.domain || !invoice.registry) throw new Problem("wallet.cannot");
  const nonce = await call<bigint>(provider, invoice.token, token, "nonces", [plan.from]);
  const deadline = BigInt(invoice.expiresAt);
  const signature = await sign(provider, plan.from, plan.domain, "Permit", {
    owner: plan.from, spender: invoice.registry, value: plan.amount.toString(), nonce: nonce.toString(), deadline: deadline.toString(),
  });
  const { r, s, v, yParity } = parseSignature(signature);
  const data = encodeFunctionData({
    abi: registry, functionName: "payWithPermit", args: [terms(invoice), deadline, Number(v ?? BigInt(27 + yParity)), r, s],
  });
  const made = { to: invoice.registry, data };
  await read(provider, "eth_call", [{ from: plan.from, ...made }, "latest"]).catch(() => { throw new Problem("wallet.cannot"); });
  return made;
}

// sendCalls asks for several calls in one atomic batch (EIP-5792), and returns its id.
async function sendCalls(provider: Provider, invoice: Invoice, plan: Plan): Promise<string> {
  const answer = await send<string | { id: string }>(provider, "wallet_sendCalls", [{
    version: "2.0.0", from: plan.from, chainId: quantity(invoice.chainId), atomicRequired: true,
    calls: plan.calls.map((c) => ({ ...c, value: "0x0" })),
  }]);
  return typeof answer === "string" ? answer : answer.id;
}
