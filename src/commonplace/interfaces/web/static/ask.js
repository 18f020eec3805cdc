// Asking the server for something within a page.
const page = document.body.dataset;
const ALIVE = 60_000;  // bytes that browsers let outlive a page, in all its requests together
let alive = 0;

// The person signed in again meanwhile: the server says so, and what the token is now. Never to somebody else.
function renew(token) {
  page.csrf = token;
  for (const field of document.querySelectorAll("[name=csrf]")) field.value = token;
}

export async function post(path, body, more = {}) {
  const form = body instanceof URLSearchParams;
  const sent = form ? String(body) : JSON.stringify(body ?? {});
  const size = new Blob([sent]).size, keepalive = alive + size <= ALIVE;
  const go = async () => {
    const answer = await fetch(path, {
      method: "POST", body: sent, keepalive,
      headers: { "X-CSRF-Token": page.csrf, Accept: "application/json", "Content-Type": form ? "application/x-www-form-urlencoded" : "application/json", ...more },
    }).catch(() => { throw new Error("Connection lost. Check your network and try again."); });
    return { answer, said: await answer.json().catch(() => ({})) };
  };
  if (keepalive) alive += size;
  try {
    let { answer, said } = await go();
    if (said.csrf) { renew(said.csrf); ({ answer, said } = await go()); }
    if (!answer.ok) throw Object.assign(new Error(said.message ?? `The server returned an error (${answer.status}). Try again.`), { said, status: answer.status });
    return said;
  } finally {
    if (keepalive) alive -= size;
  }
}

export async function part(url, signal) {
  const answer = await fetch(url, { headers: { Accept: "text/html", "X-Part": "1" }, signal });
  if (!answer.ok) throw new Error(`The server returned an error (${answer.status}). Try again.`);
  return new DOMParser().parseFromString(await answer.text(), "text/html").body;
}
