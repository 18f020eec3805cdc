// Small things: copying, confirming, and the mark that a client has connected.
for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.lastChild.textContent = " Copied";
  });
}

for (const button of document.querySelectorAll("[data-sure]")) {
  button.addEventListener("click", (event) => { if (!confirm(button.dataset.sure)) event.preventDefault(); });
}

for (const field of document.querySelectorAll("[data-sends]")) field.addEventListener("change", () => field.form.requestSubmit());

const mark = document.querySelector("[data-connected]");
if (mark) {
  const source = new EventSource(mark.dataset.connected);
  source.addEventListener("message", () => {
    source.close();
    mark.classList.add("on");
    mark.lastElementChild.textContent = "Connected.";
  });
}

// A new secret goes when its time is over, also from a page that the browser kept.
const shown = document.querySelector("[data-gone]");
if (shown) {
  setTimeout(() => shown.remove(), shown.dataset.gone * 1000);
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
}

// What the form gives away, in one sentence.
for (const form of document.querySelectorAll("form[data-says]")) {
  const says = form.querySelector(".says"), only = form.querySelector("[name=sees][value=folders]");
  const say = () => {
    const fields = new FormData(form), all = fields.get("sees") === "all";
    const names = [...form.querySelectorAll("[name=folder]:checked")].map((folder) => folder.dataset.name);
    const when = form.querySelector("select").selectedOptions[0].dataset.says;
    only.setCustomValidity(all || names.length ? "" : "Choose a folder, or the whole library.");
    says.textContent = `Can read${fields.get("write") ? " and edit" : ""} ${all ? "everything" : names.join(", ") || "nothing yet"}`
      + `${fields.get("kb_only") ? ", searchable items only" : ""}. ${when}`;
    says.hidden = false;
  };
  form.addEventListener("change", say);
  addEventListener("pageshow", say);
  say();
}
