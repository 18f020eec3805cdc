"""One's own account: name, password, passkeys, browsers that are signed in, and leaving for good."""

from starlette.responses import Response

from commonplace.errors import Invalid
from commonplace.interfaces.web.request import Visit
from commonplace.interfaces.web.route import get, post

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


async def account(visit: Visit) -> Response:
    services, me = visit.services, visit.known
    return visit.page(
        "account.html",
        person=me.person,
        has_password=await services.accounts.has_password(me),
        passkeys=await services.passkeys.of(me.person),
        obstacle=await services.account_deletion.obstacle(me),
        sessions=[(each, named(each.about)) for each in await services.accounts.sessions(me)],
    )


async def rename(visit: Visit) -> Response:
    form = await visit.form()
    await visit.services.accounts.rename(visit.known, form.get("name", ""), form.get("email", ""))
    return visit.go("/account", "Saved.")


async def change_password(visit: Visit) -> Response:
    form = await visit.form()
    await visit.services.accounts.change_password(
        visit.known, form.get("old", ""), form.get("new", "")
    )
    return visit.go("/account", "The password is changed; all other browsers are signed out.")


async def sign_out_others(visit: Visit) -> Response:
    await visit.services.accounts.sign_out(visit.known, others=True)
    return visit.go("/account", "All other browsers are signed out.")


async def close_session(visit: Visit) -> Response:
    await visit.services.accounts.close_session(
        visit.known, visit.request.path_params["session_id"]
    )
    return visit.go("/account", "That browser is signed out.")


async def delete(visit: Visit) -> Response:
    form = await visit.form()
    await visit.services.account_deletion.delete(
        visit.known, form.get("email", ""), form.get("password", "")
    )
    visit.leave()
    return visit.go("/sign-in", "Your account and your library are deleted.")


def named(agent: str) -> str:
    """A browser by the name that people know it by, as far as it can be told."""
    browser = next((name for mark, name in BROWSERS.items() if mark in agent), "")
    system = next((name for mark, name in SYSTEMS.items() if mark in agent), "")
    return (
        f"{browser} on {system}"
        if browser and system
        else browser or system or agent[:60] or "A browser"
    )


# -- passkeys: asked for and answered by static/passkeys.js


async def offer_passkey(visit: Visit) -> Response:
    return visit.json_answer(
        await visit.services.passkeys.registration_options(visit.known.person, visit.site)
    )


async def add_passkey(visit: Visit) -> Response:
    body = await visit.json()
    credential = body.get("credential")
    if not isinstance(credential, dict):
        raise Invalid("`credential` is required.")
    made = await visit.services.passkeys.add(
        visit.known.person.id, visit.site, credential, str(body.get("name", ""))
    )
    visit.go("/account", f"The passkey “{made.name}” is ready.")
    return visit.json_answer({"ok": True})


async def remove_passkey(visit: Visit) -> Response:
    await visit.services.passkeys.remove(visit.known, visit.request.path_params["passkey_id"])
    return visit.go("/account", "The passkey is removed.")


DOORS = (
    get("/account", account),
    post("/account", rename),
    post("/account/password", change_password),
    post("/account/others", sign_out_others),
    post("/account/sessions/{session_id}", close_session),
    post("/account/delete", delete),
    post("/passkeys/offer", offer_passkey),
    post("/passkeys", add_passkey),
    post("/passkeys/{passkey_id}/remove", remove_passkey),
)
