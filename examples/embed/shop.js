// Thanks the payer. What was paid, the shop's server learns from the webhook.
"use strict";
document.addEventListener("quittance:state", (event) => {
  if (event.detail.state === "paid") document.getElementById("thanks").textContent = "Thank you!";
});
