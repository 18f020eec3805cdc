// Search as you type: the same page's hits, put in while the words are still being written.
import { part } from "./ask.js";
import { step } from "./rows.js";

const form = document.querySelector("[data-live]");
const hits = document.querySelector("#hits");
let waiting, asked;

async function look() {
  asked?.abort();
  asked = new AbortController();
  const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
  history.replaceState(null, "", `/search?${query}`);
  hits.setAttribute("aria-busy", "true");
  try {
    const found = await part(`/search?${query}&part=1`, asked.signal);
    hits.replaceChildren(...found.childNodes);
    hits.removeAttribute("aria-busy");
  } catch (error) {
    if (error.name === "AbortError") return;
    hits.textContent = error.message;
    hits.removeAttribute("aria-busy");
  }
}

// Down into the hits and up again to the words.
const field = form.elements.q;
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !["ArrowDown", "ArrowUp"].includes(event.key)) return;
  const at = hits.querySelector(".row.at");
  if (event.target !== field && !(at && hits.contains(event.target))) return;
  event.preventDefault();
  if (event.key === "ArrowUp" && (!at || !at.previousElementSibling)) {
    at?.classList.remove("at");
    field.focus();
  } else if (event.target === field && event.key === "ArrowUp") return;
  else step(event.key === "ArrowDown" ? 1 : -1);
});
field.addEventListener("focus", () => hits.querySelector(".row.at")?.classList.remove("at"));

form.addEventListener("input", (event) => {
  clearTimeout(waiting);
  waiting = setTimeout(look, event.target.type === "search" ? 160 : 0);
});
form.addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(waiting); look(); });
// What was chosen before this script was there.
if ([...form.elements].some((field) => changed(field))) look();

function changed(field) {
  if (field.type === "radio" || field.type === "checkbox") return field.checked !== field.defaultChecked;
  if (field.options) return [...field.options].some((option) => option.selected !== option.defaultSelected) && field.selectedIndex > 0;
  return "defaultValue" in field && field.value !== field.defaultValue;
}
