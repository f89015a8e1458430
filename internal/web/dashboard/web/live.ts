// Keeps the parts of a page that are marked with data-live up to date: the page is read again when a
// stream sends a message about a change.

import { morph } from "./morph";

// Times are in milliseconds.
const first = 3000; // until the page is read again after the first stream began: it may have changed before
const rarest = 2000; // pause between reads
const patience = 15_000; // of a read
const silent = 50_000; // a stream is lost after this silence; it sends a message every 20 s
const slowest = 120_000; // pause between streams while they fail

const jittered = (ms: number) => ms * (0.8 + 0.4 * Math.random());

export function live(): void {
  const parts = () => [...document.querySelectorAll<HTMLElement>("[data-live]")];
  if (!document.querySelector("main [data-live]")) return; // not worth it just for the navigation
  const address = new URL("/dashboard/live", location.href);
  const merchant = new URLSearchParams(location.search).get("merchantId");
  const invoice = document.querySelector<HTMLElement>("[data-invoice]")?.dataset.invoice;
  if (merchant) address.searchParams.set("merchantId", merchant);
  if (invoice) address.searchParams.set("invoice", invoice);

  let stream: EventSource | undefined;
  let version = ""; // last sent by the stream
  let stale = false; // the page has to be read
  let reading = false;
  let began = false; // there was a stream before
  let failures = 0;
  let timer: ReturnType<typeof setTimeout> | undefined; // of the next read
  let watch: ReturnType<typeof setTimeout> | undefined; // of the stream
  let later: ReturnType<typeof setTimeout> | undefined; // of a read that the page asks for

  // read reads the page, and replaces what has changed in its parts.
  const read = async () => {
    stale = false;
    const answer = await fetch(location.href, { signal: AbortSignal.timeout(patience), redirect: "error", headers: { Accept: "text/html", "Quittance-Refresh": "1" } });
    if (!answer.ok) return;
    const newer = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of parts()) {
      const next = newer.querySelector(`[data-live="${CSS.escape(part.dataset.live ?? "")}"]`);
      if (next) morph(part, next);
    }
    for (const notice of document.querySelectorAll<HTMLElement>("[data-changed]")) {
      const next = newer.querySelector<HTMLElement>(`[data-changed="${CSS.escape(notice.dataset.changed ?? "")}"]`);
      if (next && next.dataset.version !== notice.dataset.version) notice.hidden = false;
    }
  };

  // again reads the page after the seconds that a part names, for changes that the stream does not
  // report.
  const again = () => {
    clearTimeout(later);
    const pauses = parts().map((part) => Number(part.dataset.again)).filter((seconds) => seconds > 0);
    if (pauses.length > 0) later = setTimeout(() => { schedule(0); }, Math.min(...pauses) * 1000);
  };

  const schedule = (after: number) => {
    stale = true;
    if (timer !== undefined || reading) return;
    timer = setTimeout(() => {
      timer = undefined;
      if (document.hidden) return; // it is read when it is shown again
      reading = true;
      read().catch(() => undefined).finally(() => { // without a connection, the stream is lost, too
        reading = false;
        again();
        if (stale) schedule(rarest);
      });
    }, after);
  };

  const close = () => {
    clearTimeout(watch);
    stream?.close();
    stream = undefined;
  };

  const expect = () => {
    clearTimeout(watch);
    watch = setTimeout(retry, silent);
  };

  const retry = () => {
    close();
    failures++;
    watch = setTimeout(() => { if (!document.hidden) open(); }, jittered(Math.min(2000 * 2 ** (failures - 1), slowest)));
  };

  const open = () => {
    close();
    version = "";
    stream = new EventSource(address);
    stream.addEventListener("version", (event: MessageEvent<string>) => {
      failures = 0;
      expect();
      if (version === "") schedule(began ? 0 : first);
      else if (version !== event.data) schedule(0);
      began = true;
      version = event.data;
    });
    stream.addEventListener("error", retry);
    expect();
  };

  // Browsers have six connections to a host over HTTP/1.1, so only visible pages take one.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) close();
    else open();
  });
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => { if (event.persisted) open(); });
  if (!document.hidden) open();
  again();
}
