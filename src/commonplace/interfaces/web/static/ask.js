// Asking the server for something within a page.
const token = () => document.body.dataset.csrf;

export async function post(path, body) {
  const form = body instanceof URLSearchParams || body instanceof FormData;
  const answer = await fetch(path, {
    method: "POST", body: form ? body : JSON.stringify(body ?? {}),
    headers: { "X-CSRF-Token": token(), Accept: "application/json", ...(form ? {} : { "Content-Type": "application/json" }) },
  });
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok) throw Object.assign(new Error(said.message ?? `The server returned an error (${answer.status}). Try again.`), { said });
  return said;
}

export async function part(url, signal) {
  const answer = await fetch(url, { headers: { Accept: "text/html", "X-Part": "1" }, signal });
  if (!answer.ok) throw new Error(`The server returned an error (${answer.status}). Try again.`);
  return new DOMParser().parseFromString(await answer.text(), "text/html").body;
}
