// Finds out the outcome of a payment that the wallet was asked for.

import { transferTopic } from "./abi";
import type { Hex, Provider } from "./providers";
import { chainOf, parse, quantity, read } from "./rpc";
import { load, save, type Sent } from "./sent";
import { now, Refusal, submit, type Invoice } from "./service";

// Finding is the result of a look. counted: the service has seen the payment. mined: it is in a block.
// elsewhere: the wallet uses another network, which does not know the payment.
export type Finding = "counted" | "mined" | "waiting" | "failed" | "unknown" | "elsewhere";

// follow looks once, and updates the record. provider is undefined if the wallet is gone.
export async function follow(invoice: Invoice, sent: Sent, provider: Provider | undefined): Promise<Finding> {
  const payment = counted(invoice, sent);
  if (payment) {
    save(invoice.invoiceId, { ...sent, state: "counted", hash: payment.txHash });
    return "counted";
  }
  if (sent.way === "authorization") return followAuthorization(invoice, sent);
  if (!provider) return "unknown";
  if (sent.calls && !sent.hash) return followCalls(invoice, sent, provider);
  if (await isElsewhere(invoice, provider)) return "elsewhere";
  return sent.hash ? followHash(invoice, sent, sent.hash, provider) : find(invoice, sent, provider);
}

// isElsewhere reports whether the wallet reads from another network than the invoice's.
const isElsewhere = async (invoice: Invoice, provider: Provider) => await chainOf(provider) !== invoice.chainId;

// counted returns the payment, if the service has it. Contract accounts have another hash than the
// wallet's, or no hash. For them, a new payment of the account counts if no amount is due any more. No
// amount is due either while payments cannot be seen.
export const counted = (invoice: Invoice, sent: Sent) => invoice.payments.find((p) =>
  p.txHash === sent.hash
    || invoice.due === "0" && p.from.toLowerCase() === sent.from.toLowerCase() && !sent.known?.includes(p.txHash));

// fail records that the transfer failed.
function fail(invoice: Invoice, sent: Sent, problem: string): Finding {
  save(invoice.invoiceId, { ...sent, state: "failed", problem });
  return "failed";
}

// followAuthorization submits the same authorization again, which is idempotent, until the outcome is
// known.
async function followAuthorization(invoice: Invoice, sent: Sent): Promise<Finding> {
  if (!sent.authorization) return fail(invoice, sent, "wallet.failed");
  try {
    const outcome = await submit(invoice.invoiceId, sent.authorization, sent.taken ? patience : 0);
    if (outcome.status === "refused") return fail(invoice, sent, refusal(outcome.reason));
    save(invoice.invoiceId, { ...sent, taken: true, ...(outcome.txHash && { hash: outcome.txHash }) });
    return outcome.status === "paid" ? "mined" : "waiting";
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    if (error.reason !== "nonce_used") return fail(invoice, sent, refusal(error.reason));
    save(invoice.invoiceId, { ...sent, taken: true }); // by another party; it cannot be refused before its window ends
    return "waiting";
  }
}

const patience = 25; // seconds until the service answers about an authorization that it has

// Reasons for which the account can pay for the transaction itself.
const ownGas = new Set(["gasless_off", "budget_exhausted", "unsupported_token", "account_not_deployed", "too_expensive"]);
const ofToken = new Set(["blacklisted", "token_paused", "transfer_reverts"]);

function refusal(reason = ""): string {
  if (ownGas.has(reason)) return "wallet.fee.own";
  if (ofToken.has(reason)) return "wallet.token.refuses";
  if (reason === "authorization_pending") return "wallet.pending";
  return "wallet.refused";
}

// settling is how many seconds a transaction must look replaced before the payer is informed.
const settling = 10;

interface Receipt {
  status: Hex;
}

async function followHash(invoice: Invoice, sent: Sent, hash: Hex, provider: Provider): Promise<Finding> {
  const receipt = await read<Receipt | null>(provider, "eth_getTransactionReceipt", [hash]);
  if (receipt && parse(receipt.status) === 1n) return "mined";
  if (receipt) return failThere(invoice, sent, "wallet.failed", provider);
  if (await read(provider, "eth_getTransactionByHash", [hash])) return "waiting";
  const count = Number(parse(await read<Hex>(provider, "eth_getTransactionCount", [sent.from, "latest"])));
  if (sent.nonce === undefined || count <= sent.nonce) return "unknown";
  // Another transaction took its place: a faster one with the same content, or one that does not pay.
  const found = await find(invoice, sent, provider);
  if (found !== "unknown") return found;
  if (await read(provider, "eth_getTransactionReceipt", [hash])) return "waiting"; // it was mined since
  // Several nodes may answer the wallet's requests, and one of them may lack the newest blocks.
  if (sent.gone === undefined) save(invoice.invoiceId, { ...sent, gone: now() });
  if (now() < (sent.gone ?? now()) + settling) return "unknown";
  return failThere(invoice, sent, "wallet.replaced", provider);
}

// failThere is fail, unless the wallet has left the network during the look.
const failThere = async (invoice: Invoice, sent: Sent, problem: string, provider: Provider): Promise<Finding> =>
  await isElsewhere(invoice, provider) ? "elsewhere" : fail(invoice, sent, problem);

async function followCalls(invoice: Invoice, sent: Sent, provider: Provider): Promise<Finding> {
  const answer = await read<{ status?: number; receipts?: { transactionHash: Hex }[] }>(provider, "wallet_getCallsStatus", [sent.calls]);
  const status = answer.status ?? 100;
  const hash = answer.receipts?.at(-1)?.transactionHash;
  if (status >= 400) return fail(invoice, sent, "wallet.failed");
  if (status < 200 || !hash) return "waiting";
  save(invoice.invoiceId, { ...sent, hash });
  return "mined";
}

// find looks for a transfer from the account to the invoice's address since the wallet was asked. A
// payment of another invoice of the merchant has that invoice's id in its transaction.
async function find(invoice: Invoice, sent: Sent, provider: Provider): Promise<Finding> {
  const topic = (address: Hex) => `0x${address.slice(2).toLowerCase().padStart(64, "0")}`;
  const logs = await read<{ transactionHash: Hex; data: Hex }[]>(provider, "eth_getLogs", [{
    address: invoice.token, fromBlock: quantity(BigInt(sent.block)), toBlock: "latest", topics: [transferTopic, topic(sent.from), topic(invoice.payTo)],
  }]);
  for (const log of logs) {
    if (parse(log.data) !== BigInt(sent.amount) || sent.named && !await names(invoice, log.transactionHash, provider)) continue;
    save(invoice.invoiceId, { ...sent, state: "sent", hash: log.transactionHash });
    return "mined";
  }
  return "unknown";
}

// names reports whether a transaction has the invoice's on-chain id in its data or its events.
async function names(invoice: Invoice, hash: Hex, provider: Provider): Promise<boolean> {
  const found = await Promise.all(["eth_getTransactionByHash", "eth_getTransactionReceipt"].map((method) => read(provider, method, [hash])));
  return JSON.stringify(found).toLowerCase().includes(invoice.onChainInvoiceId.slice(2).toLowerCase());
}

// nonceToAskAgain returns the nonce for another transaction in place of the requested one. It is
// undefined if the account may have sent the requested one: a transfer is mined, or a transaction
// waits, as far as its node knows.
export async function nonceToAskAgain(invoice: Invoice, sent: Sent, provider: Provider): Promise<number | undefined> {
  if (await find(invoice, sent, provider) !== "unknown") return undefined;
  if (sent.hash && await read(provider, "eth_getTransactionByHash", [sent.hash])) return undefined;
  const count = async (at: string) => Number(parse(await read<Hex>(provider, "eth_getTransactionCount", [sent.from, at])));
  const [latest, waiting] = await Promise.all([count("latest"), count("pending")]);
  if (waiting > latest || load(invoice.invoiceId)?.hash !== sent.hash || await isElsewhere(invoice, provider)) return undefined;
  return sent.hash ? sent.nonce ?? latest : latest;
}
