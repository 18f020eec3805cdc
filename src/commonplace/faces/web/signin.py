"""Coming in and going out; one's own account."""

from starlette.responses import Response

from commonplace.errors import CommonplaceError, ForbiddenScope, Invalid, Unauthorized
from commonplace.faces.http import STATUS
from commonplace.faces.web.doors import get, post
from commonplace.faces.web.visit import Visit


def _next(path: str) -> str:
    """Somewhere on this server; anything else would let a link lead people astray after they signed in."""
    safe = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if safe else "/"


async def show(visit: Visit) -> Response:
    if visit.visitor is not None:
        return visit.go(_next(visit.query("next", "/")))
    return await _show(visit)


async def _show(visit: Visit, error: CommonplaceError | None = None, email: str = "", wanted: str | None = None) -> Response:
    one_click = visit.at_the_machine and await visit.services.accounts.alone() is not None
    status = 200 if error is None else STATUS.get(type(error), 500)
    return visit.page("signin.html", status, one_click=one_click, error=error.message if error else "", email=email,
                      next=_next(visit.query("next", "/") if wanted is None else wanted))


async def sign_in(visit: Visit) -> Response:
    form = await visit.form()
    try:
        secret = await visit.services.accounts.sign_in(form.get("email", ""), form.get("password", ""), address=visit.address,
                                                       about=visit.browser)
    except CommonplaceError as error:
        return await _show(visit, error, form.get("email", ""), form.get("next", "/"))
    visit.enter(secret)
    return visit.go(_next(form.get("next", "/")))


async def just_open(visit: Visit) -> Response:
    """One person at their own machine: a click is enough, until they choose a password."""
    person = await visit.services.accounts.alone() if visit.at_the_machine else None
    if person is None:
        raise ForbiddenScope("This library has to be signed in to.")
    visit.enter(await visit.services.accounts.enter(person.id, visit.browser))
    return visit.go(_next((await visit.form()).get("next", "/")))


async def sign_out(visit: Visit) -> Response:
    await visit.services.accounts.sign_out(visit.known)
    visit.leave()
    response = visit.go("/sign-in", "You are signed out.")
    response.headers["Clear-Site-Data"] = '"cache"'
    return response


async def show_claim(visit: Visit) -> Response:
    person = await visit.services.accounts.invited(visit.request.path_params["secret"])
    made_up = person.email.endswith("@localhost")
    return visit.page("claim.html", name="" if made_up else person.name, email="" if made_up else person.email, error="")


async def claim(visit: Visit) -> Response:
    form, accounts = await visit.form(), visit.services.accounts
    name, email = form.get("name", ""), form.get("email", "")
    try:
        secret = await accounts.claim(visit.request.path_params["secret"], name, email, form.get("password", ""),
                                      about=visit.browser)
    except Invalid as error:
        return visit.page("claim.html", 422, name=name, email=email, error=error.message)
    visit.enter(secret)
    return visit.go("/", "The library is yours. Welcome.")


# -- one's own account

async def account(visit: Visit) -> Response:
    services, me = visit.services, visit.known
    return visit.page("account.html", person=me.person, has_password=await services.accounts.has_password(me),
                      passkeys=await services.passkeys.of(me.person))


async def rename(visit: Visit) -> Response:
    form = await visit.form()
    await visit.services.accounts.rename(visit.known, form.get("name", ""), form.get("email", ""))
    return visit.go("/account", "Saved.")


async def change_password(visit: Visit) -> Response:
    form = await visit.form()
    await visit.services.accounts.change_password(visit.known, form.get("old", ""), form.get("new", ""))
    return visit.go("/account", "The password is changed; all other browsers are signed out.")


async def sign_out_others(visit: Visit) -> Response:
    await visit.services.accounts.sign_out(visit.known, others=True)
    return visit.go("/account", "All other browsers are signed out.")


# -- passkeys: asked for and answered by static/passkeys.js

async def offer_passkey(visit: Visit) -> Response:
    return visit.json_answer(await visit.services.passkeys.offer(visit.known.person, visit.site))


async def add_passkey(visit: Visit) -> Response:
    body = await visit.json()
    credential = body.get("credential")
    if not isinstance(credential, dict):
        raise Invalid("`credential` is required.")
    made = await visit.services.passkeys.add(visit.known.person.id, visit.site, credential, str(body.get("name", "")))
    visit.go("/account", f"The passkey “{made.name}” is ready.")
    return visit.json_answer({"ok": True})


async def remove_passkey(visit: Visit) -> Response:
    await visit.services.passkeys.remove(visit.known, visit.request.path_params["passkey_id"])
    return visit.go("/account", "The passkey is removed.")


async def ask_passkey(visit: Visit) -> Response:
    return visit.json_answer(await visit.services.passkeys.ask(visit.site))


async def use_passkey(visit: Visit) -> Response:
    body = await visit.json()
    credential = body.get("credential")
    if not isinstance(credential, dict):
        raise Unauthorized("`credential` is required.")
    visit.enter(await visit.services.passkeys.sign_in(visit.site, credential, address=visit.address, about=visit.browser))
    return visit.json_answer({"ok": True, "next": _next(str(body.get("next", "/")))})


DOORS = (
    get("/sign-in", show, open=True), post("/sign-in", sign_in, open=True), post("/sign-in/open", just_open, open=True),
    get("/claim/{secret}", show_claim, open=True), post("/claim/{secret}", claim, open=True),
    post("/sign-out", sign_out), get("/account", account), post("/account", rename),
    post("/account/password", change_password), post("/account/others", sign_out_others),
    post("/passkeys/offer", offer_passkey), post("/passkeys", add_passkey),
    post("/passkeys/{passkey_id}/remove", remove_passkey),
    post("/passkeys/ask", ask_passkey, open=True), post("/passkeys/sign-in", use_passkey, open=True),
)
