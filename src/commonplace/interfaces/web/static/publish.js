// The preview of a published page shows the summary while it is written.
const words = document.querySelector("#publish [name=summary]");
const shown = document.querySelector("#public-summary");

function show() {
  const said = words.value.trim() || shown.dataset.derived;
  shown.textContent = said;
  shown.hidden = !said;
}

words.addEventListener("input", show);
if (words.value !== words.defaultValue) show();
