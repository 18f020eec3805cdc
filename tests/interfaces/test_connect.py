"""`commonplace connect`: what it prints, and what it changes in clients' files."""

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from commonplace.core.people.client_setup import Client
from commonplace.interfaces.cli.connect import KITS
from commonplace.interfaces.cli.server import server_file
from commonplace.text import jsonc
from tests.interfaces.command import Commands

FILES = {
    "claude-code": (".claude.json", ".mcp.json"),
    "claude-desktop": (".config/Claude/claude_desktop_config.json", None),
    "cursor": (".cursor/mcp.json", ".cursor/mcp.json"),
    "vscode": (".config/Code/User/mcp.json", ".vscode/mcp.json"),
    "codex": (".codex/config.toml", ".codex/config.toml"),
    "gemini": (".gemini/settings.json", ".gemini/settings.json"),
    "opencode": (".config/opencode/opencode.json", "opencode.json"),
}
WITH_HOOKS = ["claude-code", "codex", "cursor", "gemini"]
MEMBER = {"vscode": "servers", "opencode": "mcp"}
JSON = """\
// Mine.
{
  "theme": "dark", /* at night */
  "%s": {
    // The other one
    "other": { "command": "other", "args": ["--url=//x"] }
  },
  "hooks": {
    "SessionStart": [{ "hooks": [{ "type": "command", "command": "echo hello" }] }]
  }
}
"""
TOML = """\
# Mine.
model = "gpt-5"   # the good one

[mcp_servers.other]
command = "other" # keep

# About the profile
[profiles.deep]
model = "o9"
"""


@pytest.fixture
def cli(data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    """With a home and a folder to work in."""
    for name in ("home", "work"):
        (tmp_path / name).mkdir()
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.chdir(tmp_path / "work")
    cli = Commands(data_dir)
    cli.env["HOME"] = str(tmp_path / "home")
    return cli


def file_of(cli: Commands, client: str, scope: str) -> Path:
    user, project = FILES[client]
    if scope == "user":
        return Path(cli.env["HOME"]) / user
    assert project is not None
    return Path.cwd() / project


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def foreign(client: str) -> str:
    return TOML if client == "codex" else JSON % MEMBER.get(client, "mcpServers")


def parsed(path: Path) -> Any:
    return (tomllib.loads if path.suffix == ".toml" else jsonc.loads)(path.read_text())


def ours(path: Path, client: str) -> Any:
    member = "mcp_servers" if client == "codex" else MEMBER.get(client, "mcpServers")
    return parsed(path)[member].get("commonplace")


def tokens(cli: Commands) -> list[Any]:
    return list(cli.json("token", "list")["tokens"])


# -- printing


@pytest.mark.parametrize("client", list(Client))
def test_it_prints_and_makes_no_token(cli: Commands, client: str) -> None:
    said = cli.json("connect", client)
    assert (said["client"], said["token"], said["url"]) == (client, None, "http://127.0.0.1:8642")
    if client not in ("claude-desktop", "curl"):
        assert "http://127.0.0.1:8642/mcp/core" in said["configuration"]
    assert "sk_" not in said["configuration"]
    assert tokens(cli) == []
    assert contents(Path(cli.env["HOME"])) == {}


@pytest.mark.parametrize("client", [each for each in Client if each != "claude-desktop"])
def test_a_token_is_made_on_request_and_stays_out_of_the_configuration(
    cli: Commands, client: str
) -> None:
    said = cli.json("connect", client, "--token")
    assert said["token"] not in said["configuration"]
    assert cli.json("list", "--token", said["token"])["total"] == 0
    assert [(each["name"], each["capabilities"]) for each in tokens(cli)] == [
        (client, ["read", "write"])
    ]
    if client not in ("claude-ai", "n8n"):
        assert "COMMONPLACE_TOKEN" in said["configuration"]


def test_a_token_of_the_environment_is_used(cli: Commands) -> None:
    said = cli.json("token", "create", "--name", "mine", "--write")
    cli.env["COMMONPLACE_TOKEN"] = said["token"]
    assert cli.json("connect", "cursor", "--token")["token"] is None
    del cli.env["COMMONPLACE_TOKEN"]
    assert [each["name"] for each in tokens(cli)] == ["mine"]


def test_a_token_that_can_only_read(cli: Commands) -> None:
    cli.text("connect", "codex", "--token", "--read-only")
    assert [each["capabilities"] for each in tokens(cli)] == [["read"]]
    assert "add --token" in cli.fails("connect", "claude-desktop", "--read-only")


def test_errors_arrive_as_results_in_frameworks_that_hide_them(cli: Commands) -> None:
    for client in ("openai-agents", "langchain", "n8n"):
        lines = cli.json("connect", client)["configuration"]
        assert "/mcp/core?errors=result" in lines
        if client != "n8n":
            compile(lines, client, "exec", flags=0x2000)  # top-level await is allowed


def test_claude_desktop_starts_the_command_on_this_data_folder(
    cli: Commands, data_dir: Path
) -> None:
    server = json.loads(cli.text("connect", "claude-desktop"))["mcpServers"]["commonplace"]
    assert server["args"] == ["mcp"]
    assert Path(server["command"]).is_absolute() and Path(server["command"]).is_file()
    assert server["env"] == {
        "COMMONPLACE_DATA_DIR": str(data_dir),
        "COMMONPLACE_EMBEDDER": "static",
    }
    said = cli.json("connect", "claude-desktop", "--token", "--read-only")
    server = json.loads(said["configuration"])["mcpServers"]["commonplace"]
    assert server["env"]["COMMONPLACE_TOKEN"] == said["token"]
    assert [each["capabilities"] for each in tokens(cli)] == [["read"]]


def test_a_token_in_the_file_of_claude_desktop_is_for_its_owner_alone(cli: Commands) -> None:
    path = file_of(cli, "claude-desktop", "user")
    secret = cli.json("connect", "claude-desktop", "--token", "--write")["token"]
    assert secret in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600


def test_it_names_the_server_that_runs_else_that_of_the_settings(
    cli: Commands, data_dir: Path
) -> None:
    data_dir.mkdir(exist_ok=True)
    (data_dir / "server.json").write_text('{"url": "http://127.0.0.1:9", "pid": 1}')
    result = cli.run("connect", "cursor")
    assert "http://127.0.0.1:9/mcp/core" in result.stdout
    assert "No server answers at http://127.0.0.1:9." in result.stderr
    assert cli.json("user", "link")["link"].startswith("http://127.0.0.1:9/claim/")
    (data_dir / "server.json").write_text("{garbage")
    assert "http://127.0.0.1:8642/mcp/core" in cli.text("connect", "cursor")
    cli.env["COMMONPLACE_PUBLIC_URL"] = "https://kb.invalid/"
    assert "https://kb.invalid/mcp/core" in cli.text("connect", "cursor")
    cli.env["COMMONPLACE_URL"] = "http://127.0.0.1:7/"
    assert "http://127.0.0.1:7/mcp/core" in cli.text("connect", "cursor")


def test_a_server_runs_where_it_cannot_say_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with server_file(tmp_path / "file" / "data", "http://127.0.0.1:9"):
        pass
    with server_file(tmp_path / "new", "http://127.0.0.1:9"):
        assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
        (tmp_path / "new" / "server.json").write_text('{"url": "another", "pid": 1}')
    assert (tmp_path / "new" / "server.json").exists()


# -- changing files


@pytest.mark.parametrize("scope", ["user", "project"])
@pytest.mark.parametrize("client", FILES)
def test_new_files_come_and_go(cli: Commands, client: str, scope: str) -> None:
    if scope == "project" and client == "claude-desktop":
        assert "has no file" in cli.fails("connect", client, "--scope", scope, "--write")
        return
    options = ["connect", client, "--scope", scope, "--skills"]
    if client in WITH_HOOKS:
        options += ["--hooks", "--token"]
    done = cli.json(*options, "--write")
    path = file_of(cli, client, scope)
    assert {each["action"] for each in done["files"]} == {"created"}
    assert str(path) in {each["path"] for each in done["files"]}
    assert "8642/mcp/core" in json.dumps(ours(path, client)) or client == "claude-desktop"
    for folder in (Path(cli.env["HOME"]), Path.cwd()):
        for content in contents(folder).values():
            assert done["token"] is None or done["token"].encode() not in content
    cli.env["COMMONPLACE_TOKEN"] = done["token"] or ""
    again = cli.json(*options, "--write")
    assert {each["action"] for each in again["files"]} == {"unchanged"}
    gone = cli.json("connect", client, "--scope", scope, "--remove")
    assert {each["action"] for each in gone["files"]} == {"removed"}
    assert contents(Path(cli.env["HOME"])) == contents(Path.cwd()) == {}
    assert cli.json("connect", client, "--scope", scope, "--remove")["files"] == []


@pytest.mark.parametrize("client", FILES)
def test_what_was_there_stays_and_comes_back_byte_for_byte(cli: Commands, client: str) -> None:
    path, text = file_of(cli, client, "user"), foreign(client)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o640)
    cli.text("connect", client, "--write")
    assert ours(path, client)
    assert path.stat().st_mode & 0o777 == 0o640
    changed = path.read_text().splitlines()
    assert [line.rstrip(",") for line in text.splitlines() if line.rstrip(",") not in
            [each.rstrip(",") for each in changed]] == []  # fmt: skip
    backup = path.with_name(path.name + ".commonplace.bak")
    assert backup.read_text() == text
    cli.text("connect", client, "--write", "--token")  # changes the entry, keeps the backup
    assert backup.read_text() == text or client == "claude-desktop"
    cli.text("connect", client, "--remove")
    assert (path.read_text(), backup.exists()) == (text, False)


@pytest.mark.parametrize("client", FILES)
def test_changes_of_others_survive_removal(cli: Commands, client: str) -> None:
    path, text = file_of(cli, client, "user"), foreign(client)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    before = parsed(path)
    cli.text("connect", client, "--write")
    path.write_text(path.read_text().replace("Mine.", "Still mine."))
    cli.text("connect", client, "--write", "--token")
    cli.text("connect", client, "--remove")
    assert parsed(path) == before
    assert "Still mine." in path.read_text()
    assert "commonplace" not in path.read_text()


@pytest.mark.parametrize("client", WITH_HOOKS)
def test_hooks_of_others_stay(cli: Commands, client: str) -> None:
    cli.text("connect", client, "--write", "--hooks", "--token")
    event = "sessionStart" if client == "cursor" else "SessionStart"
    home = Path(cli.env["HOME"])
    path = {
        "claude-code": home / ".claude/settings.json",
        "gemini": home / ".gemini/settings.json",
    }.get(client, home / f".{client}" / "hooks.json")
    assert "-P -m commonplace.hooks" in path.read_text()
    cli.text("connect", client, "--remove")
    assert not path.exists()
    path.parent.mkdir(exist_ok=True)
    path.write_text(JSON.replace("SessionStart", event) % "x")
    cli.env["COMMONPLACE_TOKEN"] = "sk_mine"
    cli.text("connect", client, "--write", "--hooks", "--project", "It's a name")
    assert len(parsed(path)["hooks"][event]) == 2
    assert "It's a name" in json.dumps(parsed(path)).replace("'\\\"'\\\"'", "'")
    path.write_text(path.read_text() + "\n")
    cli.text("connect", client, "--remove")
    assert len(parsed(path)["hooks"][event]) == 1
    assert "// The other one" in path.read_text()


def test_hooks_need_a_token_that_writes_and_a_client_that_has_them(cli: Commands) -> None:
    assert "add --token" in cli.fails("connect", "claude-code", "--hooks", "--write")
    assert "can write" in cli.fails("connect", "codex", "--hooks", "--token", "--read-only")
    assert "has no hooks" in cli.fails("connect", "vscode", "--hooks", "--token")
    assert tokens(cli) == []


def test_hooks_call_the_server_that_was_named(cli: Commands) -> None:
    cli.env["COMMONPLACE_URL"] = "http://127.0.0.1:7"
    result = cli.run("connect", "codex", "--write", "--hooks", "--token")
    assert "review ours with /hooks" in result.stderr
    path = Path(cli.env["HOME"]) / ".codex" / "hooks.json"
    assert "--url http://127.0.0.1:7" in path.read_text()
    cli.text("connect", "codex", "--remove")
    assert not path.exists()


def test_the_token_of_hooks_is_private(cli: Commands, data_dir: Path) -> None:
    secret = cli.json("connect", "claude-code", "--hooks", "--token", "--write")["token"]
    kept = data_dir / "hook-token"
    assert kept.read_text().strip() == secret
    assert kept.stat().st_mode & 0o777 == 0o600


def test_a_dry_run_changes_nothing(cli: Commands) -> None:
    path = file_of(cli, "cursor", "user")
    path.parent.mkdir()
    path.write_text(JSON % "mcpServers")
    before = contents(Path(cli.env["HOME"]))
    said = cli.text("connect", "cursor", "--write", "--hooks", "--token", "--dry-run")
    assert '+    "commonplace": {' in said
    assert contents(Path(cli.env["HOME"])) == before
    assert tokens(cli) == []
    cli.text("connect", "cursor", "--write")
    before = contents(Path(cli.env["HOME"]))
    assert '-    "commonplace": {' in cli.text("connect", "cursor", "--remove", "--dry-run")
    assert contents(Path(cli.env["HOME"])) == before


def test_instructions_stand_between_markers(cli: Commands) -> None:
    path = Path.cwd() / "AGENTS.md"
    path.write_text("# Rules\n\nBe kind.\n")
    cli.text("connect", "opencode", "--scope", "project", "--skills", "--write")
    assert path.read_text().startswith("# Rules\n\nBe kind.\n\n<!-- commonplace:begin -->\n")
    path.write_text(path.read_text() + "\nMore.\n")
    cli.text("connect", "opencode", "--scope", "project", "--remove")
    assert path.read_text() == "# Rules\n\nBe kind.\n\nMore.\n"


def test_a_skill_that_somebody_changed_stays(cli: Commands) -> None:
    cli.text("connect", "claude-code", "--skills", "--write")
    skill = Path(cli.env["HOME"]) / ".claude/skills/commonplace/SKILL.md"
    skill.write_text(skill.read_text() + "\nMy own rule.\n")
    cli.text("connect", "claude-code", "--remove")
    assert "My own rule." in skill.read_text()


@pytest.mark.parametrize(
    ("client", "text"),
    [
        ("cursor", '{"mcpServers": {'),
        ("cursor", '{"mcpServers": []}'),
        ("cursor", b"\xff\xfe"),
        ("codex", "[mcp_servers"),
        ("codex", 'mcp_servers = { commonplace = { url = "x" } }'),
        ("codex", 'text = """\n[mcp_servers.commonplace]\n"""\n'),
        ("codex", 'text = """\n[mcp_servers.commonplace]\n[x]\n"""\n'),
    ],
)
def test_files_that_it_does_not_understand_stay(
    cli: Commands, client: str, text: str | bytes
) -> None:
    path = file_of(cli, client, "user")
    path.parent.mkdir(parents=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    before = path.read_bytes()
    result = cli.run("connect", client, "--write")
    assert (result.exit_code, path.read_bytes()) == (1, before) or ours(path, client)
    assert result.exit_code == 0 or "Nothing was changed in it" in result.stderr
    if result.exit_code:
        cli.run("connect", client, "--remove")
        assert path.read_bytes() == before


def test_codex_keeps_tables_around_ours(cli: Commands) -> None:
    path = file_of(cli, "codex", "user")
    path.parent.mkdir()
    path.write_text(
        TOML.replace(
            "[mcp_servers.other]",
            '[mcp_servers.commonplace]\nurl = "old"\n\n[mcp_servers.commonplace.tools.x]\n'
            'approval = "auto"\n\n[mcp_servers.other]',
        )
    )
    cli.text("connect", "codex", "--write", "--token")
    server = ours(path, "codex")
    assert server["bearer_token_env_var"] == "COMMONPLACE_TOKEN"
    assert server["tools"] == {"x": {"approval": "auto"}}
    path.write_text(path.read_text() + "\n# more\n")
    cli.text("connect", "codex", "--remove")
    assert tomllib.loads(path.read_text()) == tomllib.loads(TOML)
    assert path.read_text() == TOML + "\n# more\n"


def test_a_link_stays_a_link(cli: Commands, tmp_path: Path) -> None:
    path, real = file_of(cli, "gemini", "user"), tmp_path / "dotfiles.json"
    path.parent.mkdir()
    real.write_text("{}")
    path.symlink_to(real)
    cli.text("connect", "gemini", "--write")
    assert path.is_symlink() and "commonplace" in real.read_text()
    cli.text("connect", "gemini", "--remove")
    assert path.is_symlink() and real.read_text() == "{}"


def test_clients_may_keep_their_files_elsewhere(
    cli: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for client in ("codex", "claude-code", "opencode"):
        cli.text("connect", client, "--write", "--skills")
    assert (tmp_path / "codex" / "config.toml").exists()
    assert (tmp_path / "claude" / ".claude.json").exists()
    assert (tmp_path / "config" / "opencode" / "opencode.json").exists()
    assert contents(Path(cli.env["HOME"])) == {}


# -- the kits


def test_the_kits_are_short_and_whole() -> None:
    plugin = KITS / "claude-code"
    skill = (plugin / "skills/commonplace/SKILL.md").read_text()
    assert len(skill) / 4 <= 600  # tokens, at four characters each
    assert len((KITS / "agents.md").read_text()) / 4 <= 200
    rule = (KITS / "cursor-rule.mdc").read_text()
    assert (KITS / "agents.md").read_text().splitlines()[1:-1] == rule.splitlines()[5:]
    assert {path.stem for path in (plugin / "commands").iterdir()} == {
        "start",
        "recall",
        "decide",
        "wrap-up",
    }
    market = json.loads((KITS / ".claude-plugin/marketplace.json").read_text())
    [listed] = market["plugins"]
    named = json.loads((KITS / listed["source"] / ".claude-plugin/plugin.json").read_text())
    assert named["name"] == listed["name"] == "commonplace"
    hooks = json.loads((plugin / "hooks/hooks.json").read_text())["hooks"]
    assert set(hooks) == {"SessionStart", "PreCompact", "SessionEnd"}
    assert os.linesep not in json.dumps(hooks)
