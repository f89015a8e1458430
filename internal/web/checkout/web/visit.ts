// Keeps the visit of a payment link's page in the browser's history entry, so that a step back or a
// reload leads to the same invoice. The server returns a new visit each time.

const field = document.querySelector<HTMLInputElement>("#link input[name=visit]");
if (field) {
  const { visit } = (history.state ?? {}) as { visit?: unknown };
  if (typeof visit === "string") field.value = visit;
  else history.replaceState({ visit: field.value }, "");
}

export {};
