// "I have paid" is answered on the page itself.

import { h } from "./dom";
import { fetchPage } from "./parts";

const retry = 5; // seconds until the service is asked again, after it did not answer

let asked = 0; // counts the transactions that were entered

// ask shows what became of a transaction, and asks again for as long as that can change.
async function ask(url: string, place: HTMLElement): Promise<void> {
  const own = ++asked;
  const isCurrent = () => own === asked; // no other transaction was entered since
  const look = async (at: string): Promise<void> => {
    let next = at;
    let again = retry;
    try {
      const fresh = await fetchPage(at, true);
      if (!isCurrent()) return;
      const { dataset } = fresh.querySelector("main") ?? document.body;
      again = Number(dataset.again ?? 0);
      next = dataset.next ?? at;
      show(fresh, at, place);
    } finally {
      if (isCurrent() && again) {
        setTimeout(() => { if (isCurrent()) look(next).catch(() => undefined); }, again * 1000 * (0.8 + 0.4 * Math.random()));
      }
    }
  };
  await look(url);
}

// show draws the verdict, and a link to the page where the payment can be claimed.
function show(fresh: Document, url: string, place: HTMLElement): void {
  const verdict = fresh.getElementById("verdict") ?? fresh.querySelector(".problem");
  if (!verdict) throw new Error("the answer is about nothing");
  const nodes = [verdict];
  const claim = fresh.querySelector("#claim h2");
  if (claim) nodes.push(h("p", {}, h("a", { href: url }, claim.textContent ?? "")));
  const text = nodes.map((node) => node.textContent).join("");
  if (place.textContent?.trim() !== text.trim()) place.replaceChildren(...nodes);
}

const place = document.getElementById("answer");
const form = document.querySelector<HTMLFormElement>("form.ask");
const button = form?.querySelector("button");
if (place && form && button) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const text = button.textContent;
    button.disabled = true;
    button.textContent = button.dataset.busy ?? text;
    try {
      await ask(`${form.action}?${new URLSearchParams(new FormData(form) as unknown as Record<string, string>)}`, place);
    } catch {
      form.submit(); // the page without scripts explains what is wrong
    } finally {
      button.disabled = false;
      button.textContent = text;
    }
  });
}
