// Going through a list by keys, or through the passages of a text.
const rows = () => [...document.querySelectorAll("[data-list] > :is(.row, .passage)")];
const at = () => document.querySelector(":is(.row, .passage).at");

// Of a text, whatever is read at the moment; of a list, none before one was chosen.
function before(all) {
  const chosen = all.indexOf(at());
  if (chosen >= 0 || !all[0].classList.contains("passage")) return chosen;
  return all.findLastIndex((each) => each.getBoundingClientRect().top <= 100);
}

export function step(by) {
  const all = rows();
  if (!all.length) return;
  const next = all[Math.min(Math.max(before(all) + by, 0), all.length - 1)];
  at()?.classList.remove("at");
  next.classList.add("at");
  next.querySelector(".title")?.focus({ preventScroll: true });
  next.scrollIntoView({ block: next.classList.contains("passage") ? "start" : "nearest" });
}

export function open() {
  (at()?.querySelector(".title") ?? document.querySelector(".reader header .source"))?.click();
}

export function choose() {
  at()?.querySelector("input[type=checkbox]")?.click();
}
