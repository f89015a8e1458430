// Makes an element equal to a newer one, and keeps unchanged elements, and so their focus and scroll
// position, and what a person opened or typed.

// key identifies an element among its siblings, or is empty.
function key(element: Element): string {
  if (element.id) return `#${element.id}`;
  if (element instanceof HTMLFormElement) return `${element.getAttribute("action") ?? ""} ${element.querySelector<HTMLInputElement>("input[name=objectId], input[name=invoiceId]")?.getAttribute("value") ?? ""}`;
  if (element.localName === "tr") return element.querySelector("a[href]")?.getAttribute("href") ?? "";
  return "";
}

// kept are elements that are not changed, so that text typed into them stays. A form refers to the
// state in which its page was loaded, which is in its hidden fields.
const kept = (element: Element) => element.localName === "form";

const alike = (a: Node, b: Node) => a instanceof Element && b instanceof Element
  ? a.localName === b.localName && key(a) === key(b) && (key(a) !== "" || a.className === b.className)
  : a.nodeType === b.nodeType && !(a instanceof Element);

function setAttributes(element: Element, newer: Element): void {
  for (const { name } of [...element.attributes]) {
    if (!newer.hasAttribute(name) && !(name === "open" && element.localName === "details")) element.removeAttribute(name);
  }
  for (const { name, value } of [...newer.attributes]) {
    if (element.getAttribute(name) !== value) element.setAttribute(name, value);
  }
}

// morph makes an element equal to a newer one.
export function morph(element: Element, newer: Element): void {
  if (kept(element) || element.isEqualNode(newer)) return;
  setAttributes(element, newer);
  const newKeys = new Set([...newer.children].map(key).filter(Boolean));
  const stays = (node: Node) => node instanceof Element && newKeys.has(key(node));
  let at: ChildNode | null = element.firstChild; // everything before it is done
  for (const child of [...newer.childNodes]) {
    let match: ChildNode | null = at;
    while (match && !alike(match, child)) match = match.nextSibling;
    if (!match) {
      element.insertBefore(document.importNode(child, true), at);
      continue;
    }
    while (at && at !== match && !stays(at)) { // it is gone
      const next: ChildNode | null = at.nextSibling;
      at.remove();
      at = next;
    }
    if (match === at) at = at.nextSibling;
    else element.insertBefore(match, at);
    if (match instanceof Element && child instanceof Element) morph(match, child);
    else if (match.nodeValue !== child.nodeValue) match.nodeValue = child.nodeValue;
  }
  while (at) {
    const next: ChildNode | null = at.nextSibling;
    at.remove();
    at = next;
  }
}
