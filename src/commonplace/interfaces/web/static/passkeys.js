// Passkeys: the browser asks the person, the server checks the answer.
import { post } from "./ask.js";

const place = document.querySelector(".passkey");
const wrong = place.querySelector(".note");
const isName = !/^[\d.]+$|:/.test(location.hostname);
const possible = window.PublicKeyCredential?.parseCreationOptionsFromJSON && isName;
place.hidden = !possible;
const off = document.querySelector(".passkey-off");
if (off) off.hidden = possible;

async function attempt(act) {
  wrong.hidden = true;
  try {
    await act();
  } catch (error) {
    wrong.textContent = error.name === "NotAllowedError" ? "No passkey was selected." : error.message;
    wrong.hidden = false;
  }
}

document.querySelector("#passkey-sign-in")?.addEventListener("click", () => attempt(async () => {
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(await post("/passkeys/ask"));
  const credential = await navigator.credentials.get({ publicKey });
  const { next } = await post("/passkeys/sign-in", { credential: credential.toJSON(), next: place.dataset.next });
  location.href = next;
}));

document.querySelector("#passkey-add")?.addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(async () => {
    const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(await post("/passkeys/offer"));
    const credential = await navigator.credentials.create({ publicKey });
    await post("/passkeys", { credential: credential.toJSON(), name: new FormData(event.target).get("name") });
    location.reload();
  });
});

document.querySelector("#passkey-join")?.addEventListener("click", () => attempt(async () => {
  const form = document.querySelector("#join");
  const { name, email } = form.elements;
  if (![name, email].every((field) => field.reportValidity())) return;
  const who = { name: name.value, email: email.value };
  const path = `/join/${form.dataset.secret}`;
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(await post(`${path}/offer`, who));
  const credential = await navigator.credentials.create({ publicKey });
  await post(`${path}/passkey`, { ...who, credential: credential.toJSON() });
  location.href = "/";
}));
