// Copies the text of an element that a button names.

import { t } from "./texts";

const shown = 2000; // milliseconds for which a button shows that it has copied

const notice = document.getElementById("notice");
const labels = new WeakMap<Element, string>(); // the usual texts of buttons

async function copy(button: HTMLElement): Promise<void> {
  const label = labels.get(button) ?? button.textContent ?? "";
  labels.set(button, label);
  try {
    await navigator.clipboard.writeText(button.dataset.copy ?? "");
    button.textContent = t("copied");
    if (notice) notice.textContent = t("copied");
  } catch { // no clipboard outside of https: select the text instead
    const text = button.parentElement?.querySelector("code");
    if (text) getSelection()?.selectAllChildren(text);
    button.textContent = t("selected");
  }
  setTimeout(() => {
    button.textContent = label;
    if (notice) notice.textContent = "";
  }, shown);
}

document.addEventListener("click", (event) => {
  const button = event.target instanceof Element && event.target.closest<HTMLElement>("[data-copy]");
  if (button) void copy(button);
});
