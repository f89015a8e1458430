// Counts down the time that is left, asks the service whether the page has
// changed, and copies. The page says the same without it.
"use strict";
(() => {
  document.documentElement.classList.add("scripted");
  const texts = JSON.parse(document.getElementById("texts").textContent);
  const notice = document.getElementById("notice");

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const before = (button.dataset.label ??= button.textContent);
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = texts["script.copied"];
      notice.textContent = texts["script.copied"];
    } catch { // no clipboard outside of https: select the text instead
      getSelection().selectAllChildren(button.parentElement.querySelector("code"));
      button.textContent = texts["script.selected"];
    }
    setTimeout(() => {
      button.textContent = before;
      notice.textContent = "";
    }, 2000);
  });

  document.addEventListener("submit", (event) => {
    if (event.target.method !== "post") return;
    const button = event.submitter ?? event.target.querySelector("button");
    button.disabled = true; // one press, one payment
    button.textContent = button.dataset.busy;
  });
  addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload(); // back from elsewhere: what is shown is old
  });

  const main = document.getElementById("checkout");
  if (!main) return; // the page about a transaction does not change by itself

  let end; // performance.now() at which the time is up
  const setLeft = (seconds) => { end = performance.now() + seconds * 1000; };
  const left = () => document.getElementById("left");
  if (left()) setLeft(Number(left().dataset.left));

  const units = [
    [86400, texts["script.unit.day"]], [3600, texts["script.unit.hour"]],
    [60, texts["script.unit.minute"]], [1, texts["script.unit.second"]],
  ];
  const words = (seconds) => { // as the service writes them: the two largest units
    let at = units.findIndex(([size]) => seconds >= size);
    if (at < 0) at = units.length - 1;
    return units.slice(at, at + 2).map(([size, text], i) =>
      text.replace("{{.N}}", Math.floor((i ? seconds % units[at][0] : seconds) / size))).join(" ");
  };
  setInterval(() => {
    const shown = left();
    if (!shown) return;
    const text = words(Math.max(0, Math.ceil((end - performance.now()) / 1000)));
    if (shown.textContent !== text) shown.textContent = text;
  }, 250);

  // Only the parts that have changed are replaced, so that what is open stays
  // open and a screen reader hears of the status alone.
  const parts = new Map();
  for (const part of document.querySelectorAll("[data-part]")) parts.set(part, part.innerHTML);
  const update = async () => {
    const answer = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(10000) });
    if (!answer.ok) throw new Error(answer.status);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const [part, before] of parts) {
      const now = fresh.getElementById(part.id);
      if (now.innerHTML === before) continue;
      parts.set(part, now.innerHTML);
      part.className = now.className;
      const focused = part.contains(document.activeElement);
      part.replaceChildren(...now.childNodes);
      if (focused) { // what had the focus is gone: go on from the status
        const status = document.getElementById("status");
        status.tabIndex = -1;
        status.focus();
      }
    }
    document.title = fresh.title;
    Object.assign(main.dataset, fresh.getElementById("checkout").dataset);
  };

  const slowest = 30000;
  let wait = Number(main.dataset.refresh) * 1000;
  let timer;
  const poll = async () => {
    clearTimeout(timer);
    try {
      const answer = await fetch(main.dataset.status, { cache: "no-store", signal: AbortSignal.timeout(10000) });
      if (!answer.ok) throw new Error(answer.status);
      const status = await answer.json();
      if (status.version !== main.dataset.version) await update();
      setLeft(status.left);
      wait = status.refresh * 1000;
      main.classList.remove("offline");
    } catch {
      wait = Math.min(wait * 2, slowest);
      main.classList.add("offline");
    }
    if (!document.hidden) timer = setTimeout(poll, wait);
  };
  document.addEventListener("visibilitychange", () => { if (!document.hidden) poll(); });
  timer = setTimeout(poll, wait);
})();
