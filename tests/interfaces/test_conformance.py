"""The public MCP conformance suite against our stack, with the suite's own fixtures in place of our tools."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interfaces.conformance import node

pytestmark = pytest.mark.slow

REQUIRED = {"2026-07-28": ("/mcp", 37), "2025-11-25": ("/sessions", 30)}
# Those that ask for no tool, resource or prompt of the suite's own.
OURS = {
    "2026-07-28": ("tools-list", "resources-list", "prompts-list", "sep-2164-resource-not-found"),
    "2025-11-25": ("server-initialize", "tools-list", "resources-list", "prompts-list"),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    node.install()
    port = node.free_port()
    with (
        (tmp_path_factory.mktemp("conformance") / "server.log").open("w") as log,
        node.serving([node.HERE / "server.py", str(port)], port, log) as address,
    ):
        yield address


@pytest.mark.parametrize("revision", REQUIRED)
def test_all_required_scenarios_pass(server: str, revision: str, tmp_path: Path) -> None:
    path, count = REQUIRED[revision]
    listed = node.run_node(node.CONFORMANCE, "list", "--server", "--requirements", revision).stdout
    required = re.findall(r"^  - (\S+)$", listed.partition("Client scenarios")[0], re.MULTILINE)
    assert len(required) == count
    run = node.run_node(
        node.CONFORMANCE,
        "server",
        "--url",
        server + path,
        "--requirements",
        revision,
        "-o",
        tmp_path,
    )
    passed = set(re.findall(r"^✓ (\S+): [1-9]\d* passed, 0 failed", run.stdout, re.MULTILINE))
    assert set(required) - passed == set(), run.stdout[-6000:]
    assert run.returncode == 0


@pytest.mark.parametrize(
    ("revision", "scenario"), [(each, name) for each, names in OURS.items() for name in names]
)
def test_our_own_handlers_pass(server: str, revision: str, scenario: str, tmp_path: Path) -> None:
    run = node.run_node(
        node.CONFORMANCE,
        "server",
        "--url",
        f"{server}/library",
        "--scenario",
        scenario,
        "--spec-version",
        revision,
        "-o",
        tmp_path,
    )
    assert re.search(r"Passed: ([1-9]\d*)/\1, 0 failed", run.stdout), run.stdout[-6000:]
    assert run.returncode == 0
