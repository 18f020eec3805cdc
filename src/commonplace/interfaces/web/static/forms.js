// Forms are sent within the page: when one is refused, what was typed stays, and the error stands at its field. Without scripts the
// server does the same.
import { post } from "./ask.js";
import { toast } from "./toast.js";

let errors = 0;

export function complain(form, { message, said = {} }) {
  forgive(form);
  if (said.revision && form.elements.revision) form.elements.revision.value = said.revision;  // whoever saves again, replaces it
  const fields = [...form.elements].filter((each) => each.name && each.matches("input:not([type=hidden]), select, textarea:not([hidden])"));
  const typed = fields.filter((each) => !each.matches("[type=checkbox], [type=radio]"));
  const field = fields.find(({ name }) => name === said.field) ?? typed[0] ?? fields[0];
  if (!field) { toast(message); return; }
  const error = document.createElement("small");
  error.className = "failed";
  error.id = `failed-${errors += 1}`;
  error.setAttribute("role", "alert");
  error.textContent = message;
  if (said.sign_in) {
    const link = document.createElement("a");
    [link.href, link.target, link.textContent] = [said.sign_in, "_blank", "Sign in"];
    error.append(" ", link);
  }
  (field.closest("label") ?? field).after(error);
  field.setAttribute("aria-invalid", "true");
  field.setAttribute("aria-describedby", `${field.getAttribute("aria-describedby") ?? ""} ${error.id}`.trim());
  for (let at = field.closest("details"); at; at = at.parentElement.closest("details")) at.open = true;
  field.focus();
}

function forgive(form) {
  for (const field of form.elements) {
    if (!field.ariaInvalid) continue;
    const told = field.getAttribute("aria-describedby").split(" ");
    document.getElementById(told.pop())?.remove();
    field.setAttribute("aria-describedby", told.join(" "));
    field.removeAttribute("aria-invalid");
  }
}

// To the page that follows; the same one is loaded again, as it would be without scripts.
function go(form, next) {
  const to = new URL(next, location.href);
  if (!to.hash || to.pathname + to.search !== location.pathname + location.search) { location.assign(to); return; }
  form.reset();
  history.replaceState(null, "", to);
  location.reload();
}

document.addEventListener("submit", async (event) => {
  const { target: form, submitter } = event;
  if (event.defaultPrevented || form.getAttribute("method") !== "post" || form.matches("[data-plain]")) return;
  event.preventDefault();
  if (form.ariaBusy) return;
  const body = new URLSearchParams(new FormData(form, submitter));
  form.ariaBusy = "true";
  try {
    const { next } = await post(submitter?.getAttribute("formaction") ?? form.getAttribute("action") ?? location.href, body, { "X-Form": "1", Accept: "text/html" });
    form.dispatchEvent(new Event("sent", { bubbles: true }));
    go(form, next);
  } catch (error) {
    form.ariaBusy = null;
    complain(form, error);
  }
});
addEventListener("pageshow", ({ persisted }) => { if (persisted) for (const form of document.forms) form.ariaBusy = null; });
