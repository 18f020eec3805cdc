// Search as you type: the same page's hits, put in while the words are still being written.
import { part } from "./ask.js";

const form = document.querySelector("[data-live]");
const hits = document.querySelector("#hits");
let waiting, asked;

async function look() {
  asked?.abort();
  asked = new AbortController();
  const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
  history.replaceState(null, "", `/search?${query}`);
  try {
    const found = await part(`/search?${query}&part=1`, asked.signal);
    hits.replaceChildren(...found.childNodes);
  } catch (error) {
    if (error.name !== "AbortError") hits.textContent = error.message;
  }
}

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
