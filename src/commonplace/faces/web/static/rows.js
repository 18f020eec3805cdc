// Going through a list by keys.
const rows = () => [...document.querySelectorAll("[data-list] > .row")];
const at = () => document.querySelector(".row.at");

export function step(by) {
  const all = rows();
  if (!all.length) return;
  const before = all.indexOf(at());
  const next = all[Math.min(Math.max(before + by, 0), all.length - 1)];
  at()?.classList.remove("at");
  next.classList.add("at");
  next.querySelector(".title")?.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

export function open() {
  at()?.querySelector(".title")?.click();
}

export function choose() {
  at()?.querySelector("input[type=checkbox]")?.click();
}
