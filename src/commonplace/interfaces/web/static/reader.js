// The reader: the words that were asked for, what was noted, and times that lead into the recording.
const prose = (position) => document.querySelector(`.passage[data-position="${CSS.escape(position)}"] .prose`);
const paint = (name, ranges) => { if (window.Highlight) CSS.highlights.set(name, new Highlight(...ranges)); };

// A place in the text that is read as one line, whatever elements it runs through.
function plain(root) {
  let text = "";
  const spots = [];
  const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    [...walk.currentNode.data].reduce((at, sign) => {
      const blank = /\s/.test(sign);
      if (!blank || (text && !text.endsWith(" "))) {
        text += blank ? " " : sign;
        for (let n = 0; n < (blank ? 1 : sign.length); n += 1) spots.push([walk.currentNode, at + (blank ? 0 : n)]);
      }
      return at + sign.length;
    }, 0);
  }
  return { text, spots };
}

function rangeOf({ spots }, start, end) {
  const range = new Range();
  range.setStart(...spots[start]);
  range.setEnd(spots[end - 1][0], spots[end - 1][1] + 1);
  return range;
}

const asked = new URLSearchParams(location.search).get("q");
const passage = document.querySelector(".passage:target .prose");
if (asked && passage) {
  const stems = (asked.toLowerCase().match(/[\p{L}\p{N}_]{3,}/gu) ?? []).map((word) => word.replace(/(?<=\w{3})(?:ing|ed|es|s|ly)$/, ""));
  const found = plain(passage);
  const ranges = [...found.text.matchAll(/[\p{L}\p{N}_]+/gu)]
    .filter(([word]) => stems.some((stem) => word.toLowerCase().startsWith(stem) && word.length - stem.length <= 4))
    .map(({ 0: word, index }) => rangeOf(found, index, index + word.length));
  paint("asked", ranges);
  // A long passage may begin far above the words.
  const box = ranges[0]?.getBoundingClientRect();
  if (box && (box.top < 0 || box.bottom > innerHeight)) scrollBy({ top: box.top - innerHeight / 3 });
}

// What is wider than the page is moved by arrows, too.
function widen() {
  for (const wide of document.querySelectorAll(".prose :is(pre, table)")) if (wide.scrollWidth > wide.clientWidth) wide.tabIndex = 0;
}
widen();

const recording = document.querySelector("#recording");
document.querySelector(".reader")?.addEventListener("click", ({ target }) => {
  const button = target.closest("[data-seek]");
  if (button) { recording.currentTime = Number(button.dataset.seek); recording.play(); }
});

// What was noted, where it still stands.
function paintNotes() {
  paint("noted", [...document.querySelectorAll("[data-quote]")].flatMap(({ dataset: { quote, position } }) => {
    const root = position && prose(position);
    const found = root && plain(root);
    const at = found ? found.text.indexOf(quote) : -1;
    return at < 0 ? [] : [rangeOf(found, at, at + quote.length)];
  }));
}
paintNotes();
document.addEventListener("fresh", () => { widen(); paintNotes(); });

// Words that are chosen can be noted.
const form = document.querySelector(".reader[data-id] #notes > .note-form");
if (form) {
  const offer = document.createElement("button");
  offer.type = "button";
  offer.className = "quiet small offer";
  offer.textContent = "Highlight";
  offer.hidden = true;
  document.body.append(offer);
  const [quote, position, shown] = [form.elements.quote, form.elements.position, form.querySelector("blockquote")];

  const chosen = () => {
    const selection = getSelection();
    const words = selection.toString().replace(/\s+/g, " ").trim();
    const from = selection.anchorNode?.parentElement?.closest(".reader .prose");
    return words && words.length <= 1000 && from ? { words, from, range: selection.getRangeAt(0) } : undefined;
  };
  const follow = () => {
    const found = chosen();
    offer.hidden = !found;
    if (!found) return;
    const box = found.range.getBoundingClientRect();
    offer.style.left = `${Math.max(8, Math.min(box.left + scrollX, innerWidth - 120))}px`;
    offer.style.top = `${box.bottom + scrollY + 6}px`;
  };
  document.addEventListener("selectionchange", follow);
  follow();
  const take = () => {
    const found = chosen();
    if (!found) return;
    quote.value = found.words;
    position.value = found.from.closest(".passage")?.dataset.position ?? "";
    shown.textContent = found.words;
    shown.hidden = false;
    offer.hidden = true;
    form.elements.text.placeholder = "Add a note (optional)";
    form.scrollIntoView({ block: "center" });
    form.elements.text.focus();
  };
  offer.addEventListener("pointerdown", (event) => event.preventDefault());
  offer.addEventListener("click", take);
  addEventListener("keydown", (event) => {
    if (event.key === "m" && !event.defaultPrevented && !event.ctrlKey && !event.metaKey && !event.altKey && !event.target.closest("input, textarea, select")) {
      event.preventDefault();
      if (chosen()) take();
      else form.elements.text.focus();
    }
  });
  form.elements.text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
}

// The size of the letters, and the passage that was read last, are kept in this browser.
const reader = document.querySelector(".reader[data-id]");
const sizes = [0.88, 1, 1.14, 1.3, 1.5];
let size = Number(localStorage.getItem("letters") ?? 1);
const setSize = (to) => {
  size = Math.min(Math.max(to, 0), sizes.length - 1);
  document.documentElement.style.setProperty("--letters", String(sizes[size]));
  localStorage.setItem("letters", String(size));
};
const actions = reader?.querySelector(".actions") ?? reader?.querySelector("header");
if (actions) {
  setSize(size);
  const letters = document.createElement("span");
  letters.className = "letters";
  for (const [sign, said, by] of [["A", "Smaller text", -1], ["A", "Larger text", 1]]) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = `bare ${by < 0 ? "less" : "more"}`;
    button.textContent = sign;
    button.setAttribute("aria-label", said);
    button.addEventListener("click", () => setSize(size + by));
    letters.append(button);
  }
  actions.append(letters);
}

const MOST = 200;
if (reader?.querySelectorAll(".passage").length > 3) {
  const kept = JSON.parse(localStorage.getItem("places") ?? "{}");
  const { id } = reader.dataset;
  const place = kept[id];
  if (place && !location.hash && document.getElementById(place)) {
    const go = document.createElement("a");
    go.className = "resume button quiet small";
    go.href = `#${place}`;
    go.textContent = "Continue reading";
    go.addEventListener("click", () => go.remove());
    reader.querySelector(".text").before(go);
  }
  let waiting;
  addEventListener("scroll", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const passages = [...reader.querySelectorAll(".passage")];
      const last = passages.findLast((each) => each.getBoundingClientRect().top < innerHeight / 2);
      const all = JSON.parse(localStorage.getItem("places") ?? "{}");
      delete all[id];
      // Neither who has not begun nor who has come to the end needs to be led back.
      if (last && last !== passages[0] && last !== passages.at(-1)) all[id] = last.id;
      localStorage.setItem("places", JSON.stringify(Object.fromEntries(Object.entries(all).slice(-MOST))));
    }, 250);
  }, { passive: true });
}
