"""connect: the lines that make a client a client of this server."""

import json
import shlex
import shutil
import sys
from enum import StrEnum
from typing import Annotated

import typer

from commonplace.faces.cli import show
from commonplace.faces.cli.desk import Desk, command
from commonplace.settings import Settings

PLACEHOLDER = "sk_YOUR_TOKEN"


class Client(StrEnum):
    CLAUDE_CODE = "claude-code"
    CLAUDE_DESKTOP = "claude-desktop"
    CHATGPT = "chatgpt"
    CURSOR = "cursor"
    VSCODE = "vscode"
    CURL = "curl"


def register(root: typer.Typer) -> None:
    command(root, "connect")(connect)


async def connect(desk: Desk, client: Annotated[Client, typer.Argument(help="Which client.", show_default=False)],
                  read_only: Annotated[bool, typer.Option("--read-only", help="A token that may only read.")] = False) -> None:
    """Print what to run or paste so that a client reaches this library, with a new token for it (or --token)."""
    from commonplace.core.people import NewToken

    url = address(desk.settings)
    secret = desk.token or ""
    # Claude Desktop starts a program of its owner's, which needs a token only to be let do less.
    if not secret and (read_only or client is not Client.CLAUDE_DESKTOP):
        async with desk.open() as (app, caller):
            _, secret = await app.people.create_token(caller, NewToken(client, write=not read_only))
    where, lines = _lines(client, url, secret, desk.settings)
    if desk.as_json:
        show.as_json({"client": client, "where": where, "configuration": lines, "token": secret or None})
        return
    show.note(where)
    show.text(lines)


def address(settings: Settings) -> str:
    """Where clients reach the server."""
    if settings.public_url:
        return settings.public_url.rstrip("/")
    anywhere = settings.host in ("0.0.0.0", "::", "")
    host = "127.0.0.1" if anywhere else f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{settings.port}"


def claude_code(url: str, secret: str) -> str:
    return f'claude mcp add --transport http commonplace {url}/mcp --header "Authorization: Bearer {secret}"'


def _lines(client: Client, url: str, secret: str, settings: Settings) -> tuple[str, str]:
    headers = {"Authorization": f"Bearer {secret}"}
    match client:
        case Client.CLAUDE_CODE:
            return "Run:", claude_code(url, secret)
        case Client.CLAUDE_DESKTOP:
            token = {"COMMONPLACE_TOKEN": secret} if secret else {}
            server = {"command": _program(), "args": ["mcp"], "env": _environment(settings) | token}
            return ("Settings > Developer > Edit Config (claude_desktop_config.json):",
                    _json({"mcpServers": {"commonplace": server}}))
        case Client.CURSOR:
            return ("Put into ~/.cursor/mcp.json:",
                    _json({"mcpServers": {"commonplace": {"url": f"{url}/mcp", "headers": headers}}}))
        case Client.VSCODE:
            server = {"type": "http", "url": f"{url}/mcp", "headers": headers}
            return "Put into .vscode/mcp.json:", _json({"servers": {"commonplace": server}})
        case Client.CHATGPT:
            tool = {"type": "mcp", "server_label": "commonplace", "server_url": f"{url}/mcp", "authorization": secret,
                    "require_approval": "never"}
            return ("A tool of the Responses API. OpenAI's servers must reach the address: set COMMONPLACE_PUBLIC_URL to the "
                    "https:// address it is published at.", _json(tool))
        case Client.CURL:
            body = shlex.quote(json.dumps({"query": "what do I know?", "limit": 5}))
            return "Run:", (f'curl -s {url}/api/v1/search -H "Authorization: Bearer {secret}" '
                            f'-H "Content-Type: application/json" -d {body}')


def _program() -> str:
    return shutil.which("commonplace") or sys.argv[0]


def _environment(settings: Settings) -> dict[str, str]:
    """A desktop client starts programs with an environment of its own."""
    from dataclasses import fields

    differing = [f for f in fields(Settings) if getattr(settings, f.name) != getattr(Settings(), f.name)]
    return {"COMMONPLACE_DATA_DIR": str(settings.data_dir.absolute())} | {
        f"COMMONPLACE_{f.name.upper()}": str(getattr(settings, f.name)) for f in differing if f.name != "data_dir"}


def _json(value: object) -> str:
    return json.dumps(value, indent=2)
