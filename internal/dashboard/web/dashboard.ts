// What all pages of the dashboard do.

import "../../checkout/web/copy";
import { keys } from "./keys";
import { live } from "./live";
import { suggest } from "./suggest";

document.documentElement.classList.add("scripted");
keys();
suggest();
live();

// What only some pages need is loaded there.
for (const part of document.querySelectorAll<HTMLElement>("[data-script]")) {
  void import(part.dataset.script ?? "");
}
