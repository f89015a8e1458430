// Offers to check the invoice's on-chain id in the browser.

import { button, h, paragraph } from "./dom";
import { wallets, type Wallet } from "./providers";
import { t } from "./texts";

const place = document.getElementById("proof");
if (place) {
  const { invoice = "", script = "" } = place.dataset;
  const result = h("div");
  const offer = () => button(t("proof.compute"), () => void prove(), "second");
  const prove = async () => {
    try {
      const part = await import(script) as { prove(place: HTMLElement, id: string, wallet?: Wallet): Promise<void> };
      await part.prove(result, invoice, wallets[0]);
    } catch {
      result.replaceChildren(paragraph(t("wallet.offline"), "problem"));
    }
    place.replaceChildren(offer(), result);
  };
  place.replaceChildren(offer(), result);
}
