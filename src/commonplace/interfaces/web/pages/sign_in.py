"""Sign in, sign out, and claim an account."""

from starlette.responses import JSONResponse, Response

from commonplace.errors import CommonplaceError, Invalid, NameTaken
from commonplace.interfaces.http.gate import STATUS
from commonplace.interfaces.web.request import WebRequest
from commonplace.interfaces.web.route import get, post


def _next(path: str) -> str:
    """Return a path on this server; other targets would let a link lead people astray."""
    safe = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if safe else "/"


async def show(request: WebRequest) -> Response:
    if request.visitor is not None:
        return request.redirect(_next(request.query("next", "/")))
    return await _show(request)


async def _show(
    request: WebRequest,
    error: CommonplaceError | None = None,
    email: str = "",
    wanted: str | None = None,
) -> Response:
    return request.page(
        "signin.html",
        STATUS.get(type(error), 500) if error else 200,
        error=error.message if error else "",
        email=email,
        next=_next(request.query("next", "/") if wanted is None else wanted),
    )


async def sign_in(request: WebRequest) -> Response:
    try:
        secret = await request.services.accounts.sign_in(
            request.form.get("email", ""),
            request.form.get("password", ""),
            address=request.address,
            about=request.browser,
            device=request.device,
        )
    except CommonplaceError as error:
        return await _show(
            request, error, request.form.get("email", ""), request.form.get("next", "/")
        )
    await request.start_session(secret)
    return request.redirect(_next(request.form.get("next", "/")))


async def sign_out(request: WebRequest) -> Response:
    await request.services.accounts.sign_out(request.user)
    request.end_session()
    response = request.redirect("/sign-in", "You are signed out.")
    response.headers["Clear-Site-Data"] = '"cache"'
    return response


async def show_claim(request: WebRequest) -> Response:
    person = await request.services.accounts.invited(request.path("secret"))
    made_up = person.email.endswith("@localhost")
    return await _show_claim(
        request, person.id, "" if made_up else person.name, "" if made_up else person.email
    )


async def _show_claim(
    request: WebRequest,
    person_id: str,
    name: str,
    email: str,
    error: CommonplaceError | None = None,
) -> Response:
    return request.page(
        "claim.html",
        STATUS[type(error)] if error else 200,
        name=name,
        email=email,
        known=bool(name) and await request.services.accounts.can_sign_in(person_id),
        error=error.message if error else "",
    )


async def claim(request: WebRequest) -> Response:
    form, accounts, link = (
        request.form,
        request.services.accounts,
        request.path("secret"),
    )
    name, email = form.get("name", ""), form.get("email", "")
    try:
        secret = await accounts.claim(
            link, name, email, form.get("password", ""), about=request.browser
        )
    except (Invalid, NameTaken) as error:
        return await _show_claim(request, (await accounts.invited(link)).id, name, email, error)
    await request.start_session(secret)
    return request.redirect("/", "The library is yours. Welcome.")


# -- passkeys: asked for and answered by static/passkeys.js


async def ask_passkey(request: WebRequest) -> Response:
    return JSONResponse(await request.services.passkeys.authentication_options(request.site))


async def use_passkey(request: WebRequest) -> Response:
    body, credential = await request.passkey()
    await request.start_session(
        await request.services.passkeys.sign_in(
            request.site,
            credential,
            address=request.address,
            about=request.browser,
            device=request.device,
        )
    )
    return JSONResponse({"ok": True, "next": _next(str(body.get("next", "/")))})


ROUTES = (
    get("/sign-in", show, open=True),
    post("/sign-in", sign_in, open=True),
    get("/claim/{secret}", show_claim, open=True),
    post("/claim/{secret}", claim, open=True),
    post("/sign-out", sign_out),
    post("/passkeys/ask", ask_passkey, open=True),
    post("/passkeys/sign-in", use_passkey, open=True),
)
