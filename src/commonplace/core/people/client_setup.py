"""Setup instructions for clients: the same lines in the CLI and the web app."""

import json
import shlex
import shutil
import sys
from base64 import b64encode
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from urllib.parse import quote

from commonplace.settings import Settings

PLACEHOLDER = "sk_YOUR_TOKEN"
MCP_PATH = "/mcp/core"  # the tools that agents need most; /mcp has all of them


class Client(StrEnum):
    CLAUDE_CODE = "claude-code"
    CLAUDE_DESKTOP = "claude-desktop"
    CHATGPT = "chatgpt"
    CURSOR = "cursor"
    VSCODE = "vscode"
    CURL = "curl"


@dataclass(frozen=True, slots=True)
class Instructions:
    where: str  # instructions for the lines
    lines: str
    install: str | None = None  # a URL that installs it automatically


def address(settings: Settings) -> str:
    """Return the URL where clients reach the server."""
    if settings.public_url:
        return settings.public_url.rstrip("/")
    anywhere = settings.host in ("0.0.0.0", "::", "")
    host = (
        "127.0.0.1" if anywhere else f"[{settings.host}]" if ":" in settings.host else settings.host
    )
    return f"http://{host}:{settings.port}"


def claude_code(url: str, secret: str) -> str:
    return (
        f"claude mcp add --transport http commonplace {url}{MCP_PATH} "
        f'--header "Authorization: Bearer {secret}"'
    )


def instructions(client: Client, url: str, secret: str, settings: Settings) -> Instructions:
    headers = {"Authorization": f"Bearer {secret}"}
    match client:
        case Client.CLAUDE_CODE:
            return Instructions("Run:", claude_code(url, secret))
        case Client.CLAUDE_DESKTOP:
            token = {"COMMONPLACE_TOKEN": secret} if secret else {}
            server = {"command": _program(), "args": ["mcp"], "env": _environment(settings) | token}
            return Instructions(
                "Settings > Developer > Edit Config (claude_desktop_config.json):",
                _json({"mcpServers": {"commonplace": server}}),
            )
        case Client.CURSOR:
            server = {"url": f"{url}{MCP_PATH}", "headers": headers}
            config = quote(b64encode(json.dumps(server).encode()).decode())
            return Instructions(
                "Put into ~/.cursor/mcp.json:",
                _json({"mcpServers": {"commonplace": server}}),
                f"cursor://anysphere.cursor-deeplink/mcp/install?name=commonplace&config={config}",
            )
        case Client.VSCODE:
            server = {"type": "http", "url": f"{url}{MCP_PATH}", "headers": headers}
            return Instructions(
                "Put into .vscode/mcp.json:",
                _json({"servers": {"commonplace": server}}),
                f"vscode:mcp/install?{quote(json.dumps({'name': 'commonplace', **server}))}",
            )
        case Client.CHATGPT:
            tool = {
                "type": "mcp",
                "server_label": "commonplace",
                "server_url": f"{url}{MCP_PATH}",
                "authorization": secret,
                "require_approval": "never",
            }
            return Instructions(
                "A tool of the Responses API. OpenAI's servers must reach the address: set "
                "COMMONPLACE_PUBLIC_URL to the "
                "https:// address it is published at.",
                _json(tool),
            )
        case Client.CURL:
            body = shlex.quote(json.dumps({"query": "what do I know?", "limit": 5}))
            return Instructions(
                "Run:",
                f'curl -s {url}/api/v1/search -H "Authorization: Bearer {secret}" '
                f'-H "Content-Type: application/json" -d {body}',
            )


def _program() -> str:
    """Return this installation's command with its full path: desktop clients start in another
    folder."""
    return (
        shutil.which("commonplace", path=Path(sys.executable).parent)
        or shutil.which("commonplace")
        or str(Path(sys.argv[0]).absolute())
    )


def _environment(settings: Settings) -> dict[str, str]:
    """Return the environment for desktop clients, which do not inherit ours."""
    differing = [
        f for f in fields(Settings) if getattr(settings, f.name) != getattr(Settings(), f.name)
    ]
    return {"COMMONPLACE_DATA_DIR": str(settings.data_dir.absolute())} | {
        f"COMMONPLACE_{f.name.upper()}": str(getattr(settings, f.name))
        for f in differing
        if f.name != "data_dir"
    }


def _json(value: object) -> str:
    return json.dumps(value, indent=2)
