// Putting things into folders: rows and folders are dragged onto a folder of the sidebar, or v asks which one.
const $ = (selector) => document.querySelector(selector);
const dialog = $("#mover"), tree = $("#folders"), list = $("#rows");
const FOLDER = "application/x-commonplace-folder", ROWS = "application/x-commonplace-rows";

// -- which one

if (dialog) {
  const name = dialog.querySelector("input"), create = dialog.querySelector(".create");
  const all = () => [...dialog.querySelectorAll("#move-to button")];
  const shown = () => [...all(), create].filter((each) => !each.hidden);
  const sift = () => {
    const wanted = name.value.trim().replace(/\s+/g, " "), key = wanted.toLocaleLowerCase();
    for (const each of all()) each.hidden = !each.textContent.toLocaleLowerCase().includes(key);
    create.hidden = !wanted || all().some((each) => each.textContent.trim().toLocaleLowerCase() === key);
    create.value = wanted;
    create.lastElementChild.textContent = `Create folder “${wanted}”`;
  };
  name.addEventListener("input", sift);
  dialog.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key], stops = [name, ...shown()];
    if (by) {
      event.preventDefault();
      const at = stops.indexOf(document.activeElement);
      stops[Math.min(Math.max(at + by, 0), stops.length - 1)].focus();
    } else if (event.key === "Enter" && event.target === name) {
      event.preventDefault();
      shown()[0]?.click();
    }
  });
  addEventListener("move", () => {
    name.value = "";
    sift();
    dialog.showModal();
    name.focus();
  });
}

// -- dragging

let over;
function mark(target) {
  if (target !== over) { over?.classList.remove("over"); target?.classList.add("over"); over = target; }
}

function badge(event, text) {
  const image = document.createElement("span");
  image.className = "drag";
  image.textContent = text;
  document.body.append(image);
  event.dataTransfer.setDragImage(image, -12, 10);
  setTimeout(() => image.remove());
}

list?.addEventListener("dragstart", (event) => {
  const row = event.target.closest?.(".row[draggable]");
  if (!row) return;
  const box = row.querySelector("input[type=checkbox]");
  if (!box.checked) {  // only this one
    for (const each of list.querySelectorAll(".row > input:checked")) each.click();
    box.click();
  }
  const rows = [...list.querySelectorAll(".row:has(> input:checked)")];
  for (const each of rows) each.classList.add("held");
  event.dataTransfer.setData(ROWS, "");
  event.dataTransfer.effectAllowed = "move";
  badge(event, rows.length === 1 ? row.querySelector(".title").textContent : `${rows.length} items`);
});

tree?.addEventListener("dragstart", (event) => {
  const folder = event.target.closest?.("[data-folder]");
  if (!folder) return;
  event.dataTransfer.clearData();
  event.dataTransfer.setData(FOLDER, folder.dataset.folder);
  event.dataTransfer.effectAllowed = "move";
  folder.closest("li").classList.add("held");
  badge(event, folder.querySelector("span").textContent);
});

addEventListener("dragend", () => {
  mark();
  for (const each of document.querySelectorAll(".held")) each.classList.remove("held");
});

let opening;
const side = $(".folders");
function targetOf(event) {
  const { types } = event.dataTransfer;
  const top = types.includes(FOLDER) && event.target.closest("h2");
  const folder = event.target.closest("[data-folder]");
  if (folder?.closest("li.held") || !(types.includes(FOLDER) || types.includes(ROWS))) return undefined;
  return folder ?? (top || undefined);
}

side?.addEventListener("dragover", (event) => {
  const target = targetOf(event), inner = target?.nextElementSibling;
  if (target !== over) {
    clearTimeout(opening);
    if (inner?.matches("details:not([open])")) opening = setTimeout(() => { inner.open = true; }, 600);
  }
  mark(target);
  if (target) { event.preventDefault(); event.dataTransfer.dropEffect = "move"; }
});
side?.addEventListener("dragleave", (event) => { if (!side.contains(event.relatedTarget)) { clearTimeout(opening); mark(); } });
side?.addEventListener("drop", (event) => {
  const target = targetOf(event), moved = event.dataTransfer.getData(FOLDER);
  clearTimeout(opening);
  if (!target) return;
  event.preventDefault();
  if (moved) {
    const form = $("#nest");
    form.action = `/folders/${encodeURIComponent(moved)}/parent`;
    form.elements.parent_id.value = target.dataset.folder ?? "";
    form.requestSubmit();
  } else dialog.querySelector(`#move-to [value="${CSS.escape(target.dataset.folder)}"]`)?.click();
});
