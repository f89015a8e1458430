// The page about a transaction looks again while its answer can change.

import { fetchPage } from "./parts";

const shown = document.getElementById("verdict");
let before = shown?.innerHTML; // as the service sent it

// lookAgain shows the next answer when it is due. It keeps text that was typed since.
export function lookAgain(main: HTMLElement): void {
  const { again, next } = main.dataset;
  if (!again || !next) return;
  setTimeout(async () => {
    try {
      show(await fetchPage(next), main, next);
    } catch { /* the service does not answer now */ }
    lookAgain(main);
  }, Number(again) * 1000 * (0.8 + 0.4 * Math.random()));
}

function show(fresh: Document, main: HTMLElement, at: string): void {
  const now = fresh.querySelector("main");
  const verdict = fresh.getElementById("verdict");
  if (!now || !shown || !verdict) throw new Error("the answer is about nothing");
  if (fresh.getElementById("claim")) {
    location.replace(at); // it has forms
    return;
  }
  for (const name of ["again", "next"] as const) {
    const value = now.dataset[name];
    if (value === undefined) Reflect.deleteProperty(main.dataset, name);
    else main.dataset[name] = value;
  }
  document.title = fresh.title;
  if (verdict.innerHTML === before) return;
  before = verdict.innerHTML;
  shown.className = verdict.className;
  shown.replaceChildren(...verdict.childNodes);
}
