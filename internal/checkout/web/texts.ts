// The texts of the page's language, which come with the page.

const catalogue: Record<string, string> = (() => {
  try {
    return JSON.parse(document.getElementById("texts")?.textContent ?? "{}") as Record<string, string>;
  } catch {
    return {};
  }
})();

// t returns a text with its placeholders, such as {{.Merchant}}, filled in.
export function t(id: string, values: Record<string, string> = {}): string {
  const text = catalogue[`script.${id}`] ?? id;
  return text.replace(/\{\{\s*\.(\w+)\s*\}\}/g, (whole, name: string) => values[name] ?? whole);
}

// language is that of the page.
export const language = () => document.documentElement.lang || "en";
