// Tells the page that shows this one in a frame how high it is and what became of the payment.
// docs/embedding.md describes the messages. They go only to an origin on the merchant's list.

import { protocol } from "./protocol";

// begin answers the parent if its origin is one of origins.
function begin(origins: string[]): void {
  const checkout = document.getElementById("checkout");
  const invoice = checkout && location.pathname.split("/")[2];
  let to: string | undefined; // the origin of the parent
  let returns = false; // the parent leads the payer back
  let told = 0; // the height that the parent has

  const post = (type: string, rest: object = {}) => {
    if (to) parent.postMessage({ quittance: protocol, type, ...rest }, to);
  };
  const height = () => {
    const now = Math.ceil(document.body.getBoundingClientRect().height);
    if (now === told) return;
    told = now;
    post("height", { height: now });
  };
  const state = () => { if (checkout) post("state", { invoice, state: checkout.dataset.state }); };
  const greet = (origin: string) => {
    to = origin;
    told = 0;
    post("ready", checkout ? { invoice } : {});
    height();
    state();
  };

  addEventListener("message", (event) => {
    if (event.source !== parent || !origins.includes(event.origin)) return;
    const data = event.data as { quittance?: unknown; type?: unknown; returns?: unknown } | null;
    if (data?.quittance !== protocol || data.type !== "hello") return;
    returns = data.returns === true;
    greet(event.origin);
  });
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") post("close");
  });
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element && event.target.closest<HTMLAnchorElement>("#back a");
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

  // If the browser does not reveal the parent's origin, the frame waits for its message, unless only one
  // origin is possible.
  const above = location.ancestorOrigins?.[0] ?? (origins.length === 1 ? origins[0] : undefined);
  if (above && origins.includes(above)) greet(above);
}

// frame begins if the page is in a frame that it may be in.
export function frame(): void {
  const { embed } = document.documentElement.dataset;
  if (embed && parent !== window) begin(embed.split(" "));
}
