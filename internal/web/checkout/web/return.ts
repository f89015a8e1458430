// Takes the payer back to the merchant some time after the page has seen the invoice become paid. The
// payer can stop that with a button, or by using the page. Without scripts there is only a link.

import { h } from "./dom";
import { t } from "./texts";

// delay is the time to stop it, in seconds. WCAG 2.2, 2.2.1, asks for 20 at least.
const delay = 20;

const nav = document.getElementById("back");
const status = document.getElementById("status");
const notice = document.getElementById("notice");
const isPaid = () => status?.classList.contains("state-paid") ?? false;

// target is the link to the merchant, if the payer has paid.
const target = () => nav?.querySelector<HTMLAnchorElement>("a.button");

// countDown shows the time left with a button that stops it, and follows the link at its end.
function countDown(link: HTMLAnchorElement): void {
  let left = delay;
  const text = () => t("return.text", { Host: link.host, Seconds: String(left) });
  const shown = h("span", { "aria-live": "off" }, text());
  const stop = h("button", { type: "button", class: "second", click: () => end() }, t("return.stay"));
  const row = h("p", { id: "return" }, shown, " ", stop);
  nav?.after(row);
  if (notice) notice.textContent = text(); // once, for screen readers

  const timer = setInterval(() => {
    if (document.hidden) return; // the payer does not see it and cannot stop it
    left -= 1;
    shown.textContent = text();
    if (left > 0) return;
    end();
    location.assign(link.href);
  }, 1000);

  const used = (event: Event) => {
    if (event instanceof KeyboardEvent && event.key === "Tab") return; // on the way to the button
    if (event.target instanceof Node && row.contains(event.target)) return;
    end();
  };
  function end(): void {
    clearInterval(timer);
    for (const kind of kinds) removeEventListener(kind, used);
    const focused = row.contains(document.activeElement);
    row.replaceChildren(left > 0 ? t("return.stopped") : "");
    if (notice) notice.textContent = left > 0 ? t("return.stopped") : "";
    if (focused) link.focus();
  }
  for (const kind of kinds) addEventListener(kind, used, { passive: true });
}

// kinds are the events by which a payer uses the page.
const kinds = ["keydown", "pointerdown", "wheel", "touchmove"] as const;

if (status && !isPaid() && window.top === window) {
  const observer = new MutationObserver(() => {
    const link = target();
    if (!isPaid() || !link) return;
    observer.disconnect();
    countDown(link);
  });
  observer.observe(status, { attributes: true, attributeFilter: ["class"] });
}
