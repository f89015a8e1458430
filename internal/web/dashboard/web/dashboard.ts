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

// Scripts that only some pages need are loaded by those pages.
for (const part of document.querySelectorAll<HTMLElement>("[data-script]")) {
  void import(part.dataset.script ?? "");
}
