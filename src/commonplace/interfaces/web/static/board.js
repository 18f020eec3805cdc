// The board: a task goes where its state may go, and nowhere else.
import { post } from "./ask.js";
import { toast } from "./toast.js";

const board = document.querySelector("#work");
const note = document.querySelector("#board-note");
let held;

function clear() {
  for (const column of board.querySelectorAll(".column")) column.classList.remove("can", "cannot");
}

board.addEventListener("dragstart", (event) => {
  held = event.target.closest(".task");
  held.classList.add("held");
  event.dataTransfer.setData("text/plain", held.dataset.id);
  const next = held.dataset.next.split(" ");
  for (const column of board.querySelectorAll(".column")) {
    const mine = column.contains(held);
    column.classList.add(mine || next.includes(column.dataset.state) ? "can" : "cannot");
  }
});
board.addEventListener("dragover", (event) => { if (event.target.closest(".column.can")) event.preventDefault(); });
board.addEventListener("dragend", () => { clear(); held?.classList.remove("held"); });
board.addEventListener("drop", (event) => {
  const column = event.target.closest(".column.can");
  clear();
  if (!column || !held || column.contains(held)) return;
  event.preventDefault();
  move(held, column);
});

// With Shift and an arrow: to the nearest column on that side where it may go.
board.addEventListener("keydown", (event) => {
  const task = event.target.closest(".task[draggable]"), by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!task || !by || !event.shiftKey) return;
  event.preventDefault();
  const columns = [...board.querySelectorAll(".column")], next = task.dataset.next.split(" ");
  let at = columns.findIndex((column) => column.contains(task)) + by;
  while (columns[at] && !next.includes(columns[at].dataset.state)) at += by;
  if (columns[at]) move(task, columns[at]);
});

async function move(task, column) {
  const before = task.parentElement, focused = document.activeElement;
  const put = (list) => { list.append(task); if (task.contains(focused)) focused.focus(); };
  put(column.querySelector("ul"));
  note.hidden = true;
  task.classList.add("held");
  try {
    const { next, message, undo } = await post(`/work/${task.dataset.id}/move`, new URLSearchParams({ status: column.dataset.state }));
    task.dataset.next = next.join(" ");
    toast(message, undo);
  } catch (error) {
    put(before);
    note.textContent = error.message;
    note.hidden = false;
  }
  task.classList.remove("held");
  for (const each of board.querySelectorAll(".column")) each.querySelector("h2 small").textContent = each.querySelectorAll(".task").length;
}
