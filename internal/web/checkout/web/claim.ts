// Offers to sign a claim with a wallet that the browser has. Without one the text can be
// signed elsewhere, and the signature pasted.

import { discover, wallets, type Wallet } from "./providers";
import { t } from "./texts";

const button = document.getElementById("wallet-sign") as HTMLButtonElement | null;
const place = document.getElementById("wallet-offer");
const problem = document.getElementById("wallet-problem");
const field = document.getElementById("signature") as HTMLTextAreaElement | null;
if (button && place && problem && field) {
  const payer = button.dataset.account ?? "";

  const sign = async (wallet: Wallet) => {
    const request = wallet.provider.request.bind(wallet.provider);
    problem.hidden = true;
    button.disabled = true;
    try {
      const accounts = await request({ method: "eth_requestAccounts" }) as string[];
      const account = accounts.find((a) => a.toLowerCase() === payer.toLowerCase());
      if (!account) throw new Error(t("claim.account", { Payer: payer }));
      const text = new TextEncoder().encode(document.getElementById("claim-text")?.textContent ?? "");
      const hex = `0x${Array.from(text, (b) => b.toString(16).padStart(2, "0")).join("")}`;
      field.value = await request({ method: "personal_sign", params: [hex, account] }) as string;
      field.form?.requestSubmit(field.form.querySelector<HTMLButtonElement>("[type=submit]"));
    } catch (error) {
      const e = error as { code?: number; message?: string };
      button.disabled = false;
      problem.textContent = e.code === 4001 || !e.message ? t("claim.refused") : e.message;
      problem.hidden = false;
    }
  };

  discover(() => {
    place.hidden = false;
    const extra = [...place.querySelectorAll("[data-wallet]")];
    for (const e of extra) e.remove();
    if (wallets.length < 2) return;
    // With several wallets, each has its button.
    button.hidden = true;
    for (const wallet of wallets) {
      const b = document.createElement("button");
      b.type = "button";
      b.dataset.wallet = wallet.id;
      b.textContent = t("claim.with", { Wallet: wallet.name });
      b.addEventListener("click", () => void sign(wallet));
      place.append(b);
    }
  });
  button.addEventListener("click", () => {
    const [only] = wallets;
    if (only) void sign(only);
  });
}
