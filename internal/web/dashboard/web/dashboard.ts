// The script of all pages of the dashboard.

import "../../checkout/web/copy";
import { keys } from "./keys";
import { live } from "./live";
import { passkeys } from "./passkeys";
import { palette, search } from "./suggest";

document.documentElement.classList.add("scripted");
keys(palette());
search();
live();
passkeys();

// A form that changes something is sent once in a while: the answer to the second click would hide a secret that only the
// first answer has.
const pause = 10_000; // milliseconds
let sent = new WeakMap<HTMLFormElement, number>();
addEventListener("pageshow", () => { sent = new WeakMap(); });
addEventListener("submit", (event) => {
  const form = event.target as HTMLFormElement;
  if (event.defaultPrevented || form.getAttribute("method") !== "post") return;
  if (Date.now() - (sent.get(form) ?? 0) < pause) event.preventDefault();
  else sent.set(form, Date.now());
});

// Scripts that only some pages need are loaded by those pages.
for (const part of document.querySelectorAll<HTMLElement>("[data-script]")) {
  void import(part.dataset.script ?? "");
}
