"""Who has access: tokens, connected apps, webhooks, browsers; and connecting a client."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from commonplace.core.people.client_setup import (
    NEED_TOKENS,
    PLACEHOLDER,
    Client,
    Instructions,
    instructions,
)
from commonplace.core.people.tokens import DEFAULT_EXPIRY_DAYS, FIRST_TOKEN
from commonplace.errors import Invalid
from commonplace.interfaces.web.live import KEEP_ALIVE, server_sent
from commonplace.interfaces.web.pages.account import browsers
from commonplace.interfaces.web.request import WebRequest, act, get, post, post_then
from commonplace.model import Token, Webhook, is_loopback, now

NAMES = {
    Client.CLAUDE_CODE: "Claude Code",
    Client.CLAUDE_AI: "claude.ai",
    Client.CLAUDE_DESKTOP: "Claude Desktop",
    Client.CHATGPT: "ChatGPT",
    Client.CURSOR: "Cursor",
    Client.VSCODE: "VS Code",
    Client.CODEX: "Codex",
    Client.GEMINI: "Gemini CLI",
    Client.OPENCODE: "OpenCode",
    Client.OPENAI_AGENTS: "OpenAI Agents",
    Client.LANGCHAIN: "LangChain",
    Client.N8N: "n8n",
    Client.CURL: "curl",
}
EXPIRIES = {
    "30": "30 days",
    "90": "90 days",
    str(DEFAULT_EXPIRY_DAYS): "1 year",
    "": "Never",
}
# Claude Desktop starts a program that reads the library of its own computer.
DESKTOP = Instructions(
    "On the computer with your library, run:",
    "commonplace connect claude-desktop --write",
    then="Restart Claude Desktop. It acts as the owner of the library; to limit it, add --token "
    "--read-only. For a library on another computer, follow the steps for claude.ai.",
)
NO_TOKENS = {Client.CLAUDE_AI, Client.CLAUDE_DESKTOP}  # the one takes none, the other is a command
EVERY, LONGEST = 1.0, 1800


async def show(request: WebRequest) -> Response:
    services = request.services
    tokens = await services.people.tokens(request.caller)
    webhooks = await services.webhooks.all(request.caller)
    return request.page(
        "tokens.html",
        no_store=True,
        tokens=sorted(tokens, key=lambda token: (token.revoked_at is not None, token.name)),
        names={node.id: node.label for node in request.folders},
        **_new_secret(request, [*tokens, *webhooks]),
        first=next((token for token in tokens if _is_first(token)), None),
        webhooks=webhooks,
        token_names={token.id: token.name for token in tokens},
        sessions=await browsers(request),
        expiries=expiries(EXPIRIES),
        default_expiry=str(DEFAULT_EXPIRY_DAYS),
        now=now(),
    )


def expiries(known: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return the days after which access can end (none: never), their names, and the dates."""
    at = now()
    return [
        (days, name, (at + timedelta(days=int(days))).strftime("%-d %b %Y") if days else "")
        for days, name in known.items()
    ]


def _is_first(token: Token) -> bool:
    """Whether it is the token that `serve` printed, still with full access."""
    return token.name == FIRST_TOKEN and token.folders is None and token.revoked_at is None


def _new_secret(request: WebRequest, known: Sequence[Token | Webhook]) -> dict[str, Any]:
    """Return what was just created and its secret, while that may be shown."""
    made = next((each for each in known if each.id == request.query("new")), None)
    if made is None or (isinstance(made, Token) and made.revoked_at):
        return {"made": None, "secret": "", "seconds": 0, "gone": False}
    kept = request.services.accounts.sealed(request.user, request.secret, made.id)
    secret, seconds = kept or ("", 0)
    return {
        "made": made if kept else None,
        "secret": secret,
        "seconds": seconds,
        "gone": not kept,
    }


async def _show_once(request: WebRequest, made: tuple[Token | Webhook, str], **to: str) -> Response:
    """Keep a secret for the page that comes: loading that again creates nothing."""
    about, secret = made
    await request.services.accounts.seal(request.user, request.secret, about.id, secret)
    path = "/connect" if to else "/tokens"
    return request.redirect(f"{path}?{urlencode({**to, 'new': about.id})}")


async def forget_secret(request: WebRequest) -> Response:
    await request.services.accounts.forget_sealed(request.user)
    return request.redirect(request.referrer.partition("?")[0] or "/tokens")


async def _create_token(request: WebRequest, fields: str, **given: str) -> tuple[Token, str]:
    # A field that is missing must not give the whole library.
    folders = None if request.text("sees") == "all" else request.form_list("folder")
    if folders == []:
        raise Invalid("Choose a folder, or the whole library.", field="sees")
    made: tuple[Token, str] = await request.act(
        "create_token", f"write kb_only expires_days {fields}", folder_ids=folders, **given
    )
    return made


async def create(request: WebRequest) -> Response:
    return await _show_once(request, await _create_token(request, "name"))


async def create_webhook(request: WebRequest) -> Response:
    return await _show_once(request, await request.act("create_webhook", "url"))


async def test_webhook(request: WebRequest) -> Response:
    sent = await request.act("test_webhook")
    note = "Test event delivered." if sent.ok else f"Test event failed: {sent.error}"
    return request.redirect("/tokens", note, wrong=not sent.ok)


async def activity(request: WebRequest) -> Response:
    return request.page(
        "activity.html",
        token=await request.act("get_token"),
        events=await request.act("list_token_activity"),
    )


async def view_as(request: WebRequest) -> Response:
    token_id = request.text("token") or None
    await request.services.accounts.view_as(request.user, token_id)
    return request.redirect("/" if token_id else "/tokens")


# -- connecting


async def connect(request: WebRequest) -> Response:
    services = request.services
    client = request.query("client")
    chosen = Client(client) if client in NAMES else Client.CLAUDE_CODE
    tokens = await services.people.tokens(request.caller) if request.query("new") else []
    made = _new_secret(request, tokens)
    return request.page(
        "connect.html",
        no_store=True,
        clients=NAMES,
        chosen=chosen,
        by_browser=_steps(request, chosen, ""),
        with_token=_steps(request, chosen, made["secret"] or PLACEHOLDER),
        needs_token=chosen in NEED_TOKENS,
        no_token=chosen in NO_TOKENS,
        local=chosen is Client.CLAUDE_DESKTOP,
        no_sign_in=not await services.oauth.can_consent(request.user),
        **made,
        names={node.id: node.label for node in request.folders},
        expiries=expiries(EXPIRIES),
        default_expiry=str(DEFAULT_EXPIRY_DAYS),
        placeholder=PLACEHOLDER,
        url=_address(request),
        unknown=_address(request) != services.settings.issuer,
    )


def _steps(request: WebRequest, client: Client, secret: str) -> Instructions:
    """Return what to do by hand. Nothing of the server's settings, which have secrets, is in it."""
    if client is Client.CLAUDE_DESKTOP:
        return DESKTOP
    return instructions(client, _address(request), secret, request.services.settings)


def _address(request: WebRequest) -> str:
    """Return where clients reach the server. They sign in only where it knows that itself."""
    settings = request.services.settings
    known = settings.public_url or is_loopback(request.site.origin)
    return settings.issuer if known else request.site.origin


async def connect_with(request: WebRequest) -> Response:
    """Create a token for the client, and show its configuration with the token."""
    client = request.text("client")
    if client not in NAMES or client in NO_TOKENS:
        raise Invalid("Choose a client that takes a token.")
    made = await _create_token(request, "", name=NAMES[Client(client)])
    return await _show_once(request, made, client=client)


async def first_call(request: WebRequest) -> Response:
    """Stream an event when the token's first call has come."""
    token_id = (await request.act("get_token")).id

    async def has_called() -> bool:
        return bool(await request.services.people.activity(request.caller, token_id, limit=1))

    return server_sent(_when(has_called))


async def first_sign_in(request: WebRequest) -> Response:
    """Stream an event when the person has connected another client, and it has called."""
    known = {grant.id for grant in await request.services.oauth.grants(request.user)}

    async def has_come() -> bool:
        grants = await request.services.oauth.grants(request.user)
        return any(grant.last_used_at and grant.id not in known for grant in grants)

    return server_sent(_when(has_come))


async def _when(happened: Callable[[], Awaitable[bool]]) -> AsyncIterator[bytes]:
    for _ in range(int(LONGEST / EVERY)):
        if await happened():
            yield b"data: true\n\n"
            return
        yield KEEP_ALIVE
        await asyncio.sleep(EVERY)


ROUTES = (
    get("/tokens", show),
    post("/tokens", create),
    post("/tokens/shown", forget_secret),
    post_then(
        "/tokens/{token_id}/revoke",
        act("revoke_token"),
        "/tokens",
        "Token revoked.",
    ),
    post("/webhooks", create_webhook),
    post("/webhooks/{webhook_id}/test", test_webhook),
    post_then(
        "/webhooks/{webhook_id}/delete", act("delete_webhook"), "/tokens", "Webhook deleted."
    ),
    get("/tokens/{token_id}", activity),
    post("/view-as", view_as),
    get("/connect", connect),
    post("/connect", connect_with),
    get("/connect/live", first_sign_in),
    get("/connect/{token_id}/live", first_call),
)
