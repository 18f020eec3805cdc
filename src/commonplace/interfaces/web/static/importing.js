// The progress of imports, until all of them are done.
import { part } from "./ask.js";
import { morph } from "./morph.js";

const PAUSE = 2000;  // milliseconds
const list = document.querySelector("#imports");

async function look() {
  if (!list.querySelector("[data-open]")) return;
  try {
    const fresh = document.hidden ? null : (await part(location.href)).querySelector("#imports");
    if (fresh) morph(list, fresh);
  } catch { /* the server may be back at the next look */ }
  setTimeout(look, PAUSE);
}
setTimeout(look, PAUSE);
