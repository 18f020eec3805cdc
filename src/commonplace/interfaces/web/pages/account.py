"""The account page: name, password, passkeys, sessions, clients, deletion."""

from starlette.responses import JSONResponse, Response

from commonplace.interfaces.web.request import WebRequest, get, post, post_then
from commonplace.model import WebSession

# What stands first here stands in others' names, too: they call themselves after each other.
BROWSERS = {
    "Edg": "Edge",
    "OPR/": "Opera",
    "Firefox/": "Firefox",
    "Chrome/": "Chrome",
    "Safari/": "Safari",
}
SYSTEMS = {
    "Android": "Android",
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Windows": "Windows",
    "Mac OS X": "macOS",
    "Linux": "Linux",
}


async def account(request: WebRequest) -> Response:
    services, me = request.services, request.user
    return request.page(
        "account.html",
        person=me.person,
        has_password=await services.accounts.has_password(me),
        passkeys=await services.passkeys.of(me.person),
        grants=await services.oauth.grants(me),
        obstacle=await services.account_deletion.obstacle(me),
        sessions=await browsers(request),
    )


async def browsers(request: WebRequest) -> list[tuple[WebSession, str]]:
    """Return the person's sessions, with the names of their browsers."""
    found = await request.services.accounts.sessions(request.user)
    return [(each, browser_name(each.about)) for each in found]


async def delete(request: WebRequest) -> Response:
    await request.services.account_deletion.delete(
        request.user, request.text("email"), request.text("password")
    )
    request.end_session()
    return request.redirect("/sign-in", "Your account and library were deleted.")


def browser_name(agent: str) -> str:
    """Return a name such as "Firefox on Linux", as far as the user agent tells it."""
    browser = next((name for mark, name in BROWSERS.items() if mark in agent), "")
    system = next((name for mark, name in SYSTEMS.items() if mark in agent), "")
    return (
        f"{browser} on {system}"
        if browser and system
        else browser or system or agent[:60] or "Unknown browser"
    )


# -- passkeys: asked for and answered by static/passkeys.js


async def offer_passkey(request: WebRequest) -> Response:
    return JSONResponse(
        await request.services.passkeys.registration_options(request.user.person, request.site)
    )


async def add_passkey(request: WebRequest) -> Response:
    body, credential = await request.passkey()
    made = await request.services.passkeys.add(
        request.user.person.id, request.site, credential, str(body.get("name", ""))
    )
    request.redirect("/account", f"Passkey “{made.name}” added.")
    return JSONResponse({"ok": True})


ROUTES = (
    get("/account", account),
    post_then(
        "/account",
        lambda request: request.services.accounts.rename(
            request.user, request.text("name"), request.text("email")
        ),
        "/account",
        "Saved.",
    ),
    post_then(
        "/account/password",
        lambda request: request.services.accounts.change_password(
            request.user, request.text("old"), request.text("new")
        ),
        "/account",
        "Password changed. All other browsers are signed out.",
    ),
    post_then(
        "/account/others",
        lambda request: request.services.accounts.sign_out(request.user, others=True),
        "/account",
        "All other browsers are signed out.",
    ),
    post_then(
        "/account/sessions/{session_id}",
        lambda request: request.services.accounts.close_session(
            request.user, request.path("session_id")
        ),
        "/account",
        "Browser signed out.",
    ),
    post_then(
        "/account/clients/{grant_id}",
        lambda request: request.services.oauth.end(request.user, request.path("grant_id")),
        "/account",
        "Client disconnected.",
    ),
    post("/account/delete", delete),
    post("/passkeys/offer", offer_passkey),
    post("/passkeys", add_passkey),
    post_then(
        "/passkeys/{passkey_id}/remove",
        lambda request: request.services.passkeys.remove(request.user, request.path("passkey_id")),
        "/account",
        "Passkey removed.",
    ),
)
