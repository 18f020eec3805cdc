// Boxes of task lists are ticked in the reader: the text changes.
import { post } from "./ask.js";
import { soon } from "./fresh.js";
import { toast } from "./toast.js";

const text = document.querySelector("#text");
const boxes = () => [...text.querySelectorAll(".box input[type=checkbox]")];
let turn = Promise.resolve(), waiting = 0, revision = Number(text.dataset.revision);

// Passages that were cut in the middle of a list could show others than the text has.
function enable() {
  if (waiting) return;
  revision = Number(text.dataset.revision);
  const all = boxes(), known = all.length === Number(text.dataset.boxes);
  for (const box of all) { box.disabled = !known; box.checked = box.defaultChecked; }
}

async function send(number, done) {
  try {
    const said = await post(`${location.pathname}/boxes`, { box: number, done, revision });
    revision = said.revision;
    toast(said.message, said.undo);
  } catch (error) {
    toast(error.message);
  } finally {
    waiting -= 1;
    if (!waiting) soon();
  }
}

// One after the other: each tick is a revision.
function tick(number, done) {
  waiting += 1;
  const box = boxes()[number];
  if (box) box.checked = done;
  turn = turn.then(() => send(number, done));
}

text.addEventListener("change", ({ target }) => {
  const number = boxes().indexOf(target);
  if (number >= 0) tick(number, target.checked);
});
document.addEventListener("fresh", enable);
enable();
