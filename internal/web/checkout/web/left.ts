// Counts down the time that is left to pay.

import { t } from "./texts";

const shown = () => document.getElementById("left");

let end = 0; // performance.now() at which the time is up

// setLeft sets the time that is left, in seconds.
export function setLeft(seconds: number): void {
  end = performance.now() + seconds * 1000;
}

const units = [
  { size: 86400, id: "unit.day" }, { size: 3600, id: "unit.hour" }, { size: 60, id: "unit.minute" }, { size: 1, id: "unit.second" },
];

// words writes a time in its two largest units, as the service does.
function words(seconds: number): string {
  let rest = seconds;
  const all = units.map(({ size, id }) => {
    const n = Math.floor(rest / size);
    rest %= size;
    return { n, text: t(id, { N: String(n) }) };
  });
  const first = all.findIndex(({ n }) => n > 0);
  return all.slice(first).slice(0, 2).map(({ text }) => text).join(" ");
}

// countDown shows the time that is left, and the warning near its end.
export function countDown(): void {
  const place = shown();
  if (!place) return;
  const seconds = Math.max(0, Math.ceil((end - performance.now()) / 1000));
  const text = words(seconds);
  if (place.textContent !== text) place.textContent = text;
  const soon = document.getElementById("soon");
  const hidden = seconds > Number(soon?.dataset.below);
  if (soon && soon.hidden !== hidden) soon.hidden = hidden;
}

const written = shown();
if (written) setLeft(Number(written.dataset.left));
