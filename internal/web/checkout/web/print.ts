// Prints the receipt. Without scripts the browser's menu does.

const button = document.getElementById("print");
if (button) {
  button.hidden = false;
  button.addEventListener("click", () => { print(); });
}

export {};
