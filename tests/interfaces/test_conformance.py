"""The public MCP conformance suite against our stack, with the suite's own fixtures in place of our tools."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interfaces.conformance import node

pytestmark = pytest.mark.slow

REQUIRED = {"2026-07-28": ("/mcp", 37), "2025-11-25": ("/sessions", 30)}


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
