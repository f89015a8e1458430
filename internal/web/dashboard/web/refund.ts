// Has a wallet in the browser send a refund, and follows the refund until the service has seen it. The
// service records the request before the wallet is asked. So neither a reload, another tab nor another
// person asks a second time.

import { token } from "../../checkout/web/abi";
import { accounts, explain, network, Problem } from "../../checkout/web/connect";
import { button, h, paragraph, short } from "../../checkout/web/dom";
import { major } from "../../checkout/web/format";
import { isNothingSent } from "../../checkout/web/pay";
import { discover, wallets, type Hex, type Wallet } from "../../checkout/web/providers";
import { call, parse, quantity, read, send, WalletError } from "../../checkout/web/rpc";
import { t } from "../../checkout/web/texts";
import { withFee } from "../../checkout/web/ways";
import { Refused, Service, type Refund } from "./service";
import * as unrecorded from "./unrecorded";

const slow = 30_000; // milliseconds until the page shows that the wallet has not answered
const pauses = [1000, 2000, 3000, 5000, 8000]; // between looks, in milliseconds; the last one repeats

const page = document.getElementById("refund");
const place = document.getElementById("wallet");
const id = page?.dataset.id ?? "";
const service = new Service(page?.dataset.wallet ?? "", page?.dataset.submit ?? "");

const pause = (ms: number) => new Promise((done) => { setTimeout(done, ms); });

let busy = false; // the person has chosen a wallet

// draw replaces what is shown.
function draw(...parts: (Node | undefined)[]): void {
  if (!place) return;
  place.replaceChildren(...parts.filter((p): p is Node => p !== undefined));
  place.hidden = false;
}

// offer draws a button for each wallet.
function offer(): void {
  if (busy || !place) return;
  draw(h("h3", {}, t("refund.choose")), h("div", { class: "buttons" }, ...wallets.map((wallet) => {
    const b = button(t("refund.with", { Wallet: nameOf(wallet) }), () => void connect(wallet), "primary");
    if (wallet.icon) b.prepend(h("img", { src: wallet.icon, alt: "", width: "20", height: "20" }), " ");
    return b;
  })));
}

const nameOf = (wallet: Wallet) => wallet.name || t("refund.unnamed");

// trouble shows what went wrong, and offers to try again.
function trouble(wallet: Wallet, error: unknown, values: Record<string, string>): void {
  const text = error instanceof Refused ? error.message : explain(error, values);
  draw(h("p", { class: "error", role: "alert" }, text), h("p", { class: "buttons" },
    button(t("refund.again"), () => { if (error instanceof Refused) location.reload(); else void connect(wallet); }),
    wallets.length > 1 ? button(t("refund.choose"), () => { busy = false; offer(); }) : undefined));
}

// connect checks that a wallet can send the refund, and shows the coming request.
async function connect(wallet: Wallet): Promise<void> {
  busy = true;
  const values: Record<string, string> = { Wallet: nameOf(wallet) };
  draw(paragraph(t("refund.connecting", values)));
  try {
    const refund = await service.refund();
    if (!refund.token || !refund.data || refund.submission) {
      location.reload(); // another person sends it, or it cannot be sent any more
      return;
    }
    Object.assign(values, { Network: refund.network, ChainID: String(refund.chainId), From: refund.from, Amount: major(BigInt(refund.amount), refund) });
    const offered = await accounts(wallet.provider);
    if (!offered.some((a) => same(a, refund.from))) {
      throw new Problem(offered.length > 0 ? "refund.other" : "wallet.account", { Have: offered.slice(0, 3).join(", ") });
    }
    await network(wallet.provider, refund, () => { draw(paragraph(t("refund.switching", values))); });
    draw(paragraph(t("refund.checking", values)));
    const plan = await check(wallet, refund);
    review(wallet, refund, values, plan.fee === undefined ? undefined : major(plan.fee, refund.coin));
  } catch (error) {
    trouble(wallet, error, values);
  }
}

const same = (a: Hex, b: Hex) => a.toLowerCase() === b.toLowerCase();

// check reads whether the account has the amount and the network's fee. A contract pays no
// fee: one of its owners does.
async function check(wallet: Wallet, refund: Refund): Promise<{ fee?: bigint }> {
  const { provider } = wallet;
  const contract = refund.token ?? "0x";
  const amount = BigInt(refund.amount);
  const [balance, code] = await Promise.all([
    call<bigint>(provider, contract, token, "balanceOf", [refund.from]),
    read<Hex>(provider, "eth_getCode", [refund.from, "latest"]),
  ]);
  if (balance < amount) throw new Problem("wallet.short", { Have: major(balance, refund), Missing: major(amount - balance, refund) });
  const plan = { from: refund.from, amount, calls: [{ to: contract, data: refund.data ?? "0x" }] };
  const isContract = parse(code) > 0n && !code.toLowerCase().startsWith("0xef0100"); // EIP-7702: the key still sends
  return isContract ? {} : withFee(provider, refund, plan);
}

// review describes what the wallet will ask, and offers to send.
function review(wallet: Wallet, refund: Refund, values: Record<string, string>, fee: string | undefined): void {
  const shown = { ...values, From: short(refund.from), Fee: fee ?? "" };
  draw(paragraph(t(fee === undefined ? "refund.review.contract" : "refund.review", shown)),
    h("p", { class: "buttons" }, button(t("refund.send", values), () => void ask(wallet, refund, values), "primary")));
}

// ask records at the service that the wallet is asked, asks it, and records what it sent.
async function ask(wallet: Wallet, refund: Refund, values: Record<string, string>): Promise<void> {
  draw(paragraph(t("refund.confirm", values)));
  const reminder = setTimeout(() => { place?.append(paragraph(t("refund.slow", values), "warnings")); }, slow);
  let submission = "";
  try {
    await network(wallet.provider, refund, () => undefined);
    submission = (await service.submit()).id;
    const txHash = await send<Hex>(wallet.provider, "eth_sendTransaction", [{
      from: refund.from, to: refund.token, data: refund.data, value: "0x0", chainId: quantity(refund.chainId),
    }]);
    await keep({ submission, txHash });
    location.reload();
  } catch (error) {
    if (submission && !(error instanceof WalletError && isNothingSent(error))) {
      location.reload(); // the page shows that it is not known whether the wallet sent it
      return;
    }
    if (submission) await service.withdraw(submission).catch(() => { location.reload(); });
    trouble(wallet, error, values);
  } finally {
    clearTimeout(reminder);
  }
}

// keep records a transaction at the service, and tries again until it succeeds.
async function keep(sent: unrecorded.Unrecorded): Promise<void> {
  unrecorded.save(id, sent);
  const values = { Hash: sent.txHash };
  draw(paragraph(t("refund.recording", values)));
  for (let tries = 0; ; tries++) {
    try {
      await service.record(sent.submission, sent.txHash);
      unrecorded.save(id);
      return;
    } catch (error) {
      if (error instanceof Refused && error.status !== 503) throw error; // 503: the database takes no writes, for now
      draw(h("p", { class: "error", role: "alert" }, t("refund.unrecorded", values)));
      await pause(pauses[Math.min(tries, pauses.length - 1)] ?? 0);
    }
  }
}

// follow reloads the page when the service has newer information than the page shows.
async function follow(): Promise<void> {
  for (let looks = 0; ; looks++) {
    await pause(pauses[Math.min(looks, pauses.length - 1)] ?? 0);
    if (document.hidden || busy) continue;
    const { state } = await service.refund().catch(() => ({ state: page?.dataset.state }));
    if (state !== page?.dataset.state && !typed()) {
      location.reload();
      return;
    }
  }
}

// typed reports whether a form of the page contains typed text, or a ticked box.
const typed = () => [...document.querySelectorAll<HTMLInputElement>("main input:not([type=hidden])")].some(
  (input) => input.type === "checkbox" ? input.checked : input.value !== "");

const sent = unrecorded.load(id);
if (sent) {
  busy = true;
  keep(sent).catch(() => { unrecorded.save(id); }).finally(() => { location.reload(); });
} else {
  if (place) discover(offer);
  void follow();
}
