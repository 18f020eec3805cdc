"""Tokens: create, view as, activity, revoke; and connecting a client."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import Response

from commonplace.core.people.client_setup import PLACEHOLDER, Client, instructions
from commonplace.core.people.tokens import DEFAULT_EXPIRY_DAYS, NewToken
from commonplace.errors import Invalid, NotFound
from commonplace.interfaces.web.live_progress import events
from commonplace.interfaces.web.request import WebRequest
from commonplace.interfaces.web.route import get, post
from commonplace.model import Token, now

NAMES = {
    Client.CLAUDE_CODE: "Claude Code",
    Client.CLAUDE_DESKTOP: "Claude Desktop",
    Client.CHATGPT: "ChatGPT",
    Client.CURSOR: "Cursor",
    Client.VSCODE: "VS Code",
    Client.CURL: "curl",
}
EXPIRIES = {"30": "a month", "90": "three months", str(DEFAULT_EXPIRY_DAYS): "a year", "": "never"}
EVERY, LONGEST = 1.0, 1800


async def show(request: WebRequest, made: tuple[Token, str] | None = None) -> Response:
    tokens = await request.services.people.tokens(request.caller)
    folders = await request.services.folders.list_folders(request.caller)
    return request.page(
        "tokens.html",
        no_store=True,
        tokens=sorted(tokens, key=lambda token: (token.revoked_at is not None, token.name)),
        folders=folders,
        names={folder.id: folder.name for folder in folders},
        made=made,
        expiries=EXPIRIES,
        default_expiry=str(DEFAULT_EXPIRY_DAYS),
        now=now(),
    )


async def create(request: WebRequest) -> Response:
    return await show(
        request, await request.services.people.create_token(request.caller, _wanted(request))
    )


def _wanted(request: WebRequest) -> NewToken:
    name, expires = (
        " ".join(request.form.get("name", "").split()),
        request.form.get("expires", str(DEFAULT_EXPIRY_DAYS)),
    )
    if not 0 < len(name) <= 200:
        raise Invalid("Give the token a name of up to 200 characters: what it is for.")
    if expires not in EXPIRIES:
        raise Invalid("Choose how long the token is good for.")
    return NewToken(
        name,
        request.form.get("write") == "1",
        tuple(request.form_list("folder")) if request.form.get("sees") == "folders" else None,
        request.form.get("kb_only") == "1",
        int(expires) if expires else None,
    )


async def revoke(request: WebRequest) -> Response:
    await request.services.people.revoke_token(request.caller, request.path("token_id"))
    return request.redirect("/tokens", "The token is revoked: whoever has it is out.")


async def activity(request: WebRequest) -> Response:
    token = await _token(request)
    return request.page(
        "activity.html",
        token=token,
        events=await request.services.people.activity(request.caller, token.id),
    )


async def view_as(request: WebRequest) -> Response:
    token_id = request.form.get("token") or None
    await request.services.accounts.view_as(request.user, token_id)
    return request.redirect("/" if token_id else "/tokens")


async def _token(request: WebRequest) -> Token:
    for token in await request.services.people.tokens(request.caller):
        if token.id == request.path("token_id"):
            return token
    raise NotFound("Token not found")


# -- connecting


async def connect(
    request: WebRequest, made: tuple[Token, str] | None = None, client: str = ""
) -> Response:
    url, secret = request.base_url, made[1] if made else PLACEHOLDER
    chosen = client or request.query("client")
    return request.page(
        "connect.html",
        no_store=True,
        clients=NAMES,
        lines={each: instructions(each, url, secret, request.services.settings) for each in Client},
        made=made,
        placeholder=PLACEHOLDER,
        url=url,
        chosen=chosen if chosen in {*Client} else Client.CLAUDE_CODE,
        folders=await request.services.folders.list_folders(request.caller),
    )


async def connect_with(request: WebRequest) -> Response:
    """Create a token for the client, and show its configuration with the token."""
    client = request.form.get("client", "")
    if client not in {*Client}:
        raise Invalid("Choose a client.")
    folder = request.form.get("folder")
    wish = NewToken(
        NAMES[Client(client)], request.form.get("write") == "1", (folder,) if folder else None
    )
    return await connect(
        request, await request.services.people.create_token(request.caller, wish), client
    )


async def first_call(request: WebRequest) -> Response:
    """Stream an event when the token's first call has come."""
    return events(_first_call(request, (await _token(request)).id))


async def _first_call(request: WebRequest, token_id: str) -> AsyncIterator[dict[str, Any]]:
    for _ in range(int(LONGEST / EVERY)):
        done = await request.services.people.activity(request.caller, token_id, limit=1)
        if done:
            yield {"connected": True, "action": done[0].action}
            return
        yield {"connected": False}
        await asyncio.sleep(EVERY)


ROUTES = (
    get("/tokens", show),
    post("/tokens", create),
    post("/tokens/{token_id}/revoke", revoke),
    get("/tokens/{token_id}", activity),
    post("/view-as", view_as),
    get("/connect", connect),
    post("/connect", connect_with),
    get("/connect/{token_id}/live", first_call),
)
