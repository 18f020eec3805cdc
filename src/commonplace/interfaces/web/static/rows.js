// Going through a list by keys, or through the passages of a text. The place in a list is kept when the page comes back after
// something was done with a row, and when the row itself has gone.
const rows = () => [...document.querySelectorAll("[data-list] > :is(.row, .passage)")];
const at = () => document.querySelector(":is(.row, .passage).at");
let place = -1;

function stand(index) {
  const all = rows();
  if (!all.length) return;
  place = Math.min(Math.max(index, 0), all.length - 1);
  const next = all[place];
  at()?.classList.remove("at");
  next.classList.add("at");
  next.querySelector(".title")?.focus({ preventScroll: true });
  next.scrollIntoView({ block: next.classList.contains("passage") ? "start" : "nearest" });
}

export function step(by) {
  const all = rows(), here = all.indexOf(at());
  if (here >= 0) stand(here + by);
  // Of a text, whatever is read at the moment; of a list, none before one was chosen.
  else if (all[0]?.classList.contains("passage")) stand(all.findLastIndex((each) => each.getBoundingClientRect().top <= 100) + by);
  else stand(by > 0 && place >= 0 ? place : place + by);
}

export function open() {
  at()?.querySelector(".title")?.click();
}

export function choose() {
  at()?.querySelector("input[type=checkbox]")?.click();
}

export function chooseNone() {
  for (const box of document.querySelectorAll(".row > input:checked")) box.click();
}

export function keepPlace() {
  if (at()) sessionStorage.setItem("place", JSON.stringify([location.pathname + location.search, rows().indexOf(at())]));
}

const [path, kept] = JSON.parse(sessionStorage.getItem("place") ?? "[]");
sessionStorage.removeItem("place");
const back = location.hash.startsWith("#i-") && document.getElementById(location.hash.slice(1));  // from the page of an item
if (path === location.pathname + location.search) stand(kept);
else if (back) stand(rows().indexOf(back));
