"""Snapshots of the public surface: tool lists, OpenAPI and command help.

A refactoring leaves them as they are. After an intended change, write them anew with
`UPDATE_GOLDENS=1 .venv/bin/pytest tests/faces/test_goldens.py` and review the diff.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import typer

from commonplace.faces.cli.main import app as command_line
from commonplace.faces.rest.docs import openapi
from tests.faces.command import Commands
from tests.faces.house import House, rpc

GOLDENS = Path(__file__).parents[1] / "goldens"
ENDPOINTS = ("/mcp", "/mcp/knowledge", "/mcp/graph", "/mcp/disks")
PLAIN = {"TERMINAL_WIDTH": "100", "COLUMNS": "100", "TERM": "dumb"}


@pytest.fixture
def commands(data_dir: Path) -> Commands:
    return Commands(data_dir)


def check(name: str, value: Any) -> None:
    path = GOLDENS / name
    text = value if isinstance(value, str) else json.dumps(value, indent=1, ensure_ascii=False)
    text = text.rstrip("\n") + "\n"
    if os.environ.get("UPDATE_GOLDENS"):
        path.write_text(text)
    assert text == path.read_text(), f"{name} changed; see the head of this file"


@pytest.mark.anyio
async def test_the_tool_lists_are_as_recorded(house: House) -> None:
    async with house.client("owner") as client:
        lists = {path: (await rpc(client, "tools/list", path=path))["result"] for path in ENDPOINTS}
    check("tools.json", lists)


@pytest.mark.anyio
async def test_the_rest_schema_is_as_recorded(house: House) -> None:
    check("openapi.json", openapi(house.asgi))


def test_the_help_of_every_command_is_as_recorded(commands: Commands) -> None:
    def paths(command: Any, path: tuple[str, ...]) -> list[tuple[str, ...]]:
        inner = sorted(getattr(command, "commands", {}).items())
        return [path, *(found for name, child in inner for found in paths(child, (*path, name)))]

    pages = [f"$ commonplace {' '.join(path)} --help\n{commands.run(*path, '--help', env=PLAIN).stdout}"
             for path in paths(typer.main.get_command(command_line), ())]
    check("help.txt", "\n".join(pages))
