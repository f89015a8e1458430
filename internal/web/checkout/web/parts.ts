// The parts of the page that change with the invoice.

const patience = 10_000; // milliseconds

// fetchPage returns a page of the service. With evenError, that may be one about bad input.
export async function fetchPage(url: string, evenError = false): Promise<Document> {
  const answer = await fetch(url, { cache: "no-store", signal: AbortSignal.timeout(patience) });
  if (!answer.ok && !(evenError && answer.status === 400)) throw new Error(`status ${answer.status}`);
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

// parts are the parts, with their content as the service sent it.
const parts = new Map<Element, string>();
for (const part of document.querySelectorAll("[data-part]")) parts.set(part, part.innerHTML);

// update loads the page again and replaces only the parts that have changed. Open parts stay open, help
// opens if the service wants it, and a screen reader reads only the status.
export async function update(main: HTMLElement): Promise<void> {
  const fresh = await fetchPage(location.href);
  for (const [part, before] of parts) {
    const now = fresh.getElementById(part.id);
    if (!now || now.innerHTML === before) continue;
    parts.set(part, now.innerHTML);
    part.className = now.className;
    const focused = part.contains(document.activeElement);
    part.replaceChildren(...now.childNodes);
    if (focused) focusStatus(); // the element with the focus is gone
  }
  if (fresh.querySelector(".asking[open]")) document.querySelector(".asking")?.setAttribute("open", "");
  document.title = fresh.title;
  Object.assign(main.dataset, fresh.getElementById("checkout")?.dataset);
}

function focusStatus(): void {
  const status = document.getElementById("status");
  if (!status) return;
  status.tabIndex = -1;
  status.focus();
}
