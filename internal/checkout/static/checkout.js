// Counts down the time that is left, follows the invoice by a stream or by polls,
// copies, and asks what became of a transaction. The page says the same without it.
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

  const load = async (url, evenError) => {
    const answer = await fetch(url, { cache: "no-store", signal: AbortSignal.timeout(10000) });
    if (!answer.ok && !(evenError && answer.status === 400)) throw new Error(answer.status);
    return new DOMParser().parseFromString(await answer.text(), "text/html");
  };

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
  const countDown = () => {
    const shown = left();
    if (!shown) return;
    const seconds = Math.max(0, Math.ceil((end - performance.now()) / 1000));
    const text = words(seconds);
    if (shown.textContent !== text) shown.textContent = text;
    const soon = document.getElementById("soon");
    if (soon.hidden !== seconds > Number(soon.dataset.below)) soon.hidden = !soon.hidden;
  };

  // Only the parts that have changed are replaced, so that what is open stays
  // open and a screen reader hears of the status alone.
  const parts = new Map();
  for (const part of document.querySelectorAll("[data-part]")) parts.set(part, part.innerHTML);
  const update = async () => {
    const fresh = await load(location.href);
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

  const slowest = 30000; // pause between polls while they fail
  const silent = 50000; // without a message, a stream is taken for lost; it repeats the status every 20 s
  const mute = 5000; // the same before its first message: a proxy may collect them
  const rarest = 300000; // pause between streams while they fail
  const jittered = (ms) => ms * (0.8 + 0.4 * Math.random());
  const pause = (ms) => new Promise((done) => { setTimeout(done, ms); });

  const show = async (status) => {
    if (status.version !== main.dataset.version) {
      // All pages of a network learn at the same time that it cannot be read, or can be again.
      if ((status.state === "unknown") !== (main.dataset.state === "unknown")) await pause(3000 * Math.random());
      await update();
    }
    const have = document.querySelector("#status .progress strong");
    if (have && status.confirmations) have.textContent = status.confirmations.have;
    setLeft(status.left);
    main.classList.remove("offline");
  };
  let newest, showing;
  const apply = (status) => { // shows one status after the other, and the newest one last
    newest = status;
    showing ??= (async () => {
      try {
        while (newest) {
          const next = newest;
          newest = undefined;
          await show(next);
        }
      } finally {
        showing = undefined;
      }
    })();
    return showing;
  };

  let wait = Number(main.dataset.refresh) * 1000;
  let timer;
  const poll = async () => {
    clearTimeout(timer);
    try {
      const answer = await fetch(main.dataset.status, { cache: "no-store", signal: AbortSignal.timeout(10000) });
      if (!answer.ok) throw new Error(answer.status);
      const status = await answer.json();
      await apply(status);
      wait = status.refresh * 1000;
      follow();
    } catch {
      wait = Math.min(wait * 2, slowest);
      main.classList.add("offline");
    }
    schedule();
  };
  const schedule = () => {
    clearTimeout(timer);
    if (!document.hidden && !stream) timer = setTimeout(poll, jittered(wait));
  };

  let stream; // EventSource of the statuses, while there is one
  let heard, patience; // when it sent something last, and for how long it may be silent
  let failures = 0; // of streams, since one sent something
  let notBefore = 0; // when the next one may begin
  const follow = () => {
    if (stream || document.hidden || !main.dataset.events || performance.now() < notBefore) return;
    stream = new EventSource(main.dataset.events);
    heard = performance.now();
    patience = mute;
    stream.addEventListener("status", (event) => {
      heard = performance.now();
      patience = silent;
      failures = 0;
      apply(JSON.parse(event.data)).catch(lose);
    });
    stream.addEventListener("error", lose);
  };
  const leave = () => {
    stream?.close();
    stream = undefined;
  };
  const lose = () => {
    leave();
    notBefore = performance.now() + jittered(Math.min(2000 * 2 ** failures++, rarest));
    schedule();
  };

  let ticked = Date.now();
  setInterval(() => {
    countDown();
    const slept = Math.abs(Date.now() - ticked) > 15000; // or the clock was set
    ticked = Date.now();
    if (document.hidden) return;
    if (slept) {
      leave();
      poll();
    } else if (stream && performance.now() - heard > patience) {
      lose();
    }
  }, 250);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      leave();
      clearTimeout(timer);
    } else {
      poll();
    }
  });
  follow();
  schedule();

  // "I have paid" is answered on the page itself.
  const answer = document.getElementById("answer");
  const asking = document.querySelector("form.ask");
  let asked = 0;
  const ask = async (url) => {
    const own = ++asked;
    let again = 5;
    try {
      const fresh = await load(url, true);
      if (own !== asked) return; // another transaction was entered meanwhile
      const verdict = fresh.getElementById("verdict") ?? fresh.querySelector(".problem");
      const claim = fresh.querySelector("#claim h2");
      const nodes = [verdict];
      if (claim) {
        const link = document.createElement("a");
        link.href = url;
        link.textContent = claim.textContent;
        const paragraph = document.createElement("p");
        paragraph.append(link);
        nodes.push(paragraph);
      }
      if (answer.textContent.trim() !== nodes.map((node) => node.textContent).join("").trim()) answer.replaceChildren(...nodes);
      again = Number(fresh.querySelector("main").dataset.again ?? 0);
      url = fresh.querySelector("main").dataset.next ?? url;
    } finally {
      if (own === asked && again) setTimeout(() => { if (own === asked) ask(url).catch(() => {}); }, jittered(again * 1000));
    }
  };
  asking?.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = asking.querySelector("button");
    const text = button.textContent;
    button.disabled = true;
    button.textContent = button.dataset.busy;
    try {
      await ask(`${asking.action}?${new URLSearchParams(new FormData(asking))}`);
    } catch {
      asking.submit(); // the page without scripts says what is wrong
    } finally {
      button.disabled = false;
      button.textContent = text;
    }
  });
})();
