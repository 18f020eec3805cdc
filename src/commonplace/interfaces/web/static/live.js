// The list while things happen: adding and choosing.
import { post } from "./ask.js";
import { button, drop, keep, kept, line } from "./drafts.js";
import { complain } from "./forms.js";
import { soon } from "./fresh.js";
import { morph } from "./morph.js";

const list = document.querySelector("#rows");
const box = document.querySelector("#add");

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

// Adding: the answer says that it is stored, and how its row looks; what becomes of it is told by the stream. What was not answered
// before the page was left is kept, and sent again at the next visit: the server has a text only once.
const DAY = 86_400_000, PATIENCE = 500;  // milliseconds
const GONE = 404, INCOMPLETE = 409, TRIES = 10;
const { me } = document.body.dataset;
const sending = new Set(), elsewhere = new Set();
let leaving = 0;  // files and texts that only this page has

const channel = new BroadcastChannel("sending");  // what other tabs are sending is not sent twice
channel.addEventListener("message", ({ data }) => {
  if (data) data.forEach((key) => elsewhere.add(key));
  else channel.postMessage([...sending]);
});
addEventListener("beforeunload", (event) => { if (leaving) event.preventDefault(); });

const keyOf = (kind) => `${kind} ${me} ${Date.now()}-${Math.random()}`;

async function send(form, shown, tries = 1) {
  try {
    const { id, row } = await post("/add", form);
    shown.entry.remove();
    put(id, row);
    soon();
  } catch (error) {
    if (error.status !== INCOMPLETE || tries === 1) throw error;
    await new Promise((done) => setTimeout(done, PATIENCE));
    await send(form, shown, tries - 1);
  }
}

function offer(shown, key, label, again, what) {
  tell(shown.state, { label, wrong: true });
  if (again) button(shown.entry, what, () => { shown.entry.remove(); again(); });
  button(shown.entry, again ? "Discard" : "Dismiss", () => { drop(key); shown.entry.remove(); });
}

const nameOf = (text) => text.trim().split("\n")[0].slice(0, 200);

async function addNote(key, note) {
  const form = new URLSearchParams(note.form), text = form.get("text"), shown = line(nameOf(text));
  tell(shown.state, { label: "Adding…" });
  const safe = keep(key, note);
  sending.add(key);
  if (!safe) leaving += 1;
  try {
    await send(form, shown);
    drop(key);
  } catch (error) {
    if (error.status === 422 && !box.elements.text.value) {  // to be mended where it was written
      drop(key);
      shown.entry.remove();
      box.elements.text.value = text;
      complain(box, error);
      box.elements.text.dispatchEvent(new Event("input", { bubbles: true }));
    } else offer(shown, key, error.message, () => addNote(key, note), "Try again");
  } finally {
    sending.delete(key);
    if (!safe) leaving -= 1;
  }
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

async function addFile(file) {
  const shown = line(file.name), key = keyOf("file"), { name, type, size } = file;
  keep(key, { name });
  const leave = async () => {
    const { upload: id, url } = await post("/uploads", { name, type, size, folder: box.elements.folder.value });
    keep(key, { name, upload: id });
    await upload(url, file, (share) => tell(shown.state, { label: "Uploading", share }));
    return id;
  };
  sending.add(key);
  leaving += 1;
  try {
    const id = await leave().finally(() => { leaving -= 1; });
    keep(key, { name, upload: id, sent: true });
    await send(new URLSearchParams({ upload: id }), shown);
    drop(key);
  } catch (error) {
    offer(shown, key, error.message, () => { drop(key); addFile(file); }, "Try again");
  } finally {
    sending.delete(key);
  }
}

// At the next visit the last byte of a file may have arrived, or still be on its way through the server.
async function resumeFile(key, file) {
  const shown = line(file.name);
  tell(shown.state, { label: "Checking…" });
  try {
    if (!file.upload) throw Object.assign(new Error(), { status: GONE });
    await send(new URLSearchParams({ upload: file.upload }), shown, TRIES);
    drop(key);
  } catch ({ status, message }) {
    if (status !== GONE && status !== INCOMPLETE) offer(shown, key, message, () => resumeFile(key, file), "Try again");
    else if (!file.sent) offer(shown, key, "Not sent completely. Choose the file again.");
    else { drop(key); shown.entry.remove(); }  // it was added, and deleted since
  }
}

function resume() {
  for (const [key, note] of kept("note").filter(([each]) => !elsewhere.has(each))) {
    if (Date.now() - note.at < DAY) addNote(key, note);
    else offer(line(nameOf(new URLSearchParams(note.form).get("text"))), key, "Not added yet", () => addNote(key, note), "Add");
  }
  for (const [key, file] of kept("file").filter(([each]) => !elsewhere.has(each))) resumeFile(key, file);
}

if (box) {
  const text = box.elements.text;
  box.addEventListener("submit", (event) => {
    event.preventDefault();
    const said = text.value.trim();
    if (!said) { text.focus(); return; }
    const form = new URLSearchParams([...new FormData(box)].filter(([name]) => name !== "csrf" && name !== "file"));
    addNote(keyOf("note"), { at: Date.now(), form: String(form) });
    text.value = "";
    box.dispatchEvent(new Event("sent", { bubbles: true }));  // from now on it is kept as a note
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
  if (kept("note").length + kept("file").length) { channel.postMessage(null); setTimeout(resume, PATIENCE); }
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
