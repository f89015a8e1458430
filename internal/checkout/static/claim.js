// Offers to sign a claim with the wallet that the browser has. Without one the
// text can be signed elsewhere, and the signature pasted.
"use strict";
(() => {
  const wallet = window.ethereum;
  const button = document.getElementById("wallet-sign");
  if (!wallet?.request || !button) return;
  document.getElementById("wallet-offer").hidden = false;
  const problem = document.getElementById("wallet-problem");
  const payer = button.dataset.account;

  button.addEventListener("click", async () => {
    problem.hidden = true;
    button.disabled = true;
    try {
      const accounts = await wallet.request({ method: "eth_requestAccounts" });
      const account = accounts.find((a) => a.toLowerCase() === payer.toLowerCase());
      if (!account) throw new Error(`Choose the account that paid in your wallet: ${payer}`);
      const text = new TextEncoder().encode(document.getElementById("claim-text").textContent);
      const hex = "0x" + Array.from(text, (b) => b.toString(16).padStart(2, "0")).join("");
      const signature = document.getElementById("signature");
      signature.value = await wallet.request({ method: "personal_sign", params: [hex, account] });
      signature.form.requestSubmit(signature.form.querySelector("[type=submit]"));
    } catch (error) {
      button.disabled = false;
      problem.textContent = error.code === 4001 ? "Nothing was signed." : error.message || "The wallet did not sign.";
      problem.hidden = false;
    }
  });
})();
