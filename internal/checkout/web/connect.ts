// Connects to a wallet: an account on the invoice's network, and proof that it is that
// network.

import type { Hex, Provider } from "./providers";
import { chainOf, disconnected, parse, pending, quantity, read, rejected, send, unauthorized, unknownChain, WalletError, Silent } from "./rpc";
import type { Invoice } from "./service";
import { Refusal, Unreachable } from "./service";
import { t } from "./texts";

// Problem is what the payer is told, with what the page can do next.
export class Problem extends Error {
  constructor(readonly id: string, readonly values: Record<string, string> = {}) {
    super(id);
  }
}

// account asks for the account to pay from.
export async function account(provider: Provider): Promise<Hex> {
  const accounts = await send<Hex[]>(provider, "eth_requestAccounts");
  const first = accounts[0];
  if (!first) throw new Problem("wallet.account");
  return first;
}

// network has the wallet use the invoice's chain, and checks that it does.
export async function network(provider: Provider, invoice: Invoice, asks: () => void): Promise<void> {
  if (await chainOf(provider) !== invoice.chainId) {
    asks();
    await switchTo(provider, invoice);
    if (await chainOf(provider) !== invoice.chainId) throw new Problem("wallet.no.network");
  }
  await sameChain(provider, invoice);
}

async function switchTo(provider: Provider, invoice: Invoice): Promise<void> {
  const chainId = quantity(invoice.chainId);
  try {
    await send(provider, "wallet_switchEthereumChain", [{ chainId }]);
  } catch (error) {
    if (!(error instanceof WalletError) || error.code === rejected || error.code === pending) throw error;
    if (!invoice.rpc?.length) throw new Problem("wallet.no.network");
    try {
      await send(provider, "wallet_addEthereumChain", [{ chainId, chainName: invoice.network, nativeCurrency: invoice.coin, rpcUrls: invoice.rpc }]);
      if (await chainOf(provider) !== invoice.chainId) await send(provider, "wallet_switchEthereumChain", [{ chainId }]);
    } catch (added) {
      if (added instanceof WalletError && (added.code === rejected || added.code === pending)) throw added;
      throw new Problem("wallet.no.network");
    }
  }
}

// sameChain compares a block with the one that the service has seen. A wallet whose network
// has the right id and another content, such as a fork or a wrong node, is found out.
async function sameChain(provider: Provider, invoice: Invoice): Promise<void> {
  if (!invoice.block) return;
  const block = await read<{ hash?: string } | null>(provider, "eth_getBlockByNumber", [quantity(BigInt(invoice.block.number)), false]);
  if (!block) {
    const head = parse(await read(provider, "eth_blockNumber"));
    throw new Problem(head < BigInt(invoice.block.number) ? "wallet.behind" : "wallet.false.network");
  }
  if (block.hash?.toLowerCase() !== invoice.block.hash.toLowerCase()) throw new Problem("wallet.false.network");
}

// texts of codes of wallets.
const codes = new Map<number, string>([
  [rejected, "wallet.rejected"], [unauthorized, "wallet.account"], [unknownChain, "wallet.no.network"], [pending, "wallet.open"],
  ...disconnected.map((c): [number, string] => [c, "wallet.disconnected"]),
]);

// explain returns what an error says to the payer.
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
