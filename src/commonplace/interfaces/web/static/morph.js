// Bring one element up to date with another, touching only what differs: whatever has the focus, a half-made click or a selection
// stays where it is.
function bare(element) {
  for (const node of [...element.childNodes]) {
    if (node.nodeType === Node.TEXT_NODE ? !node.data.trim() && node.data.includes("\n") : node.nodeType === Node.COMMENT_NODE) node.remove();
    else if (node.nodeType === Node.ELEMENT_NODE) bare(node);
  }
}

const isSame = (one, other) => one.nodeName === other.nodeName && (one.nodeType !== Node.ELEMENT_NODE
  || (one.dataset.id === other.dataset.id && one.classList[0] === other.classList[0] && one.getAttribute("href") === other.getAttribute("href")));

function sync(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeType === Node.TEXT_NODE) { old.data = fresh.data; return; }
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  let at = old.firstChild;
  for (const child of [...fresh.childNodes]) {
    let found = at;
    while (found && !isSame(found, child)) found = found.nextSibling;
    if (!found) { old.insertBefore(child, at); continue; }
    while (at !== found) { const gone = at; at = at.nextSibling; gone.remove(); }
    sync(found, child);
    at = found.nextSibling;
  }
  while (at) { const gone = at; at = at.nextSibling; gone.remove(); }
}

export function morph(old, fresh) {
  bare(old);
  bare(fresh);
  sync(old, fresh);
}
