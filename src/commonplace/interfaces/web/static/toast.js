// What has just been done, and the way back: the button, or the key u. It makes way after a while; u still works.
import { post } from "./ask.js";
import { soon } from "./fresh.js";

const SECONDS = 10;
let shown, timer;

function keep(element) {
  clearTimeout(timer);
  shown?.remove();
  shown = element;
  timer = setTimeout(() => shown.classList.add("gone"), SECONDS * 1000);
}

export function toast(message, step, then = soon) {
  const element = document.createElement("div");
  element.className = "toast";
  element.setAttribute("role", "status");
  const said = document.createElement("span");
  said.textContent = message;
  element.append(said);
  if (step) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet small";
    button.dataset.key = "u";
    button.innerHTML = "Undo <kbd>u</kbd>";
    button.addEventListener("click", async () => {
      button.disabled = true;
      try {
        const done = await post(`/undo/${step}`, new URLSearchParams());
        await then();
        toast(done.message);
      } catch (error) {
        toast(error.message);
      }
    });
    element.append(button);
  }
  keep(element);
  document.body.append(element);
}

const come = document.querySelector("main > .toast");  // with the page
if (come) keep(come);
