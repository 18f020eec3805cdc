// Pages stay up to date: when something happens, the parts marked with data-fresh are taken from the page as it is now.
// data-fresh names the item that a part is about; without one it is about all of them.
import { part } from "./ask.js";
import { morph } from "./morph.js";
import { follow } from "./stream.js";

const APART = 250;  // milliseconds
const EVERYTHING = "";
let due = new Set(), timer, taking = false, running = false;

const named = (list, id) => [...list.children].find((row) => row.dataset.id === id);

// A list gets what is new when the reader asks for it: nothing moves under their eyes.
function merge(list, fresh, pill) {
  const come = [...fresh.children], shown = [...list.children].filter((row) => row.dataset.id);
  const last = come.findLastIndex((row) => named(list, row.dataset.id));
  const waiting = shown.length && !taking ? come.slice(0, last < 0 ? come.length : last).filter((row) => !named(list, row.dataset.id)) : [];
  if (last >= 0 || !waiting.length) {
    let room = waiting.length;  // so many may only have gone to the next page
    for (const row of shown.reverse()) {
      if (named(fresh, row.dataset.id)) room = 0;
      else if (room) room -= 1;
      else row.remove();
    }
    let before = null;
    for (const row of come) {
      const there = named(list, row.dataset.id);
      row.classList.toggle("at", Boolean(there?.classList.contains("at")));  // where the keys are
      if (there) morph(there, row);
      else if (!waiting.includes(row)) before ? before.after(row) : taking || !shown.length ? list.prepend(row) : list.append(row);
      before = named(list, row.dataset.id) ?? before;
    }
  }
  pill.hidden = !waiting.length;
  if (waiting.length) {
    const many = waiting.length === come.length && shown.length ? `${waiting.length}+` : waiting.length;
    pill.querySelector("button").textContent = `${many} new ${pill.dataset.news}${waiting.length === 1 ? "" : "s"}`;
  }
}

async function refresh() {
  timer = undefined;
  if (running || document.hidden) return;  // it follows
  if (document.querySelector(".held, form[aria-busy=true]")) { later(); return; }  // a form leads to another page
  const ids = due, began = performance.now();
  [due, running] = [new Set(), true];
  const wanted = [...document.querySelectorAll("[data-fresh]")].filter(({ dataset: { fresh } }) => !fresh || ids.has(fresh) || ids.has(EVERYTHING));
  try {
    if (!wanted.length) return;
    const page = wanted.some((each) => each.closest("main"));
    const now = await part(page ? location.href : "/sidebar");
    if (document.querySelector(".held")) { ids.forEach((id) => due.add(id)); return; }
    for (const old of wanted) {
      const fresh = old.isConnected && now.querySelector(`#${CSS.escape(old.id)}`);
      if (!fresh) continue;
      const pill = document.querySelector(`[data-list="${CSS.escape(old.id)}"]`);
      if (pill) merge(old, fresh, pill); else morph(old, fresh);
    }
    if (taking) { document.querySelector("[data-news] ~ [data-fresh] .title")?.focus({ preventScroll: true }); scrollTo({ top: 0 }); }
    taking = false;
    document.dispatchEvent(new Event("fresh"));
  } catch {
    // The server is away, or the page is gone; the stream says when it is worth another try.
  } finally {
    running = false;
    if (due.size) later(Math.max(APART, 3 * (performance.now() - began)));
  }
}

function later(pause = APART) {
  clearTimeout(timer);
  timer = setTimeout(refresh, pause);
}

function tell(ids) {
  for (const id of ids.length ? ids : [EVERYTHING]) due.add(id);
  if (!timer && !running && !document.hidden) later(100);
}

export const soon = () => tell([]);

document.addEventListener("visibilitychange", () => { if (!document.hidden && due.size) later(0); });
addEventListener("pageshow", (event) => { if (event.persisted) soon(); });
for (const pill of document.querySelectorAll("[data-news]")) {
  pill.querySelector("button").addEventListener("click", () => { taking = true; due.add(EVERYTHING); later(0); });
}

let after = document.body.dataset.events;
if (window.SharedWorker) {
  const { port } = new SharedWorker(new URL("./stream-worker.js", import.meta.url), { type: "module", name: document.body.dataset.csrf });
  port.addEventListener("message", ({ data }) => tell(data));
  port.start();
  port.postMessage({ after, since: performance.timeOrigin });
  addEventListener("pagehide", () => port.postMessage({ leaves: true }));
  addEventListener("pageshow", (event) => { if (event.persisted) port.postMessage({ after, since: Date.now() }); });
} else {
  let stop;
  const turn = () => {
    if (document.hidden && stop) { after = stop(); stop = undefined; }
    else if (!document.hidden) stop ??= follow(after, tell);
  };
  document.addEventListener("visibilitychange", turn);
  turn();
}
