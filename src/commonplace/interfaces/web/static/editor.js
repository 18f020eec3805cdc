// The editor in the place of the text: its source with a preview beside it, saved without leaving the page.
import { part, post } from "./ask.js";
import { complain } from "./forms.js";
import { soon } from "./fresh.js";
import { toast } from "./toast.js";

const PAUSE = 200, PATIENCE = 5000;  // milliseconds
const reader = document.querySelector(".reader");
const text = document.querySelector("#text");  // none on the page that only edits
let form = document.querySelector("#editor"), opener, base, waiting, asked = 0;

const area = () => form.elements.text;
const isChanged = () => area().value !== base;
const inView = () => document.querySelector(".passage.at")
  ?? [...document.querySelectorAll(".passage")].findLast((each) => each.getBoundingClientRect().top <= innerHeight / 3);

// Offsets are those of the server, which counts characters that are two of ours as one.
function offset(at, source) {
  return [...source].slice(0, at).join("").length;
}

function put(fresh, { changed = false, start = 0 } = {}) {
  fresh.querySelector("[name=csrf]").value = document.body.dataset.csrf;
  form?.remove();
  form = fresh;
  (text ?? reader.lastElementChild).before(form);
  reader.classList.add("editing");
  wire(changed);
  area().focus({ preventScroll: true });
  const at = start ? offset(start, base) : 0;
  area().setSelectionRange(at, at);
  if (start) { area().blur(); area().focus(); }  // it scrolls to the caret
  form.scrollIntoView({ block: "nearest" });
  if (changed) area().dispatchEvent(new Event("input", { bubbles: true }));  // of two texts, it is the draft from now on
  else document.dispatchEvent(new CustomEvent("form", { detail: form }));  // a draft may be waiting for it
}

async function open(link) {
  if (form) { area().focus(); return; }
  const passage = inView();
  const wanted = link.closest(".passage") ? link : (link.search && passage?.querySelector("[data-edit]")) || link;
  opener = { link: wanted, key: link, y: scrollY };
  try {
    put((await part(wanted.href)).querySelector("#editor"), { start: wanted.search ? 0 : Number(passage?.dataset.start ?? 0) });
  } catch (error) {
    toast(error.message);
  }
}

function close() {
  form.dispatchEvent(new Event("sent", { bubbles: true }));  // its draft is not needed any more
  if (!text) { location.assign(form.querySelector(".close").href); return; }
  form.remove();
  form = undefined;
  reader.classList.remove("editing");
  const link = [...document.querySelectorAll("[data-edit]")].find((each) => each.getAttribute("href") === opener?.link.getAttribute("href"));
  (link ?? document.querySelector("[data-key=e]"))?.focus({ preventScroll: true });
  if (opener) scrollTo({ top: opener.y });
}

const leave = () => { if (!isChanged() || confirm("Discard your changes?")) close(); };

// The page as it is now, before the editor makes way for it.
async function renewed() {
  const come = new Promise((done) => document.addEventListener("fresh", done, { once: true }));
  soon();
  await Promise.race([come, new Promise((done) => setTimeout(done, PATIENCE))]);
}

// Typed on while it was being saved: the editor stays, based on what is saved now.
function goOn(sent, revision) {
  form.ariaBusy = null;
  form.elements.revision.value = revision;
  if (form.elements.before) form.elements.before.value = sent;
  base = area().defaultValue = sent;
  toast("Saved. Save again to keep what you typed since.");
  area().dispatchEvent(new Event("input", { bubbles: true }));
}

async function save() {
  if (form.ariaBusy) return;
  form.ariaBusy = "true";
  const sent = area().value;
  try {
    const said = await post(form.getAttribute("action"), new URLSearchParams([...new FormData(form)].filter(([name]) => name !== "csrf")));
    if (area().value !== sent) { goOn(sent, said.revision); return; }
    form.dispatchEvent(new Event("sent", { bubbles: true }));
    if (text) await renewed();
    if (area().value !== sent) { goOn(sent, said.revision); return; }
    close();
    if (text) toast(said.undo ? said.message : "Nothing changed.", said.undo, renewed);
  } catch (error) {
    if (!form) throw error;
    form.ariaBusy = null;
    if (error.said?.html) put(new DOMParser().parseFromString(error.said.html, "text/html").querySelector("#editor"), { changed: true });
    else complain(form, error);
  }
}

async function preview() {
  const shown = form?.querySelector(".preview .prose"), turn = asked += 1;
  if (!shown) return;
  try {
    const { html } = await post("/preview", { text: area().value });
    if (turn === asked) shown.replaceChildren(...new DOMParser().parseFromString(html, "text/html").body.childNodes);
  } catch (error) {
    complain(form, error);
  }
}

function wire(changed = false) {
  base = changed ? undefined : area().defaultValue;
  const beside = form.querySelector(".preview");
  form.addEventListener("submit", (event) => { event.preventDefault(); save(); });
  form.querySelector(".close").addEventListener("click", (event) => { event.preventDefault(); leave(); });
  form.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && ["Enter", "s"].includes(event.key)) { event.preventDefault(); save(); }
    else if (event.key === "Escape") { event.preventDefault(); event.stopPropagation(); leave(); }
  });
  area().addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(preview, PAUSE); });
  area().addEventListener("scroll", ({ target }) => {
    if (beside) beside.scrollTop = target.scrollTop / Math.max(1, target.scrollHeight - target.clientHeight) * (beside.scrollHeight - beside.clientHeight);
  }, { passive: true });
}

reader.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-edit]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  open(link);
});

// Somebody else was faster; saving shows both texts.
document.addEventListener("fresh", () => {
  if (form && !form.ariaBusy && text && Number(text.dataset.revision) > Number(form.elements.revision.value) && !form.querySelector(".elsewhere")) {
    const said = document.createElement("p");
    said.className = "hint elsewhere";
    said.setAttribute("role", "status");
    said.textContent = "This item was changed elsewhere meanwhile. If its text was, saving shows both.";
    form.querySelector(".save").before(said);
  }
});

if (form) {
  wire(Boolean(form.querySelector(".theirs")));
  if (isChanged()) preview();  // typed before this script was there
}
