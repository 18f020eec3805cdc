// Folders in the sidebar that somebody has folded stay folded. The one that the page is about is shown. Runs while the page is read,
// so that nothing jumps.
{
  const list = document.getElementById("folders");
  const kept = () => new Set(JSON.parse(localStorage.getItem("folded") ?? "[]"));
  const fold = () => {
    const folded = kept();
    for (const each of list.querySelectorAll("details")) each.open = !folded.has(each.dataset.id) || Boolean(each.querySelector("[aria-current]"));
  };
  fold();
  document.addEventListener("fresh", fold);
  list.addEventListener("click", ({ target }) => {
    if (!target.matches("summary")) return;
    const folded = kept(), { id } = target.parentElement.dataset;
    if (target.parentElement.open) folded.add(id); else folded.delete(id);  // it turns after this event
    localStorage.setItem("folded", JSON.stringify([...folded]));
  });
}
