// Drawings: dragged to move; the wheel, two fingers or buttons to come nearer; names wherever there is room for them.
const NAMED = 160;   // dots in sight, beyond which only regions are named
const SVG = "http://www.w3.org/2000/svg";

for (const drawing of document.querySelectorAll("[data-pan] .drawing")) {
  const [left, top, wide, high] = drawing.getAttribute("viewBox").split(" ").map(Number);
  const isMap = drawing.classList.contains("map");
  const regions = [...drawing.querySelectorAll(".region")].map((text) => { text.classList.remove("late"); return text; }).map((text) => ({ text, x: Number(text.getAttribute("x")), y: Number(text.getAttribute("y")) }));
  const nodes = [...drawing.querySelectorAll("a.node")].map((link) => {
    const text = link.querySelector("text");
    const circle = link.querySelector("circle");
    if (circle) return { link, text, x: Number(circle.getAttribute("cx")), y: Number(circle.getAttribute("cy")), r: Number(circle.getAttribute("r")) };
    const [x, y] = link.querySelector("path").getAttribute("d").match(/[\d.]+/g).map(Number);
    return { link, text, x, y };
  });
  nodes.sort((a, b) => b.link.classList.contains("center") - a.link.classList.contains("center"));
  const middle = nodes[0];
  let view, first, drawn;

  const all = () => {
    const box = drawing.getBoundingClientRect();
    const shape = box.width && box.height ? box.height / box.width : high / wide;
    const width = Math.max(wide, high / shape);
    return { x: left + (wide - width) / 2, y: top + (high - width * shape) / 2, width, height: width * shape };
  };
  // In a neighbourhood, dots shrink less than the drawing does. Those of a map stay as they are; with five thousand of them, only
  // what has to be is said to the style sheet.
  const grow = () => Math.sqrt(Math.max(1, unit()));
  const unit = () => view.width / (drawing.getBoundingClientRect().width || wide);

  function show() {
    drawing.setAttribute("viewBox", `${view.x} ${view.y} ${view.width} ${view.height}`);
    if (isMap) drawing.classList.toggle("near", view.width < first / 3);
    else drawing.style.setProperty("--grow", String(grow()));
    clearTimeout(drawn);
    drawn = setTimeout(name, 60);
  }

  // As large on the screen however near one is.
  const letters = ({ style }, size, one) => { style.fontSize = `${size * one}px`; style.strokeWidth = `${3.5 * one}px`; };

  // Regions first, then what is in sight, each where it crosses no other.
  function name() {
    const one = unit();
    const taken = [];
    const free = (box) => !taken.some((other) => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3]);
    const inside = ({ x, y }) => x > view.x && x < view.x + view.width && y > view.y && y < view.y + view.height;
    for (const { text, x, y } of regions) {
      const half = (text.textContent.length * 8.6 * one) / 2;
      const at = Math.min(Math.max(x, view.x + half), view.x + view.width - half);
      const box = [at - half, y - 15 * one, at + half, y + 5 * one];
      text.setAttribute("x", String(at));
      letters(text, 14, one);
      text.toggleAttribute("hidden", !inside({ x, y }) || !free(box));
      if (!text.hasAttribute("hidden")) taken.push(box);
    }
    const seen = nodes.filter(inside);
    for (const node of nodes) if (node.text && !seen.includes(node)) node.text.toggleAttribute("hidden", true);
    const grown = grow();
    const radius = ({ r }) => (isMap ? 4 * one : r * grown);
    if (seen.length <= NAMED) {
      for (const node of seen) taken.push([node.x - radius(node), node.y - radius(node), node.x + radius(node), node.y + radius(node)]);
    }
    for (const node of seen) {
      const r = radius(node) + one;
      const said = node.text?.textContent ?? node.link.querySelector("title").textContent.slice(0, 40);
      const long = said.length * (node === middle && !isMap ? 7.6 : 6.6) * one;
      // Below or above it: in the middle, or as far as the edge lets it.
      const across = Math.min(Math.max(node.x - long / 2, view.x + 3 * one), view.x + view.width - long - 3 * one);
      const spots = [[across, node.y + r + 13 * one, "start", across], [across, node.y - r - 5 * one, "start", across],
        [node.x + r + 4 * one, node.y + 4 * one, "start", node.x + r + 4 * one], [node.x - r - 4 * one, node.y + 4 * one, "end", node.x - r - 4 * one - long]];
      const spot = seen.length > NAMED ? undefined : spots.find(([, y, , from]) => from > view.x && from + long < view.x + view.width && free([from, y - 12 * one, from + long, y + 3 * one]));
      if (!spot) { node.text?.toggleAttribute("hidden", true); continue; }
      const [x, y, anchor, from] = spot;
      taken.push([from, y - 12 * one, from + long, y + 3 * one]);
      if (!node.text) {
        node.text = document.createElementNS(SVG, "text");
        node.text.textContent = said;
        node.link.append(node.text);
      }
      letters(node.text, 12, one);
      node.text.classList.remove("late");
      node.text.removeAttribute("hidden");
      for (const [key, value] of Object.entries({ x, y, "text-anchor": anchor })) node.text.setAttribute(key, String(value));
    }
  }

  function nearer(by, x, y) {
    const bounded = Math.min(Math.max(by, first / 60 / view.width), (first * 1.5) / view.width);
    view.x += (x === undefined ? view.width / 2 : x * unit()) * (1 - bounded);
    view.y += (y === undefined ? view.height / 2 : y * unit()) * (1 - bounded);
    view.width *= bounded;
    view.height *= bounded;
    show();
  }

  const fingers = new Map();
  let moved = 0;
  drawing.addEventListener("pointerdown", (event) => { fingers.set(event.pointerId, event); if (fingers.size === 1) moved = 0; });
  addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId);
    if (!before) return;
    const other = [...fingers.values()].find((each) => each.pointerId !== event.pointerId);
    const [dx, dy] = [event.clientX - before.clientX, event.clientY - before.clientY];
    moved += Math.abs(dx) + Math.abs(dy);
    fingers.set(event.pointerId, event);
    if (other) {
      const apart = (each) => Math.hypot(each.clientX - other.clientX, each.clientY - other.clientY) || 1;
      const box = drawing.getBoundingClientRect();
      nearer(apart(before) / apart(event), (event.clientX + other.clientX) / 2 - box.left, (event.clientY + other.clientY) / 2 - box.top);
    }
    view.x -= (dx * unit()) / fingers.size;
    view.y -= (dy * unit()) / fingers.size;
    show();
  });
  for (const end of ["pointerup", "pointercancel"]) addEventListener(end, (event) => { fingers.delete(event.pointerId); });
  drawing.addEventListener("dragstart", (event) => event.preventDefault());
  drawing.addEventListener("click", (event) => { if (moved > 6) event.preventDefault(); });
  drawing.addEventListener("wheel", (event) => {
    event.preventDefault();
    const box = drawing.getBoundingClientRect();
    nearer(event.deltaY > 0 ? 1.15 : 1 / 1.15, event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });

  const buttons = document.createElement("div");
  buttons.className = "zoom";
  for (const [sign, said, act] of [["+", "Zoom in", () => nearer(1 / 1.5)], ["−", "Zoom out", () => nearer(1.5)], ["⤢", "Show all", () => begin()]]) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet icon-only";
    button.textContent = sign;
    button.setAttribute("aria-label", said);
    button.addEventListener("click", act);
    buttons.append(button);
  }
  drawing.after(buttons);

  function begin() {
    view = all();
    first = view.width;
    show();
  }

  // On a narrow screen all of a large neighbourhood would be too small to read: one begins in its middle.
  function closely() {
    if (isMap || nodes.length < 12 || unit() < 1.6) return;
    const by = 1.6 / unit();
    Object.assign(view, { width: view.width * by, height: view.height * by });
    Object.assign(view, { x: middle.x - view.width / 2, y: middle.y - view.height / 2 });
    show();
  }
  drawing.classList.add("live");
  begin();
  closely();
  name();
  let before = innerWidth;
  // Not when a phone only shows or hides its bars.
  addEventListener("resize", () => { if (innerWidth !== before) { before = innerWidth; begin(); closely(); } });
}
