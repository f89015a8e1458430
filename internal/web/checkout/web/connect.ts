// Connects to a wallet: an account on the invoice's network, and proof that it is that
// network.

import type { Hex, Provider } from "./providers";
import { chainOf, disconnected, parse, pending, quantity, read, rejected, send, unauthorized, unknownChain, WalletError, Silent } from "./rpc";
import { Refusal, Unreachable, type Network } from "./service";
import { t } from "./texts";

// Problem is an error with a text for the payer and the next steps that the page offers.
export class Problem extends Error {
  constructor(readonly id: string, readonly values: Record<string, string> = {}) {
    super(id);
  }
}

// accounts asks for the accounts that the wallet lets the page use.
export async function accounts(provider: Provider): Promise<Hex[]> {
  const all = await send<unknown>(provider, "eth_requestAccounts");
  return Array.isArray(all) ? all.filter(isAddress) : [];
}

const isAddress = (text: unknown): text is Hex => typeof text === "string" && /^0x[0-9a-f]{40}$/i.test(text);

// account asks for the account to pay from.
export async function account(provider: Provider): Promise<Hex> {
  const [first] = await accounts(provider);
  if (!first) throw new Problem("wallet.account");
  return first;
}

// network makes the wallet use a chain, and checks that it does.
export async function network(provider: Provider, wanted: Network, asks: () => void): Promise<void> {
  if (await chainOf(provider) !== wanted.chainId) {
    asks();
    await switchTo(provider, wanted);
    if (await chainOf(provider) !== wanted.chainId) throw new Problem("wallet.no.network");
  }
  await sameChain(provider, wanted);
}

async function switchTo(provider: Provider, wanted: Network): Promise<void> {
  const chainId = quantity(wanted.chainId);
  try {
    await send(provider, "wallet_switchEthereumChain", [{ chainId }]);
  } catch (error) {
    if (!(error instanceof WalletError) || error.code === pending) throw error;
    if (error.code === rejected || !wanted.rpc?.length) throw new Problem("wallet.no.network");
    try {
      await send(provider, "wallet_addEthereumChain", [{ chainId, chainName: wanted.network, nativeCurrency: wanted.coin, rpcUrls: wanted.rpc }]);
      if (await chainOf(provider) !== wanted.chainId) await send(provider, "wallet_switchEthereumChain", [{ chainId }]);
    } catch (added) {
      if (added instanceof WalletError && added.code === pending) throw added;
      throw new Problem("wallet.no.network");
    }
  }
}

// sameChain compares a block with the one that the service has seen. It finds wallets on a network
// with the right id and other blocks, such as a fork or a wrong node.
async function sameChain(provider: Provider, wanted: Network): Promise<void> {
  if (!wanted.block) return;
  const block = await read<{ hash?: string } | null>(provider, "eth_getBlockByNumber", [quantity(BigInt(wanted.block.number)), false]);
  if (!block) {
    const head = parse(await read(provider, "eth_blockNumber"));
    throw new Problem(head < BigInt(wanted.block.number) ? "wallet.behind" : "wallet.false.network");
  }
  if (block.hash?.toLowerCase() !== wanted.block.hash.toLowerCase()) throw new Problem("wallet.false.network");
}

// texts of codes of wallets.
const codes = new Map<number, string>([
  [rejected, "wallet.rejected"], [unauthorized, "wallet.account"], [unknownChain, "wallet.no.network"], [pending, "wallet.open"],
  ...disconnected.map((c): [number, string] => [c, "wallet.silent"]),
]);

// explain returns the text of an error for the payer.
export function explain(error: unknown, values: Record<string, string>): string {
  if (error instanceof Problem) return t(error.id, { ...values, ...error.values });
  if (error instanceof Refusal) return t("wallet.refused", values);
  if (error instanceof Unreachable) return t("wallet.offline", values);
  if (error instanceof Silent) return t("wallet.silent", values);
  if (error instanceof WalletError) {
    const id = codes.get(error.code);
    return id ? t(id, values) : t("wallet.error", { ...values, Message: error.message.slice(0, 200) });
  }
  return t("wallet.error", { ...values, Message: String(error).slice(0, 200) });
}
