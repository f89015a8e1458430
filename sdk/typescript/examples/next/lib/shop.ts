import { Quittance } from "@quittance/client";

/** An order of the shop. A real shop keeps it in its database. */
export interface Order {
  id: string;
  status: "open" | "paid" | "expired";
}

/** The orders by the ids of their invoices. */
export const orders = new Map<string, Order>();

export const prices: Record<string, string> = { espresso: "2500000", cake: "4900000" }; // minor units: USDC has 6 decimals

/** Returns the client. It is made at the first request, because a build has no environment. */
export function quittance(): Quittance {
  return (client ??= new Quittance({ url: required("QUITTANCE_URL"), key: required("QUITTANCE_API_KEY") }));
}

let client: Quittance | undefined;

/** Returns an environment variable. */
export function required(name: string): string {
  const value = process.env[name];
  if (!value) {
    throw new Error(`set ${name}`);
  }
  return value;
}
