"""The MCP Inspector, as a person would use it: against a server that runs, with a token."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.interfaces.conformance import node

pytestmark = pytest.mark.slow

COMMAND = ["-c", "from commonplace.interfaces.cli.main import main; main()"]


@dataclass(frozen=True)
class Inspector:
    url: str
    token: str

    def __call__(self, *arguments: str, token: str | None = None) -> tuple[int, Any]:
        header = f"Authorization: Bearer {token or self.token}"
        run = node.run_node(
            node.INSPECTOR, "--cli", self.url, "--transport", "http", "--header", header, *arguments
        )
        return run.returncode, json.loads(run.stdout) if run.stdout.startswith(
            "{"
        ) else run.stdout + run.stderr


@pytest.fixture(scope="module")
def inspector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inspector]:
    node.install()
    folder, port = tmp_path_factory.mktemp("inspector"), node.free_port()
    settings = {"COMMONPLACE_DATA_DIR": str(folder / "data"), "COMMONPLACE_EMBEDDER": "static"}
    created = subprocess.run(
        [sys.executable, *COMMAND, "token", "create", "--name", "inspector", "--write", "--json"],
        env=node.python_environment(settings),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    with (
        (folder / "server.log").open("w") as log,
        node.serving([*COMMAND, "serve", "--port", str(port)], port, log, settings) as address,
    ):
        yield Inspector(f"{address}/mcp", json.loads(created.stdout)["token"])


def test_it_lists_our_tools_and_finds_their_schemas_portable(inspector: Inspector) -> None:
    code, answer = inspector("--method", "tools/list", "--strict")
    assert code == 0, answer
    names = {tool["name"] for tool in answer["tools"]}
    assert names >= {"search_knowledge_base", "add_to_knowledge", "get_item", "list_recent"}


def test_it_adds_and_finds(inspector: Inspector) -> None:
    text = "The tide tables of the harbour are kept by the lighthouse keeper."
    code, added = inspector(
        "--method",
        "tools/call",
        "--tool-name",
        "add_to_knowledge",
        "--tool-arg",
        "kind=text",
        "--tool-arg",
        "title=Tide tables",
        "--tool-arg",
        f"text={text}",
    )
    assert code == 0, added
    code, found = inspector(
        "--method",
        "tools/call",
        "--tool-name",
        "search_knowledge_base",
        "--tool-arg",
        "query=lighthouse keeper",
    )
    assert code == 0, found
    hit = found["structuredContent"]["hits"][0]
    assert (hit["item_id"], hit["text"]) == (added["structuredContent"]["user_item_id"], text)


def test_it_is_kept_out_with_a_wrong_token(inspector: Inspector) -> None:
    code, answer = inspector("--method", "tools/list", token="sk_" + "A" * 43)
    assert code != 0 and "auth_required" in answer, answer
