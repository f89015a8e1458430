// Small helpers for elements.

type Child = Node | string | undefined | false;

// h returns a new element.
export function h<K extends keyof HTMLElementTagNameMap>(
  name: K, attributes: Record<string, string | (() => void)> = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key, value);
    else element.setAttribute(key, value);
  }
  element.append(...children.filter((c): c is Node | string => c !== undefined && c !== false));
  return element;
}

// paragraph returns a paragraph of text.
export const paragraph = (text: string, style = "") => h("p", style ? { class: style } : {}, text);

// button returns a button that is pressed once: it is disabled until the part is drawn again.
export function button(text: string, press: () => void, style = ""): HTMLButtonElement {
  const b: HTMLButtonElement = h("button", { type: "button", ...(style && { class: style }), click: () => {
    b.disabled = true;
    press();
  } }, text);
  return b;
}

// fact returns a term and its value, as rows of a dl.
export const fact = (name: string, ...value: Child[]): DocumentFragment => {
  const row = document.createDocumentFragment();
  row.append(h("dt", {}, name), h("dd", {}, ...value));
  return row;
};

// code returns a value to copy.
export const code = (text: string, shown = text) => h("code", { title: text }, shown);

// short returns an address or a hash with its middle left out.
export const short = (hex: string) => `${hex.slice(0, 8)}…${hex.slice(-6)}`;
