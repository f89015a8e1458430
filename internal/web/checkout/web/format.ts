// Amounts and times for the payer.

import { formatUnits } from "viem";

import { language } from "./texts";

const digits = 6;

// major returns an amount in major units, with its unit.
export function major(amount: bigint, unit: { decimals: number } & ({ currency: string } | { symbol: string })): string {
  const exact = formatUnits(amount, unit.decimals);
  const shown = new Intl.NumberFormat(language(), { minimumFractionDigits: 2, maximumFractionDigits: digits, maximumSignificantDigits: 15, roundingPriority: "lessPrecision" })
    .format(exact as unknown as number); // a string keeps all digits
  return `${"currency" in unit ? shown : coins(exact)}\u00a0${"currency" in unit ? unit.currency : unit.symbol}`;
}

// coins rounds an amount of the network's coin up to two significant digits.
const coins = (exact: string) => new Intl.NumberFormat(language(), { maximumSignificantDigits: 2 }).format(Number(exact));

// clock returns a time of day in the payer's zone, and names the zone.
export const clock = (unix: number) => new Date(unix * 1000).toLocaleTimeString(language(), { hour: "2-digit", minute: "2-digit", timeZoneName: "short" });
