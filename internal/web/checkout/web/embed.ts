// Opens links to payment pages, <a data-quittance href="…">, in a dialog of the page. Without this
// script, and if the page must not be shown in a frame, they lead to the payment page.
// docs/embedding.md in https://github.com/quittance/quittance has more.
//
// It is a classic script. Its bundle declares no name in the merchant's page.

import { protocol } from "./protocol";

// Message is what the frame posts.
interface Message {
  quittance?: unknown;
  type?: unknown;
  invoice?: string;
  state?: string;
  height?: unknown;
  url?: string;
}

const service = new URL((document.currentScript as HTMLScriptElement).src).origin;
const patience = 10_000; // milliseconds until the page in the frame must have answered
const grace = 2000; // milliseconds that it has to answer once it is loaded
const final = ["paid", "refunded", "expired", "void"];
const unfinished = new Map<string, string>(); // pages of invoices that are not final, by the link's address

const dialogStyle = "position:fixed;inset:0;margin:auto;width:min(28rem,calc(100vw - 1rem));max-width:none;" +
  "max-height:calc(100dvh - 1rem);padding:0;border:0;border-radius:.75rem;overflow:hidden;outline:0;background:Canvas";
const closeStyle = "position:absolute;inset-block-start:.5rem;inset-inline-end:.5rem;width:2.75rem;height:2.75rem;border:0;" +
  "border-radius:50%;background:transparent;color:#767676;z-index:1;font:1.75rem/1 system-ui,sans-serif;cursor:pointer";
const frameStyle = "display:block;width:100%;height:min(40rem,calc(100dvh - 1rem));border:0";

function styled<K extends "dialog" | "button" | "iframe">(name: K, style: string): HTMLElementTagNameMap[K] {
  const element = document.createElement(name);
  element.style.cssText = style;
  return element;
}

// addressOf returns the page that a link opens.
const addressOf = (link: HTMLAnchorElement) => unfinished.get(link.href) ?? link.href;

function frameOf(link: HTMLAnchorElement, title: string): HTMLIFrameElement {
  const page = new URL(addressOf(link));
  page.searchParams.set("embed", "1");
  const frame = styled("iframe", frameStyle);
  frame.title = title;
  frame.allow = "clipboard-write";
  frame.src = page.href;
  return frame;
}

// open shows a link's page in a dialog.
function open(link: HTMLAnchorElement): void {
  const title = link.dataset.title || link.textContent?.trim() || "Payment";
  const dialog = styled("dialog", dialogStyle);
  dialog.setAttribute("aria-label", title);
  dialog.tabIndex = -1;
  const close = styled("button", closeStyle);
  close.type = "button";
  close.textContent = "×";
  close.setAttribute("aria-label", link.dataset.close || "Close");
  const frame = frameOf(link, title);
  dialog.append(close, frame);

  const tell = (type: string, detail: object) => link.dispatchEvent(new CustomEvent(`quittance:${type}`, { bubbles: true, detail }));
  let answered = false;
  const leave = () => {
    if (!answered && dialog.isConnected) location.assign(addressOf(link));
  };
  const hear = (event: MessageEvent<Message | null>) => {
    const { source, origin, data } = event;
    if (source !== frame.contentWindow || origin !== service || data?.quittance !== protocol) return;
    if (data.type === "ready") answered = true;
    if (data.type === "height") frame.style.height = `min(${Number(data.height) || 0}px, calc(100dvh - 1rem))`;
    if (data.type === "close") dialog.close();
    if (data.type === "ready" || data.type === "state" || data.type === "return") {
      note(link, data);
      tell(data.type, data);
    }
  };
  frame.addEventListener("load", () => { // of each page that the payer comes to
    answered = false;
    frame.contentWindow?.postMessage({ quittance: protocol, type: "hello", returns: true }, service);
    setTimeout(leave, grace);
  });
  setTimeout(leave, patience);
  addEventListener("message", hear);
  close.addEventListener("click", () => { dialog.close(); });
  dialog.addEventListener("close", () => {
    removeEventListener("message", hear);
    dialog.remove();
    tell("close", {});
  });
  document.body.append(dialog);
  dialog.showModal(); // it holds the focus, closes with Escape, and gives the focus back
  dialog.focus(); // the key that was pressed to open it must not press its first button
}

// note stores the invoice of a link while it is not final, and leads the payer back.
function note(link: HTMLAnchorElement, { type, invoice, state, url }: Message): void {
  if (type === "ready" && invoice) unfinished.set(link.href, `${service}/checkout/${invoice}`);
  if (type === "state" && final.includes(state ?? "")) unfinished.delete(link.href);
  if (type === "return" && url && /^https?:/.test(url)) location.assign(url);
}

document.addEventListener("click", (event) => {
  const link = event.target instanceof Element && event.target.closest<HTMLAnchorElement>("a[data-quittance]");
  if (!link || new URL(link.href).origin !== service || typeof HTMLDialogElement === "undefined") return;
  if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  open(link);
});
