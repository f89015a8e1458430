// Pays the invoice with a wallet: connects, shows the coming request, asks, and follows the payment.
// It is loaded when a payer chooses a wallet, or has used one.

import { account, explain, network, Problem } from "./connect";
import { button, code, fact, h, paragraph, short } from "./dom";
import { counted, follow, nonceToAskAgain, type Finding } from "./follow";
import { clock, major } from "./format";
import { pay } from "./pay";
import type { Hex, Wallet } from "./providers";
import { read, rejected, WalletError } from "./rpc";
import { alone, canSave, clear, load, open, save, watch, type Sent } from "./sent";
import { invoice as fetchInvoice, now, type Invoice } from "./service";
import { t } from "./texts";
import { fee, plan as choosePlan, shows, type Plan } from "./ways";

export { prove } from "./proof";

const slow = 30_000; // milliseconds until the page shows that the wallet has not answered
const pauses = [1000, 2000, 3000, 5000, 8000]; // between looks, in milliseconds; the last one repeats
const giveUp = 600; // seconds until an unknown transaction may be sent again

// start draws into the section. offer draws the choice of wallets instead.
export function start(section: HTMLElement, wallets: () => Wallet[], offer: () => void, chosen?: Wallet): void {
  flow ??= new Flow(section, wallets, offer);
  if (chosen) void flow.connect(chosen);
  else void flow.resume();
}

let flow: Flow | undefined; // of this page

// Asking is the state while a wallet is asked to pay: values of texts, and the page's state when it
// was asked.
interface Asking {
  values: Record<string, string>;
  state: string;
}

const pageState = () => document.getElementById("checkout")?.dataset.state ?? "";

// isDue reports whether the page shows how to pay.
const isDue = () => document.getElementById("pay")?.childElementCount !== 0;

class Flow {
  private readonly id: string;
  private turn = 0; // number of the latest drawing, to drop answers that come too late
  private looks = 0;
  private shown = ""; // what show has drawn last; empty after any other drawing
  private reviewing = false; // the payer has not pressed yet
  private asking: Asking | undefined; // while the wallet is asked to pay, and will answer here
  private isStuck = false; // the transaction may be lost
  private isUnsent = false; // the service does not have the authorization
  private again: { from: Hex; nonce: number } | undefined; // the lost transaction to send again: only it or the next one can be mined
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly section: HTMLElement, private readonly wallets: () => Wallet[], private readonly offer: () => void) {
    this.id = section.dataset.invoice ?? "";
    watch(this.id, () => { void this.resume(); });
    const main = document.getElementById("checkout");
    if (main) new MutationObserver(() => { this.changed(); }).observe(main, { attributeFilter: ["data-version"] });
  }

  // changed is called when the rest of the page has changed.
  private changed(): void {
    if (pageState() === "paid" && !open(this.id)) clear(this.id); // the payment is final
    if (this.asking) this.warn(this.asking);
    else if (open(this.id)) void this.look();
    else if (this.reviewing && !isDue()) this.leave();
  }

  // warn tells a payer with an open wallet window why not to confirm any more.
  private warn({ values, state }: Asking): void {
    const now = pageState();
    const isOver = now !== state && now !== "waiting";
    const shown = this.section.querySelector(".over");
    if (isOver === (shown !== null)) return;
    shown?.remove();
    if (isOver) this.section.append(h("p", { class: "problem over", role: "alert" }, t("wallet.stop", values)));
  }

  // draw replaces what is shown, and returns the turn.
  private draw(headline: string, ...parts: (Node | string | undefined)[]): number {
    clearTimeout(this.timer);
    this.shown = "";
    this.reviewing = false;
    const focused = this.section.contains(document.activeElement);
    const title = h("h2", { tabindex: "-1" }, headline);
    this.section.replaceChildren(title, ...parts.filter((p): p is Node | string => p !== undefined));
    this.section.hidden = false;
    if (focused) title.focus();
    const page = document.getElementById("checkout")?.classList;
    const isSent = load(this.id)?.state === "sent";
    page?.toggle("sent", isSent && !this.isStuck && !this.isUnsent);
    page?.toggle("confirming", this.asking !== undefined || isSent && this.isUnsent);
    return ++this.turn;
  }

  // leave returns to the choice of wallets, or hides the part if no amount is due.
  private leave(): void {
    this.draw(t("wallet.title"));
    this.section.hidden = true;
    this.offer();
  }

  // connect connects to a wallet, and shows the coming request.
  async connect(wallet: Wallet, free = true): Promise<void> {
    if (this.isOpen()) {
      await this.resume(); // another tab has asked
      return;
    }
    const values = this.valuesOf(wallet);
    let turn = this.draw(t("wallet.title"), paragraph(t("wallet.connecting", values)), this.others());
    try {
      const invoice = await fetchInvoice(this.id);
      Object.assign(values, valuesOf(invoice));
      if (BigInt(invoice.due) === 0n) {
        this.leave();
        return;
      }
      if (this.isTakenBack(invoice)) {
        await this.resume();
        return;
      }
      if (!canSave()) throw new Problem("wallet.storage");
      const from = await account(wallet.provider);
      if (turn !== this.turn) return;
      await network(wallet.provider, invoice, () => {
        turn = this.draw(t("wallet.title"), paragraph(t("wallet.switch", values)), this.others());
      });
      if (turn !== this.turn) return;
      turn = this.draw(t("wallet.title"), paragraph(t("busy")));
      const plan = await choosePlan(wallet.provider, invoice, from, free);
      if (turn === this.turn) this.review(wallet, invoice, plan, free);
    } catch (error) {
      if (turn === this.turn) this.trouble(wallet, error, values, () => void this.connect(wallet, free));
    }
  }

  // isOpen reports whether a payment is recorded that may be on its way.
  private isOpen(): boolean {
    const known = open(this.id);
    return known !== undefined && known.state !== "failed";
  }

  // isTakenBack reports whether the network has taken back the recorded payment, which is then followed again.
  private isTakenBack(invoice: Invoice): boolean {
    const known = load(this.id);
    if (known?.state !== "counted" || counted(invoice, known)) return false;
    save(this.id, { ...known, state: "sent" });
    return true;
  }

  // review describes what the wallet will ask, and offers to pay.
  private review(wallet: Wallet, invoice: Invoice, plan: Plan, free: boolean): void {
    const values = { ...this.valuesOf(wallet), ...valuesOf(invoice), Address: plan.to, Amount: major(plan.amount, invoice) };
    const turn = this.draw(t("wallet.review", values),
      h("dl", {},
        fact(t("wallet.to"), invoice.merchant),
        fact(t("wallet.network"), invoice.network),
        fact(t("wallet.from"), code(plan.from, short(plan.from))),
        fact(t("wallet.fee"), fee(plan, invoice)),
      ),
      paragraph(t(shows(plan, invoice), { ...values, Time: clock(invoice.expiresAt) })),
      h("p", { class: "actions" }, button(t("wallet.pay", values), () => void this.ask(wallet, invoice, plan, free))),
      this.others(),
    );
    this.reviewing = true;
    this.onChange(wallet, turn, () => void this.connect(wallet, free));
  }

  // onChange calls changed if the wallet changes its account or network while this turn is shown.
  private onChange(wallet: Wallet, turn: number, changed: () => void): void {
    const { provider } = wallet;
    const events = ["accountsChanged", "chainChanged", "disconnect"];
    const listener = () => {
      for (const event of events) provider.removeListener?.(event, listener);
      if (turn === this.turn) changed();
    };
    for (const event of events) provider.on?.(event, listener);
  }

  // ask asks the wallet to pay, unless anything has changed since the review, or another tab
  // asks already.
  private async ask(wallet: Wallet, shown: Invoice, plan: Plan, free: boolean): Promise<void> {
    const values = { ...this.valuesOf(wallet), ...valuesOf(shown) };
    const again = () => void this.connect(wallet, free);
    const canceled = new AbortController();
    this.asking = { values, state: pageState() };
    const turn = this.draw(t("wallet.confirm", values), paragraph(t("wallet.confirm.hint", values)),
      h("p", { class: "actions" }, button(t("wallet.cancel"), () => { canceled.abort(); }, "second")));
    const reminder = setTimeout(() => { if (turn === this.turn) this.section.append(paragraph(t("wallet.slow", values), "problem")); }, slow);
    try {
      const mine = await alone(this.id, () => unless(canceled.signal, this.request(wallet, shown, plan, canceled.signal), () => {
        if (open(this.id) || this.shown) void this.resume();
      }));
      if (!mine) throw new Problem("wallet.tab");
      this.asking = undefined;
      await this.resume();
    } catch (error) {
      this.asking = undefined;
      if (load(this.id)?.state === "asked") {
        await this.resume(); // it is unknown whether the wallet sent it
        return;
      }
      if (error instanceof WalletError && error.code === rejected && !isDue()) {
        this.leave(); // the page shows why no payment is due
        return;
      }
      this.trouble(wallet, error, values, again);
    } finally {
      clearTimeout(reminder);
    }
  }

  // request asks the wallet to pay, by a plan for the shown invoice.
  private async request(wallet: Wallet, shown: Invoice, plan: Plan, canceled: AbortSignal): Promise<void> {
    if (this.isOpen()) return; // another tab has sent
    const invoice = await fetchInvoice(this.id);
    if (this.isTakenBack(invoice)) return;
    if (invoice.due !== shown.due || invoice.payTo !== shown.payTo) throw new Problem("wallet.changed");
    const accounts = await read<Hex[]>(wallet.provider, "eth_accounts");
    if (!accounts.some((a) => a.toLowerCase() === plan.from.toLowerCase())) throw new Problem("wallet.changed.account");
    await network(wallet.provider, invoice, () => { /* the review is shown again if it refuses */ });
    canceled.throwIfAborted();
    await pay(wallet.provider, invoice, plan, wallet.id, canceled, plan.byKey && this.again?.from === plan.from ? this.again.nonce : undefined);
  }

  // trouble shows what went wrong, and offers the next steps.
  private trouble(wallet: Wallet, error: unknown, values: Record<string, string>, again: () => void): void {
    const elsewhere = error instanceof Problem && error.id === "wallet.tab"; // where it may have paid
    const turn = this.draw(t(elsewhere ? "wallet.title" : "wallet.failed.title"),
      h("p", { class: "problem", role: "alert" }, explain(error, values)),
      h("p", { class: "actions" }, button(t("wallet.again"), again)),
      this.others(),
    );
    this.onChange(wallet, turn, again);
  }

  // resume draws the recorded payment, and follows it.
  async resume(): Promise<void> {
    if (this.asking) return;
    this.looks = 0;
    await this.look();
  }

  // look checks the outcome of the payment once, draws it, and looks again later.
  private async look(): Promise<void> {
    if (this.asking) return;
    clearTimeout(this.timer);
    const sent = open(this.id);
    if (!sent) {
      this.leave();
      return;
    }
    if (this.looks === 0) this.show(sent, "waiting"); // at once
    const turn = this.turn;
    let invoice: Invoice | undefined;
    let found: Finding = "unknown";
    try {
      invoice = await fetchInvoice(this.id);
      if (sent.state !== "failed") found = await follow(invoice, sent, this.find(sent)?.provider);
    } catch { /* the service or the wallet does not answer now */ }
    if (turn !== this.turn) return;
    const fresh = open(this.id);
    const moot = invoice?.due === "0" && fresh?.state === "failed";
    if (moot) clear(this.id);
    if (!fresh || moot) {
      this.leave();
      return;
    }
    this.show(fresh, found, invoice);
    if (fresh.state === "failed") return;
    const pause = pauses[Math.min(this.looks++, pauses.length - 1)] ?? 0;
    this.timer = setTimeout(() => void this.look(), pause);
  }

  // show draws a record.
  private show(sent: Sent, found: Finding, invoice?: Invoice): void {
    const wallet = this.find(sent);
    const values: Record<string, string> = { ...this.valuesOf(wallet), ...(invoice && valuesOf(invoice)), ...sent.shown };
    const signed = sent.way === "authorization";
    const lost = found === "unknown" || found === "elsewhere";
    this.isStuck = lost && !signed && invoice?.due !== "0" && now() > sent.at + giveUp;
    this.isUnsent = signed && !sent.taken;
    const problem = found === "elsewhere" ? "wallet.no.network" : this.isUnsent && lost ? "wallet.offline" : "";
    const linked = this.looks > pauses.length;
    const what = JSON.stringify([sent, found === "mined", this.isStuck, problem, linked, values]);
    if (what === this.shown) return; // so that a screen reader does not repeat it
    this.drawSent(sent, found === "mined", values, linked, problem && h("p", { class: "problem", role: "alert" }, t(problem, values)));
    this.shown = what;
  }

  private drawSent(sent: Sent, mined: boolean, values: Record<string, string>, linked: boolean, problem: Node | string): void {
    if (sent.state === "failed") {
      this.showFailed(sent, values, this.find(sent));
      return;
    }
    if (sent.state === "asked") {
      this.draw(t("wallet.asked.title", values), h("p", { class: "problem" }, t("wallet.asked", values)), problem, this.doubt(sent));
      return;
    }
    if (this.isUnsent) {
      this.draw(t("wallet.review", values), problem || paragraph(t("busy")));
      return;
    }
    this.draw(t(mined ? "wallet.mined.title" : "wallet.sent.title", values),
      paragraph(t(sent.way === "authorization" && !mined ? "wallet.signed" : "wallet.sent", values)),
      sent.hash && h("dl", {}, fact(t("wallet.transaction"), code(sent.hash, short(sent.hash)), this.copy(sent.hash))),
      sent.hash && linked ? h("p", {}, this.checkLink(sent.hash)) : undefined,
      problem,
      this.isStuck ? this.doubt(sent) : undefined,
    );
  }

  private showFailed(sent: Sent, values: Record<string, string>, wallet: Wallet | undefined): void {
    const problem = sent.problem ?? "wallet.failed";
    this.draw(t("wallet.failed.title", values),
      h("p", { class: "problem", role: "alert" }, t(problem, values)),
      h("p", { class: "actions" }, button(t("wallet.again"), () => {
        if (wallet) void this.connect(wallet, problem !== "wallet.fee.own");
        else this.forget();
      })),
      sent.hash && h("p", {}, this.checkLink(sent.hash)),
      this.others(),
    );
  }

  // doubt offers to look again, or to pay again if the chain shows no payment.
  private doubt(sent: Sent): HTMLElement {
    return h("p", { class: "actions" },
      button(t("wallet.look"), () => { this.looks = 0; this.shown = ""; void this.look(); }),
      button(t("wallet.unsent"), () => void this.askAgain(sent), "second"));
  }

  // askAgain drops the record of the wallet's request, if the wallet has sent no transaction.
  private async askAgain(sent: Sent): Promise<void> {
    const wallet = this.find(sent);
    const values = this.valuesOf(wallet);
    try {
      const invoice = await fetchInvoice(this.id);
      if (!wallet) throw new Problem("wallet.gone");
      await network(wallet.provider, invoice, () => undefined);
      const nonce = await nonceToAskAgain(invoice, sent, wallet.provider);
      if (nonce === undefined) throw new Problem("wallet.waiting");
      clear(this.id);
      this.again = { from: sent.from, nonce };
      await this.connect(wallet);
    } catch (error) {
      this.draw(t("wallet.asked.title", values), h("p", { class: "problem", role: "alert" }, explain(error, values)), this.doubt(sent));
      this.timer = setTimeout(() => void this.look(), pauses.at(-1));
    }
  }

  // forget leaves a payment that failed, and only that.
  private forget(): void {
    if (load(this.id)?.state === "failed") clear(this.id);
    this.leave();
  }

  // find returns the wallet that a record names, if it is there.
  private find(sent: Sent): Wallet | undefined {
    return this.wallets().find((w) => w.id === sent.wallet);
  }

  // others offers another wallet.
  private others(): HTMLElement {
    return h("p", { class: "actions" }, button(t("wallet.other"), () => { this.turn++; this.forget(); }, "second"));
  }

  private copy(text: string): HTMLElement {
    return h("button", { type: "button", class: "copy", "data-copy": text }, t("copy"));
  }

  private checkLink(hash: Hex): HTMLElement {
    return h("a", { href: `/checkout/${this.id}/check?tx=${hash}` }, t("check"));
  }

  private valuesOf(wallet: Wallet | undefined): Record<string, string> {
    return { Wallet: wallet?.name || t("wallet.unnamed") };
  }
}

// unless waits for the wallet until the payer cancels. If it answers after that, it calls late, because
// the record may have changed.
async function unless(canceled: AbortSignal, asked: Promise<void>, late: () => void): Promise<void> {
  const stop = new Promise<void>((resolve) => { canceled.addEventListener("abort", () => { resolve(); }); });
  void asked.catch(() => undefined).then(() => { if (canceled.aborted) late(); });
  await Promise.race([asked, stop]);
}

// valuesOf returns the values for texts about the invoice.
const valuesOf = (invoice: Invoice): Record<string, string> => ({
  Merchant: invoice.merchant, Network: invoice.network, Currency: invoice.currency, ChainID: String(invoice.chainId),
  Amount: major(BigInt(invoice.due), invoice),
});
