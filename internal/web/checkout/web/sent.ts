// Records which payment this browser's wallet was asked for, and what it sent. The record is kept in
// the browser, so that a reload or another tab does not pay again.

import type { Hex } from "./providers";

// Sent is a payment by the wallet. A record is written before the wallet is asked.
export interface Sent {
  version: 1;
  // asked: the wallet was asked for a transaction, and has not answered. sent: it was sent. failed: it
  // transferred no money, and another may be sent. counted: the service has seen it, but the network may
  // take it back.
  state: "asked" | "sent" | "failed" | "counted";
  way: "authorization" | "transfer" | "permit" | "calls";
  wallet: string; // id
  from: Hex;
  amount: string; // minor units
  shown: { Amount: string; Merchant: string }; // of texts about it
  at: number; // Unix seconds, by the service's clock
  block: string; // number of a block before the payment
  nonce?: number; // of the account's next transaction, before the wallet was asked
  known?: Hex[]; // transactions that the service had seen before
  named?: boolean; // the transaction names the invoice; otherwise its receiver or amount does
  hash?: Hex; // of the transaction
  gone?: number; // Unix seconds, when another transaction was first seen to have its nonce
  calls?: string; // id of the wallet's calls
  authorization?: Authorization; // that was signed
  taken?: boolean; // the service has the authorization
  problem?: string; // with failed: id of a text
}

// Authorization is what the service takes at /checkout/{id}/authorization.
export interface Authorization {
  from: Hex;
  to: Hex;
  value: string;
  validAfter: number;
  validBefore: number;
  nonce: Hex;
  signature: Hex;
}

const states = new Set(["asked", "sent", "failed", "counted"]);

const key = (invoice: string) => `quittance:sent:${invoice}`;

// load returns what is recorded for an invoice.
export function load(invoice: string): Sent | undefined {
  try {
    const sent = JSON.parse(localStorage.getItem(key(invoice)) ?? "null") as Sent | null;
    return sent?.version === 1 && states.has(sent.state) && typeof sent.from === "string" ? sent : undefined;
  } catch { // no storage, or not ours
    return undefined;
  }
}

// open returns what is recorded, unless the payment counts.
export function open(invoice: string): Sent | undefined {
  const sent = load(invoice);
  return sent?.state === "counted" ? undefined : sent;
}

// save records a payment. It throws if the browser cannot store it: without a record a reload could
// pay twice.
export function save(invoice: string, sent: Sent): void {
  localStorage.setItem(key(invoice), JSON.stringify(sent));
}

const largest = 20_000; // characters of a record with a long signature, and more

// canSave reports whether the browser keeps records.
export function canSave(): boolean {
  const probe = "quittance:probe";
  try {
    localStorage.setItem(probe, "x".repeat(largest));
    localStorage.removeItem(probe);
    return true;
  } catch {
    return false;
  }
}

// clear removes what is recorded.
export function clear(invoice: string): void {
  try {
    localStorage.removeItem(key(invoice));
  } catch { /* no storage */ }
}

// watch calls changed when another tab changes the record.
export function watch(invoice: string, changed: () => void): void {
  addEventListener("storage", (event) => {
    if (event.key === key(invoice) || event.key === null) changed();
  });
}

// alone runs ask while no other tab does for this invoice, and returns false if one does.
export async function alone(invoice: string, ask: () => Promise<void>): Promise<boolean> {
  if (!navigator.locks) { // outside of a secure context only the record guards
    await ask();
    return true;
  }
  return navigator.locks.request(key(invoice), { ifAvailable: true }, async (lock) => {
    if (lock) await ask();
    return lock !== null;
  });
}
