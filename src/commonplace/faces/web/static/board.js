// The board: a task goes where its state may go, and nowhere else.
import { post } from "./ask.js";

const board = document.querySelector(".board");
const note = document.querySelector("#board-note");
let held;

function clear() {
  for (const column of board.querySelectorAll(".column")) column.classList.remove("can", "cannot");
}

board.addEventListener("dragstart", (event) => {
  held = event.target.closest(".task");
  event.dataTransfer.setData("text/plain", held.dataset.id);
  const next = held.dataset.next.split(" ");
  for (const column of board.querySelectorAll(".column")) {
    const mine = column.contains(held);
    column.classList.add(mine || next.includes(column.dataset.state) ? "can" : "cannot");
  }
});
board.addEventListener("dragover", (event) => { if (event.target.closest(".column.can")) event.preventDefault(); });
board.addEventListener("dragend", clear);
board.addEventListener("drop", async (event) => {
  const column = event.target.closest(".column.can");
  clear();
  if (!column || !held || column.contains(held)) return;
  event.preventDefault();
  const before = held.parentElement, task = held;
  column.querySelector("ul").append(task);
  note.hidden = true;
  try {
    const { next } = await post(`/work/${task.dataset.id}/move`, new URLSearchParams({ status: column.dataset.state }));
    task.dataset.next = next.join(" ");
  } catch (error) {
    before.append(task);
    note.textContent = error.message;
    note.hidden = false;
  }
  for (const each of board.querySelectorAll(".column")) each.querySelector("h2 small").textContent = each.querySelectorAll(".task").length;
});
