// The ways to pay from an account, and the choice among them.

import { concat, encodeFunctionData } from "viem";

import { registry, token } from "./abi";
import { terms } from "./commitment";
import { Problem } from "./connect";
import { major } from "./format";
import type { Hex, Provider } from "./providers";
import { call, parse, quantity, read } from "./rpc";
import type { Sent } from "./sent";
import type { Invoice } from "./service";
import { t } from "./texts";
import { domainOf, type Domain } from "./typed";

// Call is a call that the account makes.
export interface Call {
  to: Hex;
  data: Hex;
}

// Plan is how the account pays.
export interface Plan {
  way: Sent["way"];
  from: Hex;
  amount: bigint; // minor units of the token
  to: Hex; // receiver, or the contract that collects
  domain?: Domain; // to sign under
  calls: Call[]; // to be sent; empty if the service sends
  byKey?: boolean; // the account sends them itself, with its next nonce
  fee?: bigint; // approximate fee that the account pays, in minor units of the coin
  feeIsMore?: boolean; // the network charges for data in addition
}

// plan returns how an account pays the amount due, after checking that it can. Without free, the
// account pays for the transaction.
export async function plan(provider: Provider, invoice: Invoice, from: Hex, free: boolean): Promise<Plan> {
  const due = BigInt(invoice.due);
  const [balance, kind] = await Promise.all([
    call<bigint>(provider, invoice.token, token, "balanceOf", [from]),
    kindOf(provider, invoice, from),
  ]);
  if (balance < due) {
    throw new Problem("wallet.short", { Have: major(balance, invoice), Missing: major(due - balance, invoice) });
  }
  if (free && invoice.gasless) {
    const domain = await domainOf(provider, invoice.chainId, invoice.token);
    if (domain) return { way: "authorization", from, amount: due, to: invoice.payTo, domain, calls: [] };
  }
  const chosen = kind.isContract ? await ofContract(provider, invoice, from, kind.batches) : transfer(invoice, from, due);
  return kind.isContract ? chosen : withFee(provider, invoice, chosen);
}

// kindOf returns whether an account is a contract, deployed or not, and whether its wallet
// takes several calls at once.
async function kindOf(provider: Provider, invoice: Invoice, from: Hex): Promise<{ isContract: boolean; batches: boolean }> {
  const id = quantity(invoice.chainId);
  const [code, capabilities] = await Promise.all([
    read<Hex>(provider, "eth_getCode", [from, "latest"]),
    read<Record<string, { atomic?: { status?: string } }>>(provider, "wallet_getCapabilities", [from, [id]]).catch(() => ({} as never)),
  ]);
  const delegated = code.toLowerCase().startsWith("0xef0100"); // EIP-7702: the key still sends
  const batches = capabilities?.[id]?.atomic?.status === "supported";
  return { isContract: parse(code) > 0n ? !delegated : batches, batches };
}

// transfer is a transfer from an account with a key. Its data ends in the invoice's id.
function transfer(invoice: Invoice, from: Hex, amount: bigint): Plan {
  const data = encodeFunctionData({ abi: token, functionName: "transfer", args: [invoice.payTo, amount] });
  const tagged = invoice.depositAddress ? data : concat([data, invoice.onChainInvoiceId]);
  return { way: "transfer", from, amount, to: invoice.payTo, calls: [{ to: invoice.token, data: tagged }], byKey: true };
}

// ofContract is a payment by a contract account. Another account sends its transaction, so the
// transaction's calldata cannot name the invoice: the registry's event does, the deposit address, or
// the amount.
async function ofContract(provider: Provider, invoice: Invoice, from: Hex, batches: boolean): Promise<Plan> {
  const due = BigInt(invoice.due);
  const whole = due === BigInt(invoice.amount);
  if (invoice.registry && invoice.registryPays && whole) {
    const pay = { to: invoice.registry, data: encodeFunctionData({ abi: registry, functionName: "pay", args: [terms(invoice)] }) };
    const allowed = await call<bigint>(provider, invoice.token, token, "allowance", [from, invoice.registry]);
    const base = { from, amount: due, to: invoice.registry };
    if (allowed >= due) return { ...base, way: batches ? "calls" : "transfer", calls: [pay] };
    if (batches) return { ...base, way: "calls", calls: [allow(invoice, invoice.registry, due), pay] };
    const domain = await domainOf(provider, invoice.chainId, invoice.token);
    if (domain) return { ...base, way: "permit", domain, calls: [] };
  }
  const amount = invoice.depositAddress ? due : BigInt(invoice.transferAmount ?? 0);
  if (amount === 0n) throw new Problem("wallet.cannot");
  const data = encodeFunctionData({ abi: token, functionName: "transfer", args: [invoice.payTo, amount] });
  return { way: batches ? "calls" : "transfer", from, amount, to: invoice.payTo, calls: [{ to: invoice.token, data }] };
}

const allow = (invoice: Invoice, spender: Hex, amount: bigint): Call => (
  { to: invoice.token, data: encodeFunctionData({ abi: token, functionName: "approve", args: [spender, amount] }) });

// margin covers a rise of the fee, in percent.
const margin = 120n;

// dataFees is the contract of OP Stack rollups that computes their charge for data, which nodes leave
// out of their estimates.
const dataFees: Hex = "0x420000000000000000000000000000000000000F";

// withFee adds the network's fee to a plan, and checks that the account has it.
export async function withFee<P extends Pick<Plan, "from" | "amount" | "calls">>(
  provider: Provider, invoice: Pick<Invoice, "coin" | "currency" | "decimals">, p: P,
): Promise<P & Pick<Plan, "fee" | "feeIsMore">> {
  const [gas, price, coins, dataCode] = await Promise.all([
    Promise.all(p.calls.map((c) => read<Hex>(provider, "eth_estimateGas", [{ from: p.from, ...c }]))).catch(() => undefined),
    read<Hex>(provider, "eth_gasPrice"),
    read<Hex>(provider, "eth_getBalance", [p.from, "latest"]),
    read<Hex>(provider, "eth_getCode", [dataFees, "latest"]),
  ]);
  const feeIsMore = parse(dataCode) > 0n;
  const usual = 80_000n; // nodes do not estimate for an account without coins
  const fee = (gas?.reduce((sum, g) => sum + parse(g), 0n) ?? usual) * parse(price) * margin / 100n;
  const sameCoin = invoice.coin.symbol === invoice.currency; // the amount is paid in the same coin
  const held = sameCoin ? parse(coins) - p.amount * 10n ** BigInt(invoice.coin.decimals - invoice.decimals) : parse(coins);
  if (held < fee) {
    throw new Problem(feeIsMore ? "wallet.no.little" : "wallet.no.coin", { Coin: invoice.coin.symbol, Fee: major(fee, invoice.coin), Have: major(parse(coins), invoice.coin) });
  }
  return { ...p, fee, feeIsMore };
}

// fee describes the network's fee. It names no amount that may be too small.
export function fee(plan: Plan, invoice: Invoice): string {
  if (plan.way === "authorization") return t("wallet.fee.none");
  if (plan.fee === undefined) return t("wallet.fee.unknown");
  if (plan.feeIsMore) return t("wallet.fee.little", { Coin: invoice.coin.symbol });
  return t("wallet.fee.about", { Fee: major(plan.fee, invoice.coin) });
}

// shows returns the text about what the wallet will show.
export function shows(plan: Plan, invoice: Invoice): string {
  if (plan.way === "authorization") return "wallet.shows.authorization";
  if (plan.way === "permit") return "wallet.shows.permit";
  return plan.to === invoice.payTo ? "wallet.shows.transfer" : "wallet.shows.calls";
}
