// Offers to pay with a wallet in the browser. The module that talks to wallets is loaded when a payer
// chooses one, or if a payment was sent before.

import { button, h, paragraph } from "./dom";
import { discover, wallets, type Wallet } from "./providers";
import { open, watch } from "./sent";
import { t } from "./texts";

// Pay is the module that is loaded.
interface Pay {
  start(section: HTMLElement, wallets: () => Wallet[], offer: () => void, chosen?: Wallet): void;
}

const section = document.getElementById("wallet-pay");
if (section) {
  const invoice = section.dataset.invoice ?? "";
  let started = false;

  const start = async (chosen?: Wallet) => {
    started = true;
    section.hidden = false;
    if (chosen) section.replaceChildren(paragraph(t("busy")));
    try {
      const pay = await import(section.dataset.script ?? "") as Pay;
      pay.start(section, () => wallets, offer, chosen);
    } catch {
      started = false;
      section.replaceChildren(paragraph(t("wallet.offline"), "problem"), button(t("wallet.again"), () => void start(chosen)));
    }
  };

  const offer = () => {
    started = false;
    draw();
  };

  const draw = () => {
    if (started) return;
    if (open(invoice)) {
      void start();
      return;
    }
    const can = wallets.length > 0 && isDue();
    section.hidden = !can;
    if (!can) return;
    section.replaceChildren(
      h("h2", {}, t("wallet.title")),
      h("div", { class: "wallets" }, ...wallets.map((w) => choice(w))),
    );
  };

  const choice = (wallet: Wallet) => {
    const b = button(t("wallet.with", { Wallet: wallet.name || t("wallet.unnamed") }), () => void start(wallet));
    if (wallet.icon) b.prepend(h("img", { src: wallet.icon, alt: "", width: "24", height: "24" }));
    return b;
  };

  // The page's part about how to pay is empty if no amount is due.
  const pay = document.getElementById("pay");
  const isDue = () => (pay?.childElementCount ?? 0) > 0;
  if (pay) new MutationObserver(draw).observe(pay, { childList: true });

  discover(draw);
  watch(invoice, draw);
  draw();
}
