// Tells the page that shows this one in a frame how high it is and what became of the
// payment. docs/embedding.md describes the messages. They go to an origin on the
// merchant's list alone.
"use strict";
(() => {
  if (parent === window) return;
  const origins = document.documentElement.dataset.embed.split(" ");
  const checkout = document.getElementById("checkout");
  const invoice = checkout && location.pathname.split("/")[2];
  let to; // the origin of the parent
  let returns = false; // the parent leads the payer back

  const post = (type, rest) => {
    if (to) parent.postMessage({ quittance: 1, type, ...rest }, to);
  };
  const height = () => post("height", { height: Math.ceil(document.body.getBoundingClientRect().height) });
  const state = () => checkout && post("state", { invoice, state: checkout.dataset.state });
  const greet = (origin) => {
    to = origin;
    post("ready", checkout ? { invoice } : {});
    height();
    state();
  };

  addEventListener("message", (event) => {
    if (event.source !== parent || !origins.includes(event.origin)) return;
    if (event.data?.quittance !== 1 || event.data.type !== "hello") return;
    returns = event.data.returns === true;
    greet(event.origin);
  });
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") post("close", {});
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("#back a");
    if (!link) return;
    if (to && returns) {
      event.preventDefault();
      post("return", { invoice, url: link.href });
    } else {
      link.target = "_top";
    }
  });
  new ResizeObserver(height).observe(document.body);
  if (checkout) new MutationObserver(state).observe(checkout, { attributeFilter: ["data-state"] });

  // A browser that does not name the parent's origin waits for its message, unless only one
  // origin is possible.
  const above = location.ancestorOrigins?.[0] ?? (origins.length === 1 ? origins[0] : undefined);
  if (origins.includes(above)) greet(above);
})();
