// How many there are, in the heading and beside the folders: asked anew after the list has changed.
let waiting;

export function recount() {
  clearTimeout(waiting);
  waiting = setTimeout(async () => {
    const answer = await fetch(`/counts${location.search}`, { headers: { Accept: "application/json" } });
    if (!answer.ok) return;
    const { total, folders } = await answer.json();
    document.querySelector("#total").textContent = total;
    for (const link of document.querySelectorAll(".folders a")) link.querySelector("small").textContent = folders[new URL(link.href).searchParams.get("folder")] ?? "0";
  }, 100);
}
