// The invoice as the service reports it, and the requests that the page sends to the service.

import type { Hex } from "./providers";
import type { Authorization } from "./sent";
import { language } from "./texts";

// Network is the data of a chain that a wallet needs.
export interface Network {
  chainId: number;
  network: string; // to show
  block?: { number: string; hash: Hex }; // a block that the service has seen confirmed
  coin: { name: string; symbol: string; decimals: number };
  rpc?: string[]; // to add the network to a wallet
}

// Invoice is the answer of /checkout/{id}/wallet. Amounts are in minor units.
export interface Invoice extends Network {
  invoiceId: string;
  onChainInvoiceId: Hex;
  registry?: Hex;
  merchantAddress: Hex;
  token: Hex;
  amount: string;
  expiresAt: number; // Unix seconds
  depositFactory?: Hex;
  depositAddress?: Hex;

  merchant: string;
  currency: string;
  decimals: number;
  payTo: Hex;
  due: string; // 0 if the invoice is paid or cannot be paid
  transferAmount?: string; // that identifies the invoice
  gasless: boolean; // the service sends authorizations
  registryPays: boolean; // the registry takes the whole amount
  payments: { txHash: Hex; from: Hex }[];
  now: number; // Unix seconds, by the service's clock
}

// Outcome is the result of an authorization.
export interface Outcome {
  status: "paid" | "refused" | "unknown";
  txHash?: Hex;
  reason?: string;
}

// Refusal is thrown if an authorization was refused. The payer was not charged.
export class Refusal extends Error {
  constructor(readonly reason: string) {
    super(reason);
  }
}

// Unreachable is thrown if the service has not answered.
export class Unreachable extends Error {}

const patience = 20_000; // milliseconds

async function ask(path: string, init: RequestInit = {}, timeout = patience): Promise<Response> {
  try {
    return await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(timeout), ...init });
  } catch (error) {
    throw new Unreachable(String(error));
  }
}

// invoice reads the invoice and the amount due.
export async function invoice(id: string): Promise<Invoice> {
  const answer = await ask(`/checkout/${id}/wallet?lang=${language()}`);
  if (!answer.ok) throw new Unreachable(`status ${answer.status}`);
  const read = await answer.json() as Invoice;
  offset = read.now - performance.now() / 1000;
  return read;
}

let offset = Date.now() / 1000 - performance.now() / 1000;

// now returns the time by the service's clock, in Unix seconds. The browser's may be wrong.
export const now = () => Math.floor(offset + performance.now() / 1000);

// report sends the service the hash that the wallet returned, for the merchant's timeline. The payment
// does not depend on it.
export function report(id: string, hash: Hex): void {
  void fetch(`/checkout/${id}/sent`, { method: "POST", body: new URLSearchParams({ tx: hash }), keepalive: true }).catch(() => undefined);
}

// submit sends an authorization, and waits for its outcome for a number of seconds.
export async function submit(id: string, authorization: Authorization, wait: number): Promise<Outcome> {
  const answer = await ask(`/checkout/${id}/authorization?wait=${wait}`, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(authorization),
  }, patience + wait * 1000);
  if (answer.status === 422 || answer.status === 400) {
    const problem = await answer.json() as { reason?: string; code?: string };
    throw new Refusal(problem.reason ?? problem.code ?? "invalid");
  }
  if (!answer.ok) throw new Unreachable(`status ${answer.status}`);
  return (await answer.json() as { authorization: Outcome }).authorization;
}
