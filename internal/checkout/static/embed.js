// Opens links to payment pages, <a data-quittance href="…">, in a dialog of the page. Without
// this script, and where the page must not be shown in a frame, they lead to the payment page.
// docs/embedding.md in https://github.com/quittance/quittance has more.
"use strict";
(() => {
  const service = new URL(document.currentScript.src).origin;
  const patience = 10000; // ms until the page in the frame must have answered
  const grace = 2000; // ms that it has once it is loaded
  const unfinished = new Map(); // pages of invoices that are not paid, by the link's address

  const styled = (name, style) => {
    const element = document.createElement(name);
    element.style.cssText = style;
    return element;
  };

  const open = (link) => {
    const page = new URL(unfinished.get(link.href) ?? link.href);
    page.searchParams.set("embed", "1");
    const name = link.dataset.title || link.textContent.trim() || "Payment";
    const dialog = styled("dialog", "position:fixed;inset:0;margin:auto;width:min(28rem,calc(100vw - 1rem));max-width:none;" +
      "max-height:calc(100dvh - 1rem);padding:0;border:0;border-radius:.75rem;overflow:hidden;outline:0;background:Canvas");
    dialog.setAttribute("aria-label", name);
    dialog.tabIndex = -1;
    const close = styled("button", "position:absolute;inset-block-start:.5rem;inset-inline-end:.5rem;width:2.75rem;height:2.75rem;border:0;" +
      "border-radius:50%;background:transparent;color:#767676;z-index:1;font:1.75rem/1 system-ui,sans-serif;cursor:pointer");
    close.type = "button";
    close.textContent = "×";
    close.setAttribute("aria-label", link.dataset.close || "Close");
    const frame = styled("iframe", "display:block;width:100%;height:min(40rem,calc(100dvh - 1rem));border:0");
    frame.title = name;
    frame.allow = "clipboard-write";
    frame.src = page;
    dialog.append(close, frame);

    const tell = (type, detail) => link.dispatchEvent(new CustomEvent("quittance:" + type, { bubbles: true, detail }));
    let answered = false;
    const leave = () => {
      if (!answered && dialog.isConnected) location.assign(unfinished.get(link.href) ?? link.href);
    };
    const hear = ({ source, origin, data }) => {
      if (source !== frame.contentWindow || origin !== service || data?.quittance !== 1) return;
      switch (data.type) {
        case "ready":
          answered = true;
          if (data.invoice) unfinished.set(link.href, `${service}/checkout/${data.invoice}`);
          break;
        case "height":
          frame.style.height = `min(${Number(data.height) || 0}px, calc(100dvh - 1rem))`;
          return;
        case "state":
          if (["paid", "expired", "void"].includes(data.state)) unfinished.delete(link.href);
          break;
        case "return":
          if (/^https?:/.test(data.url)) location.assign(data.url);
          break;
        case "close":
          dialog.close();
          return;
        default:
          return;
      }
      tell(data.type, data);
    };
    frame.addEventListener("load", () => { // of each page that the payer comes to
      answered = false;
      frame.contentWindow.postMessage({ quittance: 1, type: "hello", returns: true }, service);
      setTimeout(leave, grace);
    });
    setTimeout(leave, patience);
    addEventListener("message", hear);
    close.addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => {
      removeEventListener("message", hear);
      dialog.remove();
      tell("close", {});
    });
    document.body.append(dialog);
    dialog.showModal(); // it holds the focus, closes with Escape, and gives the focus back
    dialog.focus(); // the key that was pressed to open it must not press its first button
  };

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-quittance]");
    if (!link || new URL(link.href).origin !== service || !globalThis.HTMLDialogElement) return;
    if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    open(link);
  });
})();
