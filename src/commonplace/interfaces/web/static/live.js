// The list while things happen: adding and choosing.
import { post } from "./ask.js";
import { soon } from "./fresh.js";
import { morph } from "./morph.js";

const list = document.querySelector("#rows");
const box = document.querySelector("#add");
const adding = document.querySelector("#adding");

function rowOf(html) {
  return new DOMParser().parseFromString(`<ul>${html}</ul>`, "text/html").querySelector(".row");
}

function put(id, html) {
  const there = list.querySelector(`[data-id="${CSS.escape(id)}"]`);
  const row = rowOf(html);
  if (!row) there?.remove();
  else if (there) {
    row.classList.toggle("at", there.classList.contains("at"));  // where the keys are
    morph(there, row);
    list.querySelectorAll(`[data-id="${CSS.escape(row.dataset.id)}"]`).forEach((same) => { if (same !== there) same.remove(); });
  }
  else { list.prepend(row); document.querySelector("main > .empty")?.remove(); }
}

function tell(place, { label, share, wrong }) {
  const text = document.createElement("span");
  text.textContent = label ?? "";
  const now = document.createElement("span");
  now.className = place.className;
  now.classList.toggle("wrong", Boolean(wrong));
  now.append(text);
  if (typeof share === "number") {
    const bar = document.createElement("progress");
    bar.max = 1;
    bar.value = share;
    bar.setAttribute("aria-label", label ?? "");
    now.append(bar);
  }
  morph(place, now);
}

// Adding: the answer says that it is stored, and how its row looks; what becomes of it is told by the stream.
function line(name) {
  const entry = document.createElement("li");
  const title = document.createElement("span");
  title.className = "name";
  title.textContent = name;
  const state = document.createElement("span");
  state.className = "state";
  entry.append(title, state);
  adding.append(entry);
  return { entry, state };
}

async function send(form, shown) {
  const answer = await fetch("/add", {
    method: "POST", body: form, headers: { "X-CSRF-Token": document.body.dataset.csrf, Accept: "application/json" },
  });
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.message);
  shown.entry.remove();
  put(said.id, said.row);
  soon();
}

function attempt(shown, work) {
  return work().catch((error) => {
    tell(shown.state, { label: error.message, wrong: true });
    const close = document.createElement("button");
    close.className = "bare small";
    close.textContent = "Dismiss";
    close.addEventListener("click", () => shown.entry.remove());
    shown.entry.append(close);
    throw error;
  });
}

function upload(url, file, told) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("PUT", url);
    request.upload.addEventListener("progress", (event) => told(event.loaded / file.size));
    request.addEventListener("load", () => (request.status < 300 ? resolve() : reject(new Error("Upload failed. Try again."))));
    request.addEventListener("error", () => reject(new Error("Connection lost. Check your network and try again.")));
    request.send(file);
  });
}

function addFile(file) {
  const shown = line(file.name);
  attempt(shown, async () => {
    const { upload: id, url } = await post("/uploads", { name: file.name, type: file.type, size: file.size, folder: box.elements.folder.value });
    await upload(url, file, (share) => tell(shown.state, { label: "Uploading", share }));
    await send(new URLSearchParams({ upload: id }), shown);
  }).catch(() => {});
}

if (box) {
  const text = box.elements.text;
  box.addEventListener("submit", (event) => {
    event.preventDefault();
    const said = text.value.trim();
    if (!said) { text.focus(); return; }
    const form = new URLSearchParams([...new FormData(box)].filter(([name]) => name !== "csrf" && name !== "file"));
    text.value = "";
    const shown = line(said.split("\n")[0].slice(0, 200));
    tell(shown.state, { label: "Adding…" });
    attempt(shown, () => send(form, shown)).catch(() => { if (!text.value) text.value = said; });
  });
  text.addEventListener("keydown", (event) => {
    const alone = /^https?:\/\/\S+$/i.test(text.value.trim());
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey || (alone && !event.shiftKey))) { event.preventDefault(); box.requestSubmit(); }
  });
  const chosen = box.querySelector(".files input");
  const take = () => { const files = [...chosen.files]; chosen.value = ""; files.forEach(addFile); };
  chosen.addEventListener("change", take);
  take();  // what was chosen before this script was there
  const brings = (event) => event.dataTransfer.types.includes("Files");
  addEventListener("dragover", (event) => { if (brings(event)) { event.preventDefault(); box.classList.add("over"); } });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) box.classList.remove("over"); });
  addEventListener("drop", (event) => {
    if (!brings(event)) return;
    event.preventDefault();
    box.classList.remove("over");
    [...event.dataTransfer.files].forEach(addFile);
  });
}

// Choosing: how many, and shift for all between.
const many = document.querySelector(".bulk .many");
let last;
function count() {
  const chosen = list.querySelectorAll(".row > input:checked").length;
  if (many) many.textContent = `${chosen} selected`;
  list.classList.toggle("choosing", chosen > 0);
}
list.addEventListener("click", (event) => {
  if (!event.target.matches(".row > input")) return;
  const all = [...list.querySelectorAll(".row > input")];
  if (event.shiftKey && last) {
    const [a, b] = [all.indexOf(last), all.indexOf(event.target)].sort((x, y) => x - y);
    all.slice(a, b + 1).forEach((each) => { each.checked = event.target.checked; });
  }
  last = event.target;
  count();
});
count();  // what was chosen before this script was there
document.addEventListener("fresh", count);

// Filters take effect when they are chosen.
document.querySelector("form.filters")?.addEventListener("change", (event) => { if (event.target.matches("select")) event.currentTarget.requestSubmit(); });
