// What all pages of the dashboard do.

import "../../checkout/web/copy";

document.documentElement.classList.add("scripted");

// What only some pages need is loaded there.
for (const part of document.querySelectorAll<HTMLElement>("[data-script]")) {
  void import(part.dataset.script ?? "");
}
