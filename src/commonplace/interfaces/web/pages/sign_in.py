"""Coming in and going out."""

from starlette.responses import Response

from commonplace.errors import CommonplaceError, Invalid, NameTaken, Unauthorized
from commonplace.interfaces.http.gate import STATUS
from commonplace.interfaces.web.request import Visit
from commonplace.interfaces.web.route import get, post


def _next(path: str) -> str:
    """Somewhere on this server; anything else would let a link lead people astray after they signed in."""
    safe = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if safe else "/"


async def show(visit: Visit) -> Response:
    if visit.visitor is not None:
        return visit.go(_next(visit.query("next", "/")))
    return await _show(visit)


async def _show(
    visit: Visit, error: CommonplaceError | None = None, email: str = "", wanted: str | None = None
) -> Response:
    status = 200 if error is None else STATUS.get(type(error), 500)
    return visit.page(
        "signin.html",
        status,
        error=error.message if error else "",
        email=email,
        next=_next(visit.query("next", "/") if wanted is None else wanted),
    )


async def sign_in(visit: Visit) -> Response:
    form = await visit.form()
    try:
        secret = await visit.services.accounts.sign_in(
            form.get("email", ""),
            form.get("password", ""),
            address=visit.address,
            about=visit.browser,
            device=visit.device,
        )
    except CommonplaceError as error:
        return await _show(visit, error, form.get("email", ""), form.get("next", "/"))
    await visit.enter(secret)
    return visit.go(_next(form.get("next", "/")))


async def sign_out(visit: Visit) -> Response:
    await visit.services.accounts.sign_out(visit.known)
    visit.leave()
    response = visit.go("/sign-in", "You are signed out.")
    response.headers["Clear-Site-Data"] = '"cache"'
    return response


async def show_claim(visit: Visit) -> Response:
    person = await visit.services.accounts.invited(visit.request.path_params["secret"])
    made_up = person.email.endswith("@localhost")
    return await _show_claim(
        visit, person.id, "" if made_up else person.name, "" if made_up else person.email
    )


async def _show_claim(
    visit: Visit, person_id: str, name: str, email: str, error: CommonplaceError | None = None
) -> Response:
    known = bool(name) and await visit.services.accounts.can_sign_in(person_id)
    return visit.page(
        "claim.html",
        STATUS[type(error)] if error else 200,
        name=name,
        email=email,
        known=known,
        error=error.message if error else "",
    )


async def claim(visit: Visit) -> Response:
    form, accounts, link = (
        await visit.form(),
        visit.services.accounts,
        visit.request.path_params["secret"],
    )
    name, email = form.get("name", ""), form.get("email", "")
    try:
        secret = await accounts.claim(
            link, name, email, form.get("password", ""), about=visit.browser
        )
    except (Invalid, NameTaken) as error:
        return await _show_claim(visit, (await accounts.invited(link)).id, name, email, error)
    await visit.enter(secret)
    return visit.go("/", "The library is yours. Welcome.")


# -- passkeys: asked for and answered by static/passkeys.js


async def ask_passkey(visit: Visit) -> Response:
    return visit.json_answer(await visit.services.passkeys.authentication_options(visit.site))


async def use_passkey(visit: Visit) -> Response:
    body = await visit.json()
    credential = body.get("credential")
    if not isinstance(credential, dict):
        raise Unauthorized("`credential` is required.")
    await visit.enter(
        await visit.services.passkeys.sign_in(
            visit.site, credential, address=visit.address, about=visit.browser, device=visit.device
        )
    )
    return visit.json_answer({"ok": True, "next": _next(str(body.get("next", "/")))})


DOORS = (
    get("/sign-in", show, open=True),
    post("/sign-in", sign_in, open=True),
    get("/claim/{secret}", show_claim, open=True),
    post("/claim/{secret}", claim, open=True),
    post("/sign-out", sign_out),
    post("/passkeys/ask", ask_passkey, open=True),
    post("/passkeys/sign-in", use_passkey, open=True),
)
