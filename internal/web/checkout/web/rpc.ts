// Requests to a wallet, and to the chain through it.

import { decodeFunctionResult, encodeFunctionData, hexToBigInt, numberToHex, type Abi } from "viem";

import type { Hex, Provider } from "./providers";

// WalletError is a wallet's error answer.
export class WalletError extends Error {
  constructor(readonly code: number, message: string) {
    super(message);
  }
}

// Codes of EIP-1193, EIP-5792 and JSON-RPC.
export const rejected = 4001;
export const unauthorized = 4100;
export const disconnected = [4900, 4901];
export const unknownChain = 4902;
export const pending = -32002; // the wallet shows another request

// send sends a request to a wallet.
export async function send<T>(provider: Provider, method: string, params: unknown[] = []): Promise<T> {
  try {
    return await provider.request({ method, params }) as T;
  } catch (error) {
    const e = (error ?? {}) as { code?: unknown; message?: unknown; data?: { originalError?: { code?: unknown } } };
    const inner = e.data?.originalError?.code; // some phone wallets wrap the code
    const found = typeof inner === "number" ? inner : Number(e.code);
    throw new WalletError(Number.isFinite(found) ? found : 0, String(e.message ?? error));
  }
}

// Silent is thrown if a read is not answered in time.
export class Silent extends Error {}

const patience = 15_000; // milliseconds

// read is send for requests that need no consent, with a time limit.
export function read<T>(provider: Provider, method: string, params: unknown[] = []): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => { reject(new Silent(method)); }, patience);
    send<T>(provider, method, params).then(resolve, reject).finally(() => { clearTimeout(timer); });
  });
}

// call reads from a contract.
export async function call<T>(provider: Provider, to: Hex, abi: Abi, functionName: string, args: unknown[] = []): Promise<T> {
  const data = encodeFunctionData({ abi, functionName, args });
  const answer = await read<Hex>(provider, "eth_call", [{ to, data }, "latest"]);
  return decodeFunctionResult({ abi, functionName, data: answer }) as T;
}

// chainOf returns the chain id that a wallet reports.
export const chainOf = async (provider: Provider) => Number(await read<Hex | number>(provider, "eth_chainId"));

// quantity returns a number as JSON-RPC has it.
export const quantity = (n: number | bigint): Hex => numberToHex(n);

// parse returns the number that JSON-RPC has.
export const parse = (text: unknown): bigint => typeof text === "string" && text.startsWith("0x") && text.length > 2 ? hexToBigInt(text as Hex) : 0n;
