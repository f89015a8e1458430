// What all pages of the dashboard do.

import "../../checkout/web/copy";

document.documentElement.classList.add("scripted");
