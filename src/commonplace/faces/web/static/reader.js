// The reader: the words that were asked for, and times that lead into the recording.
const asked = new URLSearchParams(location.search).get("q");
const passage = document.querySelector(".passage:target .prose");
if (asked && passage && window.Highlight) {
  const words = asked.toLowerCase().match(/[\p{L}\p{N}_]{3,}/gu) ?? [];
  const ranges = [];
  const walk = document.createTreeWalker(passage, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const text = walk.currentNode.data.toLowerCase();
    for (const word of words) {
      for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
        const range = new Range();
        range.setStart(walk.currentNode, at);
        range.setEnd(walk.currentNode, at + word.length);
        ranges.push(range);
      }
    }
  }
  CSS.highlights.set("asked", new Highlight(...ranges));
}

const recording = document.querySelector("#recording");
for (const button of document.querySelectorAll("[data-seek]")) {
  button.addEventListener("click", () => { recording.currentTime = Number(button.dataset.seek); recording.play(); });
}
