"""The real Claude Code, Codex and OpenCode read what `connect --write` made, and reach the server.

They take 900 MB, so they are not installed with everything else:

    mkdir -p .cache/coding_agents && cp tests/interfaces/clients/coding_agents/* .cache/coding_agents
    npm ci --ignore-scripts --prefix .cache/coding_agents
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

from commonplace.interfaces.cli.connect import KITS
from tests.interfaces.command import Commands
from tests.interfaces.live import live_house

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
MODULES = ROOT / ".cache" / "coding_agents" / "node_modules"
PROGRAMS = {
    "claude-code": "@anthropic-ai/claude-code-*/claude",
    "codex": "@openai/codex-*/vendor/*/bin/codex",
    "opencode": "opencode-*/bin/opencode",
}
QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "NO_COLOR": "1",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
}
SIGNED_OUT = {
    "claude-code": "Needs authentication",
    "codex": "Not logged in",
    "opencode": "needs authentication",
}
SIGNED_IN = {"claude-code": "Connected", "codex": "Bearer token", "opencode": "connected"}


def program(client: str) -> Path:
    found = sorted(MODULES.glob(PROGRAMS[client]))
    if not found:
        pytest.skip(f"{client} is not installed in .cache/coding_agents")
    return found[0]


def run(command: Path, *arguments: object, **env: str) -> str:
    inherited = {name: value for name, value in os.environ.items() if "COMMONPLACE" not in name}
    done = subprocess.run(
        [command, *map(str, arguments)],
        env=inherited | QUIET | env,
        cwd=env["HOME"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)


@pytest.mark.parametrize("client", PROGRAMS)
def test_the_client_reads_its_configuration_and_reaches_the_server(
    client: str, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = program(client)
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    with live_house(data_dir, oauth_client_documents=False) as (address, house):
        cli = Commands(tmp_path / "data", url=address)
        cli.env["HOME"] = str(tmp_path)
        cli.text("connect", client, "--write")
        assert SIGNED_OUT[client] in run(command, "mcp", "list", HOME=str(tmp_path))
        token = {"COMMONPLACE_TOKEN": house.tokens["owner"]}
        cli.env |= token
        cli.text("connect", client, "--write", "--token")
        listed = run(command, "mcp", "list", HOME=str(tmp_path), **token)
        assert SIGNED_IN[client] in listed and f"{address}/mcp/core" in listed
        cli.text("connect", client, "--remove")
        assert address not in run(command, "mcp", "list", HOME=str(tmp_path))


def test_claude_code_accepts_the_plugin(tmp_path: Path) -> None:
    for folder in (KITS, KITS / "claude-code"):
        said = run(program("claude-code"), "plugin", "validate", folder, HOME=str(tmp_path))
        assert "Validation passed" in said
