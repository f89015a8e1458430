import { InvalidArgumentError } from "./error.js";

/** The maximum number of digits of an amount, which is below 2^256. */
const maxDigits = 78;

/**
 * Returns the minor units of an amount, in the form that calls use: parseAmount("4.90", 6) is "4900000". Signs,
 * exponents, separators and more decimals than the currency has are an InvalidArgumentError. It does not round.
 */
export function parseAmount(text: string, decimals: number): string {
  checkDecimals(decimals);
  const [, whole, fraction = ""] = (typeof text === "string" && /^(0|[1-9][0-9]*)(?:\.([0-9]+))?$/.exec(text)) || [];
  if (whole === undefined) {
    throw new InvalidArgumentError(`an amount must be a text with a plain decimal number, such as "12.34"; it is ${String(text)}`);
  }
  if (fraction.length > decimals) {
    throw new InvalidArgumentError(`the amount ${text} has more decimals than the currency, which has ${decimals}`);
  }
  const digits = (whole + fraction.padEnd(decimals, "0")).replace(/^0+(?=.)/, "");
  if (digits.length > maxDigits || BigInt(digits) >= 1n << 256n) {
    throw new InvalidArgumentError(`the amount ${text} is not below 2^256 minor units`);
  }
  return digits;
}

/**
 * Returns an amount of minor units as a decimal number: formatAmount("4900000", 6) is "4.9", and with minDecimals 2 it
 * is "4.90". The result is exact. Sums may be negative.
 */
export function formatAmount(amount: string | bigint, decimals: number, { minDecimals = 0 }: { minDecimals?: number } = {}): string {
  checkDecimals(decimals);
  checkDecimals(minDecimals);
  if (typeof amount !== "bigint" && (typeof amount !== "string" || !/^-?[0-9]{1,78}$/.test(amount))) {
    throw new InvalidArgumentError(`an amount must be a bigint or a text with minor units, such as "4900000"; it is ${String(amount)}`);
  }
  const units = BigInt(amount);
  const digits = String(units < 0n ? -units : units).padStart(decimals + 1, "0");
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, "").padEnd(Math.min(minDecimals, decimals), "0");
  const whole = digits.slice(0, digits.length - decimals);
  return (units < 0n ? "-" : "") + whole + (fraction && `.${fraction}`);
}

function checkDecimals(decimals: number): void {
  if (!Number.isInteger(decimals) || decimals < 0 || decimals >= maxDigits) {
    throw new InvalidArgumentError(`the decimals of a currency must be a whole number from 0 to ${maxDigits - 1}; they are ${String(decimals)}`);
  }
}
