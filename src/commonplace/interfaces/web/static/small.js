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

const mark = document.querySelector("[data-live-token]");
if (mark) {
  const source = new EventSource(`/connect/${mark.dataset.liveToken}/live`);
  source.addEventListener("message", () => {
    source.close();
    mark.classList.add("on");
    mark.lastElementChild.textContent = "Connected.";
  });
}
