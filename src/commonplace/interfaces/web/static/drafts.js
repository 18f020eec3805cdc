// What is typed into text areas is kept in this browser until it is saved: for the person who typed it, in their library.
const { me = "" } = document.body.dataset;
const PAUSE = 150;  // milliseconds
const DRAFT = `draft ${me} `;
const timers = new Map(), offered = new Set();
const own = new WeakMap();  // the draft of each form as this page knows it: another tab may have kept its own meanwhile

// What is kept: drafts, notes on their way, and files that were not sent. False where the browser has no room.
export function keep(key, value) {
  try {
    localStorage.setItem(key, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}
export const drop = (key) => localStorage.removeItem(key);
const read = (key) => JSON.parse(localStorage.getItem(key));
const keys = (beginning) => Object.keys(localStorage).filter((key) => key.startsWith(beginning));
export const kept = (kind) => keys(`${kind} ${me} `).map((key) => [key, read(key)]);
const everything = () => ["draft", "note", "file"].flatMap((kind) => keys(`${kind} ${me.split(" ")[0]} `));

// A line above the list: something that is on its way, or waits for somebody.
export function line(name, href) {
  const entry = document.createElement("li"), title = document.createElement(href ? "a" : "span"), state = document.createElement("span");
  if (href) title.href = href;
  [title.className, title.textContent, state.className] = ["name", name, "state"];
  entry.append(title, state);
  document.querySelector("#adding").append(entry);
  return { entry, state };
}

export function button(place, label, act) {
  const made = document.createElement("button");
  [made.type, made.className, made.textContent] = ["button", "bare small", label];
  made.addEventListener("click", act);
  place.append(" ", made);
}

const keyOf = (form) => DRAFT + (form.getAttribute("action") ?? location.pathname);
const textsOf = (form) => [...form.elements].filter((each) => each.matches("textarea[name]:not([readonly], [hidden])"));
const fieldsOf = (form) => [...form.elements].filter((each) => each.matches("[name]:not(button, [name=csrf], [type=file], [type=password])"));
const isChoice = (field) => field.matches("[type=checkbox], [type=radio]");

// Not that of another tab, which is offered at the next visit.
function dropOwn(form) {
  if (localStorage.getItem(keyOf(form)) === own.get(form)) drop(keyOf(form));
}

function save(form) {
  clearTimeout(timers.get(form));
  timers.delete(form);
  if (!textsOf(form).some((each) => each.value !== each.defaultValue) && !form.querySelector(".theirs")) { dropOwn(form); return; }
  keep(keyOf(form), {
    at: Date.now(),
    page: form.id === "editor" ? form.getAttribute("action") : location.pathname + location.search,
    title: document.title.replace(/ · Commonplace$/, ""),
    fields: fieldsOf(form).map((each) => [each.name, each.value, each.checked]),
  });
  own.set(form, localStorage.getItem(keyOf(form)));
}

function fill(form, fields) {
  const rest = [...fields];
  for (const each of fieldsOf(form)) {
    const at = rest.findIndex(([name, value]) => name === each.name && (!isChoice(each) || value === each.value));
    if (at < 0) continue;
    const [[, value, checked]] = rest.splice(at, 1);
    if (isChoice(each)) each.checked = checked; else each.value = value;
  }
  for (const each of textsOf(form)) each.dispatchEvent(new Event("input", { bubbles: true }));
}

function offer(form) {
  const texts = textsOf(form), draft = texts.length && read(keyOf(form));
  if (!draft) return;
  offered.add(keyOf(form));
  own.set(form, localStorage.getItem(keyOf(form)));
  if (texts.every((each) => draft.fields.some(([name, value]) => name === each.name && value === each.value))) {
    save(form);  // the browser has it, or it was saved
    return;
  }
  const before = fieldsOf(form).map((each) => [each.name, each.value, each.checked]);
  fill(form, draft.fields);
  for (let at = form.closest("details") ?? texts[0].closest("details"); at; at = at.parentElement.closest("details")) at.open = true;
  const said = document.createElement("small");
  said.className = "draft";
  said.setAttribute("role", "status");
  said.textContent = "Draft restored.";
  button(said, "Discard", () => { said.remove(); fill(form, before); drop(keyOf(form)); });
  (texts[0].closest("label") ?? texts[0]).after(said);
}

function forget(form) {
  clearTimeout(timers.get(form));
  timers.delete(form);
  dropOwn(form);
  form.querySelector(".draft")?.remove();
  if (form.matches("[data-forgets]") || form.querySelector("[data-forget] :checked")) everything().forEach(drop);
}

document.addEventListener("input", ({ target: { form } }) => {
  if (!form || !textsOf(form).length) return;
  clearTimeout(timers.get(form));
  timers.set(form, setTimeout(save, PAUSE, form));
});
const flush = () => [...timers.keys()].forEach(save);
addEventListener("pagehide", flush);
document.addEventListener("visibilitychange", flush);
document.addEventListener("sent", ({ target }) => forget(target));
document.addEventListener("form", ({ detail }) => offer(detail));
for (const form of document.forms) offer(form);
for (const choice of document.querySelectorAll("[data-forget]")) choice.hidden = !everything().length;
if (document.querySelector("#adding")) {
  for (const [key, { page, title }] of kept("draft").filter(([each]) => !offered.has(each)).sort(([, a], [, b]) => b.at - a.at)) {
    const { entry, state } = line(title, page);
    state.textContent = "Unsaved draft";
    button(entry, "Discard", () => { drop(key); entry.remove(); });
  }
}
