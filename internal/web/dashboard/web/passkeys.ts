// Passkeys: a form with data-passkey is sent with the answer of a passkey of the person's device.

// Begun is the service's answer before a passkey is used.
interface Begun {
  token: string;
  options: { publicKey: PublicKeyCredentialRequestOptionsJSON & PublicKeyCredentialCreationOptionsJSON };
}

const patience = 20_000; // milliseconds

// passkeys shows the forms for passkeys if the browser can use passkeys.
export function passkeys(): void {
  if (!("PublicKeyCredential" in window) || !("parseRequestOptionsFromJSON" in PublicKeyCredential)) return;
  for (const form of document.querySelectorAll<HTMLFormElement>("form[data-passkey]")) {
    form.hidden = false;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      void send(form);
    });
  }
}

// send asks for the answer of a passkey, and sends the form with it.
async function send(form: HTMLFormElement): Promise<void> {
  const button = form.querySelector("button");
  const problem = form.querySelector<HTMLElement>("[data-problem]");
  if (button) button.disabled = true;
  if (problem) problem.hidden = true;
  try {
    const begun = await fetch(form.dataset.passkey ?? "", { method: "POST", redirect: "error", signal: AbortSignal.timeout(patience) });
    if (!begun.ok) throw new Error(`status ${begun.status}`);
    const { token, options } = await begun.json() as Begun;
    const credential = form.dataset.create === undefined
      ? await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options.publicKey) })
      : await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options.publicKey) });
    set(form, "token", token);
    set(form, "answer", JSON.stringify(credential));
    form.submit();
  } catch {
    if (problem) problem.hidden = false;
    if (button) button.disabled = false;
  }
}

// set sets a hidden field of a form.
function set(form: HTMLFormElement, name: string, value: string): void {
  const field = form.elements.namedItem(name);
  if (field instanceof HTMLInputElement) field.value = value;
}
