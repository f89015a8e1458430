// The texts of the page's language, which come with the page.

const catalogue: Record<string, string> = (() => {
  try {
    return JSON.parse(document.getElementById("texts")?.textContent ?? "{}") as Record<string, string>;
  } catch {
    return {};
  }
})();

// In languages that are written from right to left, values keep their own direction.
const [isolate, end] = document.documentElement.dir === "rtl" ? ["\u2068", "\u2069"] : ["", ""];

// t returns a text with its placeholders, such as {{.Merchant}}, filled in.
export function t(id: string, values: Record<string, string> = {}): string {
  const text = catalogue[`script.${id}`] ?? id;
  return text.replace(/\{\{\.(\w+)\}\}/g, (whole, name: string) => {
    const value = values[name];
    return value === undefined ? whole : isolate + value + end;
  });
}

// language returns the page's language.
export const language = () => document.documentElement.lang || "en";
