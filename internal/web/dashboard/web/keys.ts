// Keys: / leads to the search, c to a new invoice, ? lists the keys, j and k move in a list, and g and a letter
// lead to a page. They are ignored while a person types, and with a modifier. Ctrl-K opens the palette at any time.

const patience = 1500; // milliseconds between g and a letter

const typing = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || target.closest("input, select, textarea, [role=textbox]") !== null);

// visible reports whether an element is shown.
const visible = (element: HTMLElement) => element.getClientRects().length > 0;

// stops are the links of the rows of lists, in the order of the page.
function stops(): HTMLElement[] {
  const rows = document.querySelectorAll<HTMLElement>("main tbody tr, main .choices > li, main .item");
  return [...rows].flatMap((row) => row.querySelector<HTMLElement>("a[href]") ?? []).filter(visible);
}

// move moves the focus by a number of rows. From outside the list, it goes to the first row.
function move(by: number): void {
  const all = stops();
  const row = document.activeElement?.closest("tr, li, .item");
  const at = row ? all.findIndex((stop) => stop.closest("tr, li, .item") === row) : -1;
  const next = all[at < 0 ? 0 : Math.min(Math.max(at + by, 0), all.length - 1)];
  next?.focus({ preventScroll: true });
  next?.scrollIntoView({ block: "nearest" });
}

export function keys(palette?: () => void): void {
  const help = document.querySelector<HTMLDialogElement>("#keys");
  const search = document.querySelector<HTMLInputElement>("header input[type=search]");
  let going = 0; // when g was pressed
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key === "k" && palette) {
      event.preventDefault();
      palette();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented || typing(event.target)) return;
    if (help?.open) {
      if (event.key === "?") help.close();
      return;
    }
    if (event.timeStamp - going < patience && going) {
      going = 0;
      const link = document.querySelector<HTMLAnchorElement>(`nav a[data-key="${CSS.escape(event.key)}"]`);
      if (link) {
        event.preventDefault();
        link.click();
        return;
      }
    }
    switch (event.key) {
      case "/":
        if (!search) return;
        search.focus();
        search.select();
        break;
      case "?":
        help?.showModal();
        break;
      case "c": {
        const link = document.querySelector<HTMLAnchorElement>("#palette a[data-key=c]");
        if (!link) return;
        link.click();
        break;
      }
      case "j":
        move(1);
        break;
      case "k":
        move(-1);
        break;
      case "g":
        going = event.timeStamp;
        break;
      default:
        return;
    }
    event.preventDefault();
  });
  for (const open of document.querySelectorAll<HTMLElement>("[data-keys]")) {
    open.hidden = false;
    open.addEventListener("click", () => help?.showModal());
  }
  help?.addEventListener("click", (event) => {
    if (event.target === help) help.close(); // beyond its edge
  });
}
