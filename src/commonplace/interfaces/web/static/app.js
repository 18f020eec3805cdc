// What every page has: keys, the menu on small screens, the theme. Pages that need more load it from here.
import { step, open, choose, chooseNone, keepPlace } from "./rows.js";

const root = document.documentElement;
root.classList.add("scripted");
const $ = (selector) => document.querySelector(selector);

const menu = $(".menu");
function turnMenu(shown) {
  $(".side").classList.toggle("open", shown);
  menu.setAttribute("aria-expanded", String(shown));
  for (const rest of document.querySelectorAll("body > :not(.side)")) rest.inert = shown;  // the menu covers it
}
menu?.addEventListener("click", () => turnMenu(menu.getAttribute("aria-expanded") !== "true"));
matchMedia("(max-width: 48rem)").addEventListener("change", () => { if (menu) turnMenu(false); });

$(".folders [aria-current]")?.scrollIntoView({ block: "nearest" });

function turnLights() {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
}

function search() {
  const field = $(".search input[type=search]") ?? $("#find");
  field?.focus();
  field?.select();
}

function escape() {
  if ($(".side.open")) { turnMenu(false); menu.focus(); } else chooseNone();
}

function follow(key) {
  const link = $(`main a[data-key="${CSS.escape(key)}"]`);
  link?.click();
  return Boolean(link);
}

function withChosen(key) {
  const own = $(`.reader .actions [data-key="${key}"]`);
  if (own) { own.click(); return; }
  if (!$(".row > input:checked")) choose();
  if ($(".row > input:checked")) $(`#bulk [data-key="${key}"]`)?.click();
}
function moveChosen() {
  if ($("#rows") && !$(".row > input:checked")) choose();
  if ($("#mover") && (!$("#rows") || $(".row > input:checked"))) dispatchEvent(new Event("move"));
}
$("#bulk")?.addEventListener("submit", keepPlace);

function edit() {
  const own = $(".reader .actions [data-key=e]"), row = $(".row.at .title");
  if (own) own.click();
  else if (document.body.dataset.rules && row?.pathname.startsWith("/items/")) location.href = `${row.pathname}/edit`;
}

const single = {
  "/": search, j: () => step(1), k: () => step(-1), o: open, x: choose, t: turnLights,
  n: () => $("#add-text")?.focus(), e: edit, a: () => withChosen("a"), "#": () => withChosen("#"), v: moveChosen,
  u: () => $(".toast [data-key=u]")?.click(), Escape: escape,
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
  if (follow(event.key)) { event.preventDefault(); return; }
  const act = single[event.key];
  if (act) { event.preventDefault(); act(); }
});

const parts = {
  "./toast.js": "main > .toast",
  "./drafts.js": "body[data-me]",
  "./forms.js": "form[method=post]",
  "./live.js": "#rows",
  "./search.js": "[data-live]",
  "./publish.js": "#publish",
  "./reader.js": ".reader",
  "./pages.js": "#pages",
  "./editor.js": ".reader [data-edit], #editor",
  "./boxes.js": "#text[data-boxes]",
  "./small.js": "[data-copy], [data-sure], [data-sends], [data-says], [data-connected]",
  "./filing.js": "#mover, #nest",
  "./board.js": "#work",
  "./fresh.js": "body[data-events]",
  "./importing.js": "#imports",
  "./pan.js": "[data-pan]",
  "./passkeys.js": ".passkey",
};
await Promise.all(Object.entries(parts).filter(([, found]) => $(found)).map(([file]) => import(file)));
root.dataset.ready = "";
