// Sends each form once.

document.addEventListener("submit", (event) => {
  const form = event.target as HTMLFormElement;
  if (form.method !== "post") return;
  const button = (event.submitter ?? form.querySelector("button")) as HTMLButtonElement;
  button.disabled = true; // one press, one payment
  button.textContent = button.dataset.busy ?? button.textContent;
});

addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload(); // back from another page: the shown content is old
});
