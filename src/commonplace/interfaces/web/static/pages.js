// The pages of a PDF beside its text: they follow what is being read, and "p. 3" turns to that page.
const pane = document.querySelector("#pages"), picture = pane.querySelector("img"), said = pane.querySelector("span");
const count = Number(pane.dataset.count);
let shown = Number(picture.dataset.page);

function turn(to) {
  const page = Math.min(Math.max(to, 1), count);
  if (page === shown) return;
  shown = page;
  picture.src = picture.src.replace(/\d+$/, String(page));
  picture.dataset.page = String(page);
  said.textContent = picture.alt = `Page ${page} of ${count}`;
  for (const link of pane.querySelectorAll("[data-by]")) link.search = `?page=${Math.min(Math.max(page + Number(link.dataset.by), 1), count)}`;
}

const plain = (event) => !(event.ctrlKey || event.metaKey || event.shiftKey);
pane.addEventListener("click", (event) => {
  const link = event.target.closest("[data-by]");
  if (!link || !plain(event)) return;
  event.preventDefault();
  turn(shown + Number(link.dataset.by));
});
document.querySelector("#text").addEventListener("click", (event) => {
  const link = event.target.closest(".where a[href*='#page=']");
  if (!link || !plain(event)) return;
  event.preventDefault();
  pane.open = true;
  turn(Number(link.hash.slice("#page=".length)));
  if (getComputedStyle(pane).position !== "fixed") pane.scrollIntoView({ block: "start" });
});

let waiting;
addEventListener("scroll", () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    if (!pane.open || getComputedStyle(pane).position !== "fixed") return;
    const at = [...document.querySelectorAll(".passage[data-page]")].findLast((each) => each.getBoundingClientRect().top < innerHeight / 3);
    if (at) turn(Number(at.dataset.page));
  }, 150);
}, { passive: true });
