"""connect: print how to connect a client, or change its configuration."""

import os
import shlex
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import commonplace
from commonplace import hooks
from commonplace.core.people.client_setup import (
    NAME,
    NEED_TOKENS,
    PLACEHOLDER,
    VARIABLE,
    Client,
    Instructions,
    address,
    entry,
    instructions,
)
from commonplace.core.people.tokens import NewToken
from commonplace.errors import Invalid
from commonplace.interfaces.cli import output
from commonplace.interfaces.cli.client_files import (
    Block,
    Change,
    ClientFiles,
    Edit,
    HookElement,
    McpTable,
    Member,
    Whole,
    write_private,
)
from commonplace.interfaces.cli.command import CommandContext, Commands
from commonplace.model import Json
from commonplace.settings import Settings

KITS = Path(commonplace.__file__).parent / "kits"
READY_SECONDS = 2.0
TO_SEND = 15  # seconds that a client gives the hooks that send; they give up after 10

Files = Iterator[tuple[Path, Edit]]


class Place(StrEnum):
    USER = "user"
    PROJECT = "project"


async def connect(
    context: CommandContext,
    client: Annotated[
        Client | None,
        typer.Argument(help="The client to connect. Default: list them.", show_default=False),
    ] = None,
    with_hooks: Annotated[
        bool,
        typer.Option(
            "--hooks",
            help="Also hooks: sessions start with what is known, and end up in the review queue.",
        ),
    ] = False,
    skills: Annotated[
        bool, typer.Option("--skills", help="Also instructions that tell the agent when to use it.")
    ] = False,
    project: Annotated[
        str | None,
        typer.Option(
            help="Project (id, title or repository URL) of the hooks. Default: that of the "
            "folder's git remote.",
            show_default=False,
        ),
    ] = None,
    scope: Annotated[
        Place, typer.Option(help="The client's configuration for you, or for this folder.")
    ] = Place.USER,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="With --token: create one that can only read.")
    ] = False,
    token: Annotated[
        bool,
        typer.Option(
            "--token/--oauth",
            help="Create a token for COMMONPLACE_TOKEN, or sign in with a browser.",
        ),
    ] = False,
    write: Annotated[
        bool, typer.Option("--write", help="Change the client's files instead of printing.")
    ] = False,
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove our entries from the client's files.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")
    ] = False,
) -> None:
    """Print how to connect a client, or change its configuration. Creates a token only with
    --token; otherwise the client signs in with OAuth."""
    if client is None:
        context.show({"clients": [*Client]}, "\n".join(Client))
        output.note("\nConnect one of them: commonplace connect CLIENT")
        return
    kit = Kit(client, scope, context.settings, project)
    if remove:
        _report(context, kit, [*kit.remove(dry_run)], dry_run)
        return
    if write and not kit.has_file:
        raise Invalid(f"{client} has no file to change. Leave out --write to see what to do.")
    if with_hooks and not kit.hook_events:
        raise Invalid(f"{client} has no hooks. claude-code, codex, cursor and gemini have.")
    if with_hooks and not (token or context.token):
        raise Invalid(f"Hooks call REST, which needs a token: add --token, or set {VARIABLE}.")
    if read_only and with_hooks:
        raise Invalid("Hooks queue memories for review, which needs a token that can write.")
    if read_only and client is Client.CLAUDE_DESKTOP and not token:
        raise Invalid("Claude Desktop acts as the owner without a token: add --token.")
    url = find_server(context.settings)
    if with_hooks and client is Client.CODEX and not context.as_json:
        output.note(
            "Codex runs only hooks that you trust: start it, and review ours with /hooks.\n"
        )
    secret = None
    if token and not dry_run and not context.token:
        async with context.open() as (services, caller):
            _, secret = await services.people.create_token(
                caller, NewToken(client, write=not read_only)
            )
    reference = VARIABLE if token else ""
    if token and client is Client.CLAUDE_DESKTOP:  # its configuration cannot name variables
        reference = secret or context.token or PLACEHOLDER
    extras = [*kit.extras(with_hooks, skills)]
    if write or dry_run:
        files = ClientFiles(context.settings.data_dir, dry_run)
        edits = _by_file([*kit.server(url, reference), *extras])
        private = client is Client.CLAUDE_DESKTOP and token
        changes = [files.put(path, each, private) for path, each in edits.items()]
        if with_hooks and secret:
            write_private(context.settings.data_dir / hooks.TOKEN_FILE, f"{secret}\n".encode())
        _report(context, kit, changes, dry_run, secret)
        if not dry_run:
            _show_sign_in(context, instructions(client, url, reference, context.settings))
        return
    made = instructions(client, url, reference, context.settings)
    lines = made.lines
    for path, each in _by_file(extras).items():
        lines += f"\n\n# {path}\n{_applied(each).rstrip()}"
    if not context.as_json:
        output.note(made.where)
    _show_token(context, client, secret, read_only)
    answer = {"client": client, "url": url, "where": made.where, "configuration": lines}
    context.show(answer | {"sign_in": made.sign_in or made.then, "token": secret}, lines)
    _show_sign_in(context, made)


def find_server(settings: Settings) -> str:
    """Return the URL of the server, and warn if it does not answer."""
    url, problem = check_server(settings)
    if problem:
        output.note(problem)
    return url


def check_server(settings: Settings) -> tuple[str, str]:
    """Return the URL of the server, and what is wrong with it, if anything."""
    running = hooks.server_url(settings.data_dir)
    url = (settings.url or running or address(settings)).rstrip("/")
    try:
        with hooks.opener(url).open(f"{url}/readyz", timeout=READY_SECONDS):
            return url, ""
    except urllib.error.HTTPError:
        return url, f"The server at {url} is not ready. See: commonplace doctor"
    except (OSError, ValueError):
        return url, f"No server answers at {url}. Start it: commonplace serve"


class Kit:
    """The files of a client, and what belongs into them."""

    def __init__(
        self, client: Client, scope: Place, settings: Settings, project: str | None
    ) -> None:
        self.client, self._settings, self._project = client, settings, project
        self._user = scope is Place.USER
        self._home = Path.home() if self._user else Path.cwd()
        self.file = self._configuration()
        self.has_file = self.file is not None
        self.hook_events = HOOKS.get(client)

    def server(self, url: str, secret: str) -> Files:
        if self.file:
            server = entry(self.client, url, secret, self._settings)
            if self.client is Client.CODEX:
                yield self.file, McpTable(server)
            else:
                yield self.file, Member((MEMBERS.get(self.client, "mcpServers"), NAME), server)

    def extras(self, with_hooks: bool, skills: bool) -> Files:
        if with_hooks:
            yield from self._hooks()
        if skills:
            yield from self._skills()

    def remove(self, dry_run: bool) -> Iterator[Change]:
        files = ClientFiles(self._settings.data_dir, dry_run)
        edits = [*self.server("", ""), *self.extras(bool(self.hook_events), True)]
        for path, each in _by_file(edits).items():
            if change := files.take(path, each):
                yield change

    def _configuration(self) -> Path | None:
        home = self._home
        match self.client:
            case Client.CLAUDE_CODE if self._user:
                return Path(os.environ.get("CLAUDE_CONFIG_DIR") or home) / ".claude.json"
            case Client.CLAUDE_CODE:
                return home / ".mcp.json"
            case Client.CLAUDE_DESKTOP if self._user:
                return _applications(home) / "Claude" / "claude_desktop_config.json"
            case Client.CURSOR:
                return home / ".cursor" / "mcp.json"
            case Client.VSCODE if self._user:
                return _applications(home) / "Code" / "User" / "mcp.json"
            case Client.VSCODE:
                return home / ".vscode" / "mcp.json"
            case Client.CODEX:
                return self._codex() / "config.toml"
            case Client.GEMINI:
                return home / ".gemini" / "settings.json"
            case Client.OPENCODE:
                folder = self._opencode()
                commented = folder / "opencode.jsonc"
                return commented if commented.exists() else folder / "opencode.json"
        return None

    def _codex(self) -> Path:
        own = os.environ.get("CODEX_HOME") if self._user else None
        return Path(own) if own else self._home / ".codex"

    def _opencode(self) -> Path:
        if not self._user:
            return self._home
        return Path(os.environ.get("XDG_CONFIG_HOME") or self._home / ".config") / "opencode"

    def _claude(self) -> Path:
        own = os.environ.get("CLAUDE_CONFIG_DIR") if self._user else None
        return Path(own) if own else self._home / ".claude"

    def _hooks(self) -> Files:
        # -P: a program in the folder that the agent works in must not pass for ours.
        words = [sys.executable, "-P", "-m", "commonplace.hooks", "--client", self.client]
        words += ["--data-dir", str(self._settings.data_dir.absolute())]
        words += ["--url", self._settings.url] if self._settings.url else []
        words += ["--project", self._project] if self._project else []
        command = shlex.join(words)
        for event in self.hook_events or ():
            seconds = 5 if event.lower() in hooks.START else TO_SEND
            if self.client is Client.CURSOR:
                path, value = self._home / ".cursor" / "hooks.json", {"command": command}
                yield path, Member(("version",), 1)
                yield path, HookElement(("hooks", event), value)
                continue
            timeout = seconds * 1000 if self.client is Client.GEMINI else seconds
            hook: Json = {"type": "command", "command": command, "timeout": timeout}
            path = {
                Client.CLAUDE_CODE: self._claude() / "settings.json",
                Client.CODEX: self._codex() / "hooks.json",
            }.get(self.client, self._home / ".gemini" / "settings.json")
            yield path, HookElement(("hooks", event), {"hooks": [hook]})

    def _skills(self) -> Files:
        kit = KITS / "claude-code"
        block = (KITS / "agents.md").read_text()
        match self.client:
            case Client.CLAUDE_CODE:
                skill = Path("skills", NAME, "SKILL.md")
                yield self._claude() / skill, Whole((kit / skill).read_text())
                for command in sorted((kit / "commands").iterdir()):
                    path = self._claude() / "commands" / NAME / command.name
                    yield path, Whole(command.read_text())
            case Client.CURSOR:
                path = self._home / ".cursor" / "rules" / f"{NAME}.mdc"
                yield path, Whole((KITS / "cursor-rule.mdc").read_text())
            case Client.CODEX:
                own = self._codex() if self._user else self._home
                yield own / "AGENTS.md", Block(block)
            case Client.GEMINI:
                own = self._home / ".gemini" if self._user else self._home
                yield own / "GEMINI.md", Block(block)
            case Client.OPENCODE:
                yield self._opencode() / "AGENTS.md", Block(block)
            case Client.VSCODE if not self._user:
                yield self._home / "AGENTS.md", Block(block)


MEMBERS = {Client.VSCODE: "servers", Client.OPENCODE: "mcp"}
HOOKS = {
    Client.CLAUDE_CODE: ("SessionStart", "PreCompact", "SessionEnd"),
    Client.CODEX: ("SessionStart", "PreCompact", "Stop"),
    Client.CURSOR: ("sessionStart", "preCompact", "sessionEnd"),
    Client.GEMINI: ("SessionStart", "PreCompress", "SessionEnd"),
}


def _applications(home: Path) -> Path:
    """Return the folder for settings of desktop programs."""
    if sys.platform == "darwin":
        return home / "Library" / "Application Support"
    return Path(os.environ.get("APPDATA") or os.environ.get("XDG_CONFIG_HOME") or home / ".config")


def _by_file(edits: list[tuple[Path, Edit]]) -> dict[Path, list[Edit]]:
    files: dict[Path, list[Edit]] = {}
    for path, edit in edits:
        files.setdefault(path, []).append(edit)
    return files


def _applied(edits: list[Edit]) -> str:
    text = ""
    for edit in edits:
        text = edit.put(text)
    return text


def _show_token(
    context: CommandContext, client: Client, secret: str | None, read_only: bool
) -> None:
    if context.as_json:
        return
    if secret and client is not Client.CLAUDE_DESKTOP:
        output.note(f"Your token, shown this once. The client reads it from {VARIABLE}:")
        output.note(f"  export {VARIABLE}={secret}\n")
    elif not context.token and client in NEED_TOKENS:
        output.note(f"It needs a token in {VARIABLE}: add --token to create one.\n")
    elif read_only and not secret:
        output.note("Choose *Read only* on the page where you sign in.\n")


def _show_sign_in(context: CommandContext, made: Instructions) -> None:
    if not context.as_json and made.sign_in:
        output.note(f"\nThen sign in with your browser:\n  {made.sign_in}")
    elif not context.as_json and made.then:
        output.note(f"\n{made.then}")


def _report(
    context: CommandContext,
    kit: Kit,
    changes: list[Change],
    dry_run: bool,
    secret: str | None = None,
) -> None:
    _show_token(context, kit.client, secret, False)
    files: list[Json] = [
        {"path": str(each.path), "action": each.action, "diff": each.diff} for each in changes
    ]
    lines = [f"{each.action}: {each.path}" for each in changes]
    if dry_run:
        lines = [each.diff.rstrip("\n") or f"unchanged: {each.path}" for each in changes]
    context.show(
        {"client": kit.client, "dry_run": dry_run, "files": files, "token": secret},
        "\n".join(lines) or f"{kit.client} has no entry of ours.",
    )


COMMANDS: Commands = {"connect": connect}
