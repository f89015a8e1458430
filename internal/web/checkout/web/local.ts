// Writes times in the browser's zone, and times and numbers as the page's language does.
// The page shows times in UTC and numbers with a dot before.

const language = document.documentElement.lang || "en";
// latin selects the digits of amounts that are copied.
const latin = { numberingSystem: "latn" } as const;
const time = new Intl.DateTimeFormat(language, {
  ...latin, year: "numeric", month: "long", day: "numeric", hour: "numeric", minute: "2-digit", second: "2-digit", timeZoneName: "short",
});

function writeTime(element: HTMLTimeElement): void {
  const at = new Date(element.dateTime);
  if (Number.isNaN(at.getTime())) return;
  element.title = element.textContent ?? "";
  element.textContent = time.format(at);
}

function writeNumber(element: HTMLDataElement): void {
  const digits = element.value.split(".")[1]?.length ?? 0;
  const format = new Intl.NumberFormat(language, { ...latin, minimumFractionDigits: digits, maximumFractionDigits: digits });
  // As a text, the number keeps every digit; older browsers would round it.
  const text = format.format(element.value as unknown as number);
  if (text.replace(/\D/g, "") === element.value.replace(/\D/g, "")) element.textContent = text;
}

const written = new WeakSet<Element>();
function write(): void {
  for (const element of document.querySelectorAll("time[datetime], data[value]")) {
    if (written.has(element)) continue;
    written.add(element);
    if (element instanceof HTMLTimeElement) writeTime(element);
    else writeNumber(element as HTMLDataElement);
  }
}

// writeLocally formats the page, and the parts that are replaced later.
export function writeLocally(): void {
  write();
  new MutationObserver(write).observe(document.body, { childList: true, subtree: true });
}
