// Follows the invoice by a stream of its statuses or, without one, by polls.

import { countDown, setLeft } from "./left";
import { update } from "./parts";

// Status is the answer of /checkout/{id}/status, and the data of the events of the stream.
interface Status {
  state: string;
  version: string;
  left: number; // seconds
  refresh: number; // seconds
  confirmations?: { have: number };
}

// Times are in milliseconds.
const slowest = 30_000; // pause between polls while they fail
const silent = 50_000; // a stream is lost after this silence; it repeats the status every 20 s
const mute = 5000; // the same before its first message: a proxy may buffer them
const rarest = 300_000; // pause between streams while they fail
const patience = 10_000; // of a poll
const asleep = 15_000; // if a tick is this late, the device slept, or its clock was set

const jittered = (ms: number) => ms * (0.8 + 0.4 * Math.random());
const pause = (ms: number) => new Promise((done) => { setTimeout(done, ms); });

// live keeps the page up to date.
export function live(main: HTMLElement): void {
  let newest: Status | undefined; // not shown yet
  let showing: Promise<void> | undefined;
  let wait = Number(main.dataset.refresh) * 1000; // between polls
  let timer: ReturnType<typeof setTimeout> | undefined;
  let stream: EventSource | undefined;
  let heard = 0; // when the stream sent its last message
  let allowed = mute; // how long it may be silent
  let failures = 0; // of streams, since one sent something
  let notBefore = 0; // when the next one may begin

  const show = async (status: Status) => {
    const shown = main.dataset.state;
    if (status.version !== main.dataset.version) {
      // All pages of a network see at the same time that it cannot be read, or can be again.
      if ((status.state === "unknown") !== (main.dataset.state === "unknown")) await pause(3000 * Math.random());
      await update(main);
      if (status.state !== shown) document.getElementById("status")?.scrollIntoView({ block: "nearest" });
    }
    const have = document.querySelector("#status .progress strong");
    if (have && status.confirmations) have.textContent = String(status.confirmations.have);
    setLeft(status.left);
    main.classList.remove("offline");
  };

  const showAll = async () => {
    try {
      while (newest) {
        const next = newest;
        newest = undefined;
        await show(next);
      }
    } finally {
      showing = undefined;
    }
  };

  // apply shows one status after the other, and the newest one last.
  const apply = (status: Status) => {
    newest = status;
    return showing ??= showAll();
  };

  const poll = async () => {
    clearTimeout(timer);
    try {
      const answer = await fetch(main.dataset.status ?? "", { cache: "no-store", signal: AbortSignal.timeout(patience) });
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      const status = await answer.json() as Status;
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
    if (!document.hidden && !stream) timer = setTimeout(() => void poll(), jittered(wait));
  };

  const follow = () => {
    const { events } = main.dataset;
    if (stream || document.hidden || !events || performance.now() < notBefore) return;
    stream = new EventSource(events);
    heard = performance.now();
    allowed = mute;
    stream.addEventListener("status", (event) => {
      heard = performance.now();
      allowed = silent;
      failures = 0;
      apply(JSON.parse(event.data as string) as Status).catch(lose);
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
    const slept = Math.abs(Date.now() - ticked) > asleep;
    ticked = Date.now();
    if (document.hidden) return;
    if (slept) {
      leave();
      void poll();
    } else if (stream && performance.now() - heard > allowed) {
      lose();
    }
  }, 250);

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      leave();
      clearTimeout(timer);
    } else {
      void poll();
    }
  });

  follow();
  schedule();
}
