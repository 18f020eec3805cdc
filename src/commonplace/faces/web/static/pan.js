// Drawings: dragged to move, the wheel to come nearer.
for (const drawing of document.querySelectorAll("[data-pan] .drawing")) {
  let [x, y, width, height] = drawing.getAttribute("viewBox").split(" ").map(Number);
  const whole = width;
  const set = () => drawing.setAttribute("viewBox", `${x} ${y} ${width} ${height}`);
  const scale = () => width / drawing.clientWidth;
  let from, moved = 0;
  drawing.addEventListener("pointerdown", (event) => { from = [event.clientX, event.clientY]; moved = 0; });
  addEventListener("pointermove", (event) => {
    if (!from) return;
    const [dx, dy] = [event.clientX - from[0], event.clientY - from[1]];
    moved += Math.abs(dx) + Math.abs(dy);
    x -= dx * scale();
    y -= dy * scale();
    from = [event.clientX, event.clientY];
    set();
  });
  addEventListener("pointerup", () => { from = undefined; });
  drawing.addEventListener("dragstart", (event) => event.preventDefault());
  drawing.addEventListener("click", (event) => { if (moved > 6) event.preventDefault(); });
  drawing.addEventListener("wheel", (event) => {
    event.preventDefault();
    const by = Math.min(Math.max(event.deltaY > 0 ? 1.15 : 1 / 1.15, whole / 40 / width), (whole * 2) / width);
    const box = drawing.getBoundingClientRect();
    x += ((event.clientX - box.left) / box.width) * width * (1 - by);
    y += ((event.clientY - box.top) / box.height) * height * (1 - by);
    width *= by;
    height *= by;
    set();
  }, { passive: false });
}
