"""Setup instructions for clients: the same lines in the CLI and the web app."""

import json
import shlex
import shutil
import sys
from base64 import b64encode
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from urllib.parse import quote

from commonplace.model import Json
from commonplace.settings import Settings

PLACEHOLDER = "sk_YOUR_TOKEN"
VARIABLE = "COMMONPLACE_TOKEN"  # stands for a token that is not written into a configuration
MCP_PATH = "/mcp/core"  # the tools that agents need most; /mcp has all of them
NAME = "commonplace"


class Client(StrEnum):
    CLAUDE_CODE = "claude-code"
    CLAUDE_DESKTOP = "claude-desktop"
    CLAUDE_AI = "claude-ai"
    CHATGPT = "chatgpt"
    CURSOR = "cursor"
    VSCODE = "vscode"
    CODEX = "codex"
    GEMINI = "gemini"
    OPENCODE = "opencode"
    OPENAI_AGENTS = "openai-agents"
    LANGCHAIN = "langchain"
    N8N = "n8n"
    CURL = "curl"


# How the configuration of a client names an environment variable. Others are programs or shells.
_REFERENCES = {
    Client.CLAUDE_CODE: "${COMMONPLACE_TOKEN}",
    Client.CURSOR: "${env:COMMONPLACE_TOKEN}",
    Client.VSCODE: "${env:COMMONPLACE_TOKEN}",
    Client.OPENCODE: "{env:COMMONPLACE_TOKEN}",
}
# Programs that cannot open a browser to sign in.
NEED_TOKENS = {Client.OPENAI_AGENTS, Client.LANGCHAIN, Client.CURL}
_ERRORS_AS_RESULTS = "?errors=result"  # for frameworks that hide JSON-RPC errors from their model
_PUBLIC = (
    "It connects from the internet: set COMMONPLACE_PUBLIC_URL to the https:// address at which "
    "the server is published."
)


# What signs a client in with OAuth: a command, or what to do in it. A browser opens then.
SIGN_IN = {
    Client.CLAUDE_CODE: f"claude mcp login {NAME}",
    Client.CODEX: f"codex mcp login {NAME}",
    Client.OPENCODE: f"opencode mcp auth {NAME}",
}
_THEN = {
    Client.CLAUDE_DESKTOP: "Restart Claude Desktop. It starts a program that acts as the owner of "
    "the library, without signing in.",
    Client.CLAUDE_AI: "Press Connect beside the connector.",
    Client.CHATGPT: "Create the app.",
    Client.CURSOR: f"Open Settings > Tools & MCP, and press Connect beside {NAME}.",
    Client.VSCODE: f"Press Start above the entry, and allow it to sign in to {NAME}.",
    Client.GEMINI: f"Start gemini, and type: /mcp auth {NAME}",
    Client.N8N: "Create the credential, and press Connect my account.",
}


@dataclass(frozen=True, slots=True)
class Instructions:
    where: str  # instructions for the lines
    lines: str
    install: str | None = None  # a URL that installs it automatically
    sign_in: str = ""  # a command to run next,
    then: str = ""  # or what to do next


def address(settings: Settings) -> str:
    """Return the URL where clients reach the server."""
    if settings.public_url:
        return settings.public_url.rstrip("/")
    anywhere = settings.host in ("0.0.0.0", "::", "")
    host = (
        "127.0.0.1" if anywhere else f"[{settings.host}]" if ":" in settings.host else settings.host
    )
    return f"http://{host}:{settings.port}"


def entry(client: Client, url: str, secret: str, settings: Settings) -> Json:
    """Return the client's entry for the server. `secret` is a token, VARIABLE for one in the
    environment, or "" to sign in with OAuth."""
    if client is Client.CLAUDE_DESKTOP:  # it starts a program, which acts as the owner
        token = {VARIABLE: secret} if secret else {}
        return {"command": _program(), "args": ["mcp"], "env": _environment(settings) | token}
    address = f"{url}{MCP_PATH}"
    if client is Client.CODEX and secret == VARIABLE:
        return {"url": address, "bearer_token_env_var": VARIABLE}
    bearer = f"Bearer {_shown(client, secret)}"
    headers = {"headers": {"Authorization": bearer}} if secret else {}
    match client:
        case Client.CODEX:
            return {"url": address} | ({"http_headers": headers["headers"]} if secret else {})
        case Client.CURSOR:
            return {"url": address} | headers
        case Client.GEMINI:
            return {"httpUrl": address} | headers
        case Client.OPENCODE:
            return {"type": "remote", "url": address, "enabled": True} | headers
        case _:
            return {"type": "http", "url": address} | headers


def instructions(client: Client, url: str, secret: str, settings: Settings) -> Instructions:
    """Return what to do by hand. `secret` as in `entry`."""
    made = _instructions(client, url, secret, settings)
    if secret:
        return made
    return replace(made, sign_in=SIGN_IN.get(client, ""), then=_THEN.get(client, ""))


def _instructions(client: Client, url: str, secret: str, settings: Settings) -> Instructions:
    server = entry(client, url, secret, settings)
    match client:
        case Client.CLAUDE_CODE:
            header = f" --header 'Authorization: Bearer {_shown(client, secret)}'" if secret else ""
            return Instructions(
                "Run:", f"claude mcp add --transport http {NAME} {url}{MCP_PATH}{header}"
            )
        case Client.CLAUDE_DESKTOP:
            return Instructions(
                "Settings > Developer > Edit Config (claude_desktop_config.json):",
                _json({"mcpServers": {NAME: server}}),
            )
        case Client.CLAUDE_AI:
            return Instructions(
                f"Settings > Connectors > Add custom connector, with this URL. {_PUBLIC}",
                f"{url}{MCP_PATH}",
            )
        case Client.CURSOR:
            config = quote(b64encode(json.dumps(server).encode()).decode())
            return Instructions(
                "Put into ~/.cursor/mcp.json:",
                _json({"mcpServers": {NAME: server}}),
                f"cursor://anysphere.cursor-deeplink/mcp/install?name={NAME}&config={config}",
            )
        case Client.VSCODE:
            return Instructions(
                "Put into .vscode/mcp.json:",
                _json({"servers": {NAME: server}}),
                f"vscode:mcp/install?{quote(json.dumps({'name': NAME, **server}))}",
            )
        case Client.CODEX:
            return Instructions("Put into ~/.codex/config.toml:", toml_table(server))
        case Client.GEMINI:
            return Instructions(
                "Put into ~/.gemini/settings.json:", _json({"mcpServers": {NAME: server}})
            )
        case Client.OPENCODE:
            return Instructions(
                "Put into ~/.config/opencode/opencode.json:", _json({"mcp": {NAME: server}})
            )
        case Client.CHATGPT if not secret:
            return Instructions(
                "Turn on developer mode (Settings > Apps > Advanced settings), then create an app "
                f"with this URL and OAuth. {_PUBLIC}",
                f"{url}{MCP_PATH}",
            )
        case Client.CHATGPT:
            tool = {
                "type": "mcp",
                "server_label": NAME,
                "server_url": f"{url}{MCP_PATH}",
                "authorization": _shown(client, secret),
                "require_approval": "never",
            }
            return Instructions(f"A tool of the Responses API. {_PUBLIC}", _json(tool))
        case Client.OPENAI_AGENTS:
            return Instructions(
                "With the OpenAI Agents SDK:",
                _OPENAI_AGENTS.format(url=_errors(url), bearer=_python(secret)),
            )
        case Client.LANGCHAIN:
            return Instructions(
                "With langchain-mcp-adapters:",
                _LANGCHAIN.format(url=_errors(url), bearer=_python(secret)),
            )
        case Client.N8N:
            how = f"Bearer, with {_shown(client, secret)}" if secret else "MCP OAuth2"
            return Instructions(
                f"In an MCP Client Tool node: transport HTTP Streamable, authentication {how}, and "
                "this endpoint:",
                _errors(url),
            )
        case Client.CURL:
            body = shlex.quote(json.dumps({"query": "what do I know?", "limit": 5}))
            return Instructions(
                "Run:",
                f"curl -s {url}/api/v1/search "
                f'-H "Authorization: Bearer {_shown(client, secret or VARIABLE)}" '
                f'-H "Content-Type: application/json" -d {body}',
            )


_OPENAI_AGENTS = """\
import os

from agents import Agent
from agents.mcp import MCPServerStreamableHttp

headers = {{"Authorization": {bearer}}}
commonplace = MCPServerStreamableHttp(params={{"url": "{url}", "headers": headers}})
agent = Agent(name="Assistant", mcp_servers=[commonplace])
# Run it within `async with commonplace:`."""
_LANGCHAIN = """\
import os

from langchain_mcp_adapters.client import MultiServerMCPClient

headers = {{"Authorization": {bearer}}}
server = {{"transport": "streamable_http", "url": "{url}", "headers": headers}}
tools = await MultiServerMCPClient({{"commonplace": server}}).get_tools()"""


def toml_table(server: Json) -> str:
    """Return the entry of a client whose configuration is TOML."""
    lines = [f"[mcp_servers.{NAME}]"]
    for key, value in server.items():
        inner = value.items() if isinstance(value, dict) else ()
        table = ", ".join(f"{name} = {json.dumps(each)}" for name, each in inner)
        lines.append(f"{key} = {{ {table} }}" if table else f"{key} = {json.dumps(value)}")
    return "\n".join(lines)


def _shown(client: Client, secret: str) -> str:
    return secret if secret != VARIABLE else _REFERENCES.get(client, f"${VARIABLE}")


def _python(secret: str) -> str:
    if secret not in ("", VARIABLE):
        return f'"Bearer {secret}"'
    return f"f\"Bearer {{os.environ['{VARIABLE}']}}\""


def _errors(url: str) -> str:
    return f"{url}{MCP_PATH}{_ERRORS_AS_RESULTS}"


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
