// What has just been done, and the way back: the button, or the key u.
const SECONDS = 10;
let shown, timer;

export function toast(message, undo) {
  clearTimeout(timer);
  shown?.remove();
  shown = document.createElement("p");
  shown.className = "toast";
  shown.setAttribute("role", "status");
  shown.append(message);
  if (undo) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet small";
    button.dataset.key = "u";
    button.innerHTML = "Undo <kbd>u</kbd>";
    button.addEventListener("click", () => { shown.remove(); undo(); });
    shown.append(" ", button);
  }
  document.body.append(shown);
  timer = setTimeout(() => shown.remove(), SECONDS * 1000);
}
