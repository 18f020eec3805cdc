// What every page has: keys, the menu on small screens, the theme. Pages that need more load it from here.
import { step, open, choose, chooseNone, keepPlace } from "./rows.js";

const root = document.documentElement;
root.classList.add("scripted");
const $ = (selector) => document.querySelector(selector);

const menu = $(".menu");
menu?.addEventListener("click", () => {
  const shown = $(".side").classList.toggle("open");
  menu.setAttribute("aria-expanded", String(shown));
});

$(".folders [aria-current]")?.scrollIntoView({ block: "nearest" });

function turnLights() {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
}

function search() {
  const field = $("form[role=search] input[type=search]");
  if (field) { field.focus(); field.select(); } else location.href = "/search";
}

function withChosen(key) {
  const own = $(`.reader .actions [data-key="${key}"]`);
  if (own) { own.click(); return; }
  if (!$(".row > input:checked")) choose();
  if ($(".row > input:checked")) $(`#bulk [data-key="${key}"]`)?.click();
}
$("#bulk")?.addEventListener("submit", keepPlace);

const single = {
  "/": search, j: () => step(1), k: () => step(-1), o: open, x: choose, t: turnLights,
  n: () => $("#add-text")?.focus(), e: () => withChosen("e"), "#": () => withChosen("#"),
  u: () => $(".going-note button")?.click(), Escape: chooseNone,
  "?": () => $("#help")?.showModal(),
};

let going = -Infinity;  // when g was pressed
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.closest("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");
  if (typing) { if (event.key === "Escape") event.target.blur(); return; }
  if ($("dialog[open]")) return;
  if (event.timeStamp - going < 1500) {
    going = -Infinity;
    const link = $(`a[data-keys="g ${CSS.escape(event.key)}"]`);
    if (link) { event.preventDefault(); link.click(); }
    return;
  }
  if (event.key === "g") { going = event.timeStamp; return; }
  const act = single[event.key];
  if (act) { event.preventDefault(); act(); }
});

const parts = {
  "./live.js": "#rows",
  "./search.js": "[data-live]",
  "./reader.js": ".reader",
  "./small.js": "[data-copy], [data-sure], [data-sends], [data-says], [data-connected]",
  "./board.js": "#work",
  "./fresh.js": "body[data-events]",
  "./pan.js": "[data-pan]",
  "./passkeys.js": ".passkey",
};
await Promise.all(Object.entries(parts).filter(([, found]) => $(found)).map(([file]) => import(file)));
root.dataset.ready = "";
