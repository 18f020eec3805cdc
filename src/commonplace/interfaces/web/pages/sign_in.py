"""Sign in, sign out, and claim an account."""

from starlette.responses import JSONResponse, Response

from commonplace.interfaces.web.headers import allow_opener
from commonplace.interfaces.web.request import WebRequest, get, post


def _next(path: str) -> str:
    """Return a path on this server; other targets would let a link lead people astray."""
    safe = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if safe else "/"


async def show(request: WebRequest) -> Response:
    wanted = _next(request.query("next", "/"))
    if request.visitor is not None:
        return allow_opener(request.redirect(wanted), wanted)
    return allow_opener(request.page("signin.html", no_store=True, next=wanted), wanted)


async def sign_in(request: WebRequest) -> Response:
    await request.start_session(
        await request.services.accounts.sign_in(
            request.text("email"),
            request.text("password"),
            address=request.address,
            about=request.browser,
            device=request.device,
        )
    )
    wanted = _next(request.text("next") or "/")
    return allow_opener(request.redirect(wanted), wanted)


async def sign_out(request: WebRequest) -> Response:
    await request.services.accounts.sign_out(request.user)
    request.end_session()
    response = request.redirect("/sign-in", "Signed out.")
    response.headers["Clear-Site-Data"] = '"cache"'
    return response


async def show_claim(request: WebRequest) -> Response:
    person = await request.services.accounts.invited(request.path("secret"))
    made_up = person.email.endswith("@localhost")
    name, email = ("", "") if made_up else (person.name, person.email)
    known = bool(name) and await request.services.accounts.can_sign_in(person.id)
    return request.page("claim.html", no_store=True, name=name, email=email, known=known)


async def claim(request: WebRequest) -> Response:
    await request.start_session(
        await request.services.accounts.claim(
            request.path("secret"),
            request.text("name"),
            request.text("email"),
            request.text("password"),
            about=request.browser,
        )
    )
    return request.redirect("/", "Welcome to your library.")


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
