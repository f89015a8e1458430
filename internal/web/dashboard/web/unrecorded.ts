// Transactions that a wallet has sent and the service has not recorded yet. They are kept in
// the browser, so that a reload does not lose them.

import type { Hex } from "../../checkout/web/providers";

// Unrecorded is such a transaction.
export interface Unrecorded {
  submission: string; // id
  txHash: Hex;
}

const key = (refund: string) => `quittance:refund:${refund}`;

// load returns the transaction of a refund, if there is one.
export function load(refund: string): Unrecorded | undefined {
  try {
    const kept = JSON.parse(localStorage.getItem(key(refund)) ?? "null") as Unrecorded | null;
    return typeof kept?.submission === "string" && typeof kept.txHash === "string" ? kept : undefined;
  } catch { // no storage, or not ours
    return undefined;
  }
}

// save stores a transaction, or removes it.
export function save(refund: string, kept?: Unrecorded): void {
  try {
    if (kept) localStorage.setItem(key(refund), JSON.stringify(kept));
    else localStorage.removeItem(key(refund));
  } catch { /* no storage: the page itself remembers */ }
}
