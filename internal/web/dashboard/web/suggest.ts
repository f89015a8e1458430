// Suggests pages while a person types into the search or the palette. Enter without a choice shows the page
// of results, as it does without scripts.

import { h } from "../../checkout/web/dom";
import { t } from "../../checkout/web/texts";

interface Suggestion {
  page: string;
  title: string;
  detail: string;
}

const pause = 150; // milliseconds without a key
const shortest = 2; // characters

// suggest adds suggestions below the input of a form, and returns what shows them. own returns those that need no
// request; of them, the first is chosen.
function suggest(form: HTMLFormElement, id: string, own: (query: string) => Suggestion[]): (() => void) | undefined {
  const input = form.querySelector<HTMLInputElement>("input[type=search]");
  if (!input) return undefined;

  const list = h("ul", { id, class: "suggestions", role: "listbox", "aria-label": input.getAttribute("aria-label") ?? "" });
  const said = h("p", { class: "hidden", role: "status" });
  list.hidden = true;
  form.append(list, said);
  for (const [name, value] of Object.entries({ role: "combobox", "aria-expanded": "false", "aria-controls": list.id, "aria-autocomplete": "list", autocomplete: "off" })) {
    input.setAttribute(name, value);
  }

  let timer: ReturnType<typeof setTimeout> | undefined;
  let asked: AbortController | undefined;
  let chosen = -1;

  const options = () => [...list.children] as HTMLElement[];

  const choose = (index: number) => {
    chosen = index;
    for (const [i, option] of options().entries()) option.setAttribute("aria-selected", String(i === index));
    const option = options()[index];
    if (option) {
      input.setAttribute("aria-activedescendant", option.id);
      option.scrollIntoView({ block: "nearest" });
    } else {
      input.removeAttribute("aria-activedescendant");
    }
  };

  const close = () => {
    clearTimeout(timer);
    asked?.abort();
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    choose(-1);
  };

  const show = (found: Suggestion[], first: number) => {
    list.replaceChildren(...found.map((s, i) =>
      h("li", { id: `${id}-${i}`, role: "option", "aria-selected": "false", "data-page": s.page }, h("span", {}, s.title), " ", h("span", { class: "faint" }, s.detail))));
    list.hidden = found.length === 0;
    input.setAttribute("aria-expanded", String(found.length > 0));
    said.textContent = t("suggestions", { Count: String(found.length) });
    choose(first);
  };

  const ask = async () => {
    asked?.abort();
    const query = input.value.trim();
    const pages = own(query);
    if (query.length < shortest && pages.length === 0) return close();
    const first = pages.length > 0 ? 0 : -1;
    show(pages, first);
    if (query.length < shortest || !("search" in form.dataset)) return;
    asked = new AbortController();
    const address = new URL(`${form.getAttribute("action") ?? ""}/suggestions`, location.href);
    for (const [name, value] of new FormData(form)) address.searchParams.set(name, String(value));
    try {
      const answer = await fetch(address, { signal: asked.signal, headers: { Accept: "application/json" }, redirect: "error" });
      if (answer.ok) show([...pages, ...await answer.json() as Suggestion[]], first);
    } catch {
      // it was aborted, or there is no connection: the page of results remains
    }
  };

  const open = (option: Element | undefined) => {
    const page = option instanceof HTMLElement ? option.dataset.page : undefined;
    if (page) location.assign(page);
    return page !== undefined;
  };

  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => void ask(), pause);
  });
  input.addEventListener("keydown", (event) => {
    const all = options();
    if (event.isComposing) return;
    if ((event.key === "ArrowDown" || event.key === "ArrowUp") && !list.hidden && all.length > 0) {
      const step = event.key === "ArrowDown" ? 1 : -1;
      choose(chosen < 0 && step < 0 ? all.length - 1 : (chosen + step + all.length + 1) % (all.length + 1) === all.length ? -1 : chosen + step);
    } else if (event.key === "Enter" && chosen >= 0 && !list.hidden) {
      if (!open(all[chosen])) return;
    } else if (event.key === "Escape" && !list.hidden && !form.closest("dialog")) {
      close();
    } else {
      return;
    }
    event.preventDefault();
  });
  list.addEventListener("mousedown", (event) => { event.preventDefault(); }); // the focus stays in the field
  list.addEventListener("click", (event) => {
    if (event.target instanceof Element) open(event.target.closest("[role=option]") ?? undefined);
  });
  input.addEventListener("blur", close);
  form.addEventListener("submit", (event) => {
    if (chosen >= 0 || !("search" in form.dataset)) event.preventDefault(); // the key has opened the choice
    close();
  });
  return () => void ask();
}

// search adds suggestions to the search of the page's header.
export function search(): void {
  const form = document.querySelector<HTMLFormElement>("header form.search");
  if (form) suggest(form, "suggestions", () => []);
}

// palette prepares the palette, and returns what opens it.
export function palette(): (() => void) | undefined {
  const dialog = document.querySelector<HTMLDialogElement>("#palette");
  const form = dialog?.querySelector("form");
  if (!dialog || !form) return undefined;
  const links = [...dialog.querySelectorAll<HTMLAnchorElement>("a[href]")];
  const show = suggest(form, "choices", (query) => links
    .map((link) => ({ page: link.getAttribute("href") ?? "", title: link.textContent ?? "", detail: "" }))
    .filter(({ title }) => title.toLowerCase().includes(query.toLowerCase())));
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // beyond its edge
  });
  return () => {
    if (!dialog.open) dialog.showModal();
    show?.();
  };
}
