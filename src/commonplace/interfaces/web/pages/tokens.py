"""Who has access: tokens, connected apps, webhooks, browsers; and connecting a client."""

import asyncio
from collections.abc import AsyncIterator

from starlette.responses import Response

from commonplace.core.people.client_setup import PLACEHOLDER, Client, instructions
from commonplace.core.people.tokens import DEFAULT_EXPIRY_DAYS
from commonplace.errors import Invalid
from commonplace.interfaces.web.live import KEEP_ALIVE, server_sent
from commonplace.interfaces.web.pages.account import browsers
from commonplace.interfaces.web.request import WebRequest, act, get, post, post_then
from commonplace.model import Token, Webhook, now

NAMES = {
    Client.CLAUDE_CODE: "Claude Code",
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
EVERY, LONGEST = 1.0, 1800


async def show(request: WebRequest, made: tuple[Token | Webhook, str] | None = None) -> Response:
    services = request.services
    tokens = await services.people.tokens(request.caller)
    return request.page(
        "tokens.html",
        no_store=True,
        tokens=sorted(tokens, key=lambda token: (token.revoked_at is not None, token.name)),
        names={node.id: node.label for node in request.folders},
        made=made,
        made_name=getattr(made[0], "name", "") if made else "",
        webhooks=await services.webhooks.all(request.caller),
        token_names={token.id: token.name for token in tokens},
        sessions=await browsers(request),
        expiries=EXPIRIES,
        default_expiry=str(DEFAULT_EXPIRY_DAYS),
        now=now(),
    )


async def create(request: WebRequest) -> Response:
    folders = request.form_list("folder") if request.text("sees") == "folders" else None
    fields = "name write kb_only expires_days"
    return await show(request, await request.act("create_token", fields, folder_ids=folders))


async def create_webhook(request: WebRequest) -> Response:
    return await show(request, await request.act("create_webhook", "url"))


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


async def connect(
    request: WebRequest, made: tuple[Token, str] | None = None, client: str = ""
) -> Response:
    url, secret = request.base_url, made[1] if made else PLACEHOLDER
    chosen = client or request.query("client")
    return request.page(
        "connect.html",
        no_store=True,
        clients=NAMES,
        lines={each: instructions(each, url, secret, request.services.settings) for each in NAMES},
        made=made,
        placeholder=PLACEHOLDER,
        url=url,
        chosen=chosen if chosen in NAMES else Client.CLAUDE_CODE,
    )


async def connect_with(request: WebRequest) -> Response:
    """Create a token for the client, and show its configuration with the token."""
    client = request.text("client")
    if client not in NAMES:
        raise Invalid("Choose a client.")
    folders = [request.text("folder")] if request.text("folder") else None
    made = await request.act(
        "create_token", "write", name=NAMES[Client(client)], folder_ids=folders
    )
    return await connect(request, made, client)


async def first_call(request: WebRequest) -> Response:
    """Stream an event when the token's first call has come."""
    return server_sent(_first_call(request, (await request.act("get_token")).id))


async def _first_call(request: WebRequest, token_id: str) -> AsyncIterator[bytes]:
    for _ in range(int(LONGEST / EVERY)):
        done = await request.services.people.activity(request.caller, token_id, limit=1)
        if done:
            yield b"data: true\n\n"
            return
        yield KEEP_ALIVE
        await asyncio.sleep(EVERY)


ROUTES = (
    get("/tokens", show),
    post("/tokens", create),
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
    get("/connect/{token_id}/live", first_call),
)
