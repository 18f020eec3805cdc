"""Snapshots of the public surface: tool lists, OpenAPI, command help and sample answers.

A refactoring leaves them as they are. After an intended change, write them anew with
`UPDATE_GOLDENS=1 .venv/bin/pytest tests/interfaces/test_goldens.py` and review the diff.
"""

import asyncio
import json
import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from commonplace.interfaces.cli.main import app as command_line
from commonplace.interfaces.rest.openapi import openapi
from tests.interfaces.command import Commands
from tests.interfaces.house import House, call_tool, open_house, rpc

GOLDENS = Path(__file__).parents[1] / "goldens"
ENDPOINTS = ("/mcp", "/mcp/knowledge", "/mcp/graph", "/mcp/disks", "/mcp/core")
PLAIN = {"TERMINAL_WIDTH": "100", "COLUMNS": "100", "TERM": "dumb"}

TIDES = (
    "# Causes\n\nThe moon pulls the sea twice a day.\n\n"
    "# Tables\n\nHarbours keep tables of when the water is high."
)
RYE = "Rye dough is sticky: wet your hands, and let the loaf rest for a day."
ENTITIES: dict[str, dict[str, Any]] = {
    "project": {"title": "Harbour", "content": "Open the harbour again.", "entity_type": "project"},
    "epic": {
        "title": "Basin",
        "content": "A basin for large ships.",
        "entity_type": "epic",
        "project": "{project}",
    },
    "dredge": {
        "title": "Dredge the basin",
        "content": "Remove the mud.",
        "entity_type": "task",
        "project": "{project}",
        "epic": "{epic}",
        "priority": "high",
        "due_date": "2026-01-09",
    },
    "buoys": {
        "title": "Set the buoys",
        "content": "Mark the way in.",
        "entity_type": "task",
        "project": "{project}",
        "depends_on": ["{dredge}"],
        "assignees": ["alice"],
    },
    "decision": {
        "title": "Use steel buoys",
        "content": "Steel lasts longer than plastic.",
        "entity_type": "decision",
        "project": "{project}",
        "tags": ["buoys"],
    },
}
# Who asks for what, in this order; changes come last. {names} stand for ids.
REST: list[tuple[str | None, str, str, Any]] = [
    ("owner", "GET", "/api/v1/items?per_page=3", None),
    ("owner", "GET", "/api/v1/items/{tides}", None),
    ("reader", "POST", "/api/v1/search", {"query": "when is the water high", "limit": 2}),
    ("one_folder", "POST", "/api/v1/search", {"query": "sticky dough", "mode": "keyword"}),
    ("owner", "GET", "/api/v1/folders", None),
    ("owner", "GET", "/api/tasks/next", None),
    ("owner", "GET", "/api/explore?mode=dependencies&entity_id={buoys}", None),
    ("owner", "GET", "/api/v1/disks?limit=2", None),
    ("owner", "POST", "/api/v1/memory/context", {"goal": "Order buoys", "project": "{project}"}),
    (None, "GET", "/api/v1/items", None),
    ("reader", "POST", "/api/v1/ingest", {"kind": "text", "title": "Rye", "text": RYE}),
    ("one_folder", "GET", "/api/v1/items/{rye}", None),
    ("owner", "POST", "/api/v1/search", {"query": "tide", "limit": 0}),
    ("owner", "PATCH", "/api/v1/items/{rye}", {"tags": ["bread"], "expected_revision": 9}),
    ("one_folder", "POST", "/api/v1/ingest", {"kind": "text", "title": "Salt", "text": RYE + RYE}),
    ("owner", "POST", "/api/tasks/{dredge}/start", {}),
]
MCP: list[tuple[str, str, dict[str, Any]]] = [
    ("owner", "search_knowledge_base", {"query": "when is the water high", "limit": 2}),
    ("owner", "get_item", {"item_id": "{tides}"}),
    ("owner", "list_recent", {"limit": 3}),
    ("owner", "search", {"query": "steel buoys", "types": ["decision", "task"]}),
    ("owner", "fetch", {"id": "{decision}"}),
    ("owner", "explore", {"mode": "related", "entity_id": "{dredge}"}),
    ("owner", "context", {"goal": "Order new buoys", "project": "{project}"}),
    ("owner", "search_knowledge", {"query": "sticky dough", "limit": 1}),
    ("owner", "get_disk", {"disk_id": "{tides}"}),
    ("owner", "list_disks", {"limit": 2}),
    ("owner", "reflect", {"content": "We decided to paint the shed red. It may rain."}),
    ("owner", "search_knowledge_base", {"query": "tide", "limit": 21}),
    ("owner", "get_item", {"item_id": "nowhere"}),
    ("reader", "add_to_knowledge", {"kind": "text", "title": "Rye", "text": RYE}),
    ("owner", "add_to_knowledge", {"kind": "text", "title": "Salt", "text": RYE + " Salt."}),
    ("owner", "add", {"title": "Flags", "content": "Fly them.", "entity_type": "task"}),
    ("owner", "remember", {"title": "Mud", "content": "Order a second barge.", "kind": "claim"}),
    ("owner", "manage", {"action": "start_task", "entity_id": "{dredge}"}),
]
CLI = [
    "list",
    "list --json --limit 2",
    "list --type task",
    "get {tides}",
    "get {dredge}",
    "get {dredge} --json",
    "search water --mode keyword",
    "search water --mode keyword --json",
    "search buoys --type decision",
    "task list --next",
    "related {dredge}",
    "related {buoys} --mode dependencies",
    "context buoys",
    "folder list",
    "get nowhere",
    "list --type task --folder Red",
    "task list --status lost",
    "task add Flags --project nowhere",
    "task move {dredge} doing",
    "task move {dredge} blocked",
    "task update {dredge} --due {empty}",
    "folder create Red",
    "folder rename blue Bread --json",
]

VARIES = re.compile(
    r"""(?P<id>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})
    | (?<![A-Za-z0-9])(?P<public>[A-Za-z0-9]{3}2{9})\b    # as `steady` makes them
    | (?P<time>\d{4}-\d\d-\d\d[T ]\d\d:[\d:.]+(?:Z|\+00:00)?)
    | (?P<score>\b\d\.\d{3,}\b)""",
    re.VERBOSE,
)


@pytest.fixture
def commands(data_dir: Path) -> Commands:
    return Commands(data_dir)


def check_answers(name: str, answers: Any) -> None:
    """Compare with ids numbered in order of appearance, no times, and scores of two digits."""
    numbers: dict[str, str] = {}

    def stable(found: re.Match[str]) -> str:
        kind = found.lastgroup
        if kind == "score":
            return str(round(float(found[0]), 2))
        numbered = f"<{kind} {len(numbers) + 1}>"
        return "<time>" if kind == "time" else numbers.setdefault(found[0], numbered)

    check(name, VARIES.sub(stable, json.dumps(answers, indent=1, ensure_ascii=False)))


def filled(request: Any, ids: dict[str, str]) -> Any:
    return json.loads(re.sub(r"\{(\w+)\}", lambda found: ids[found[1]], json.dumps(request)))


async def furnish(house: House) -> dict[str, str]:
    """Ids by name, once nothing is left to do in the background."""
    ids = {
        "tides": (await house.add("Tides", folder="Red", text=TIDES))[0],
        "rye": (await house.add("Rye bread", folder="Blue", text=RYE))[0],
    }
    await house.app.folders.file(house.owner, ids["tides"], [house.folders["Blue"]])
    async with house.client("owner") as client:
        for name, body in ENTITIES.items():
            made = await client.post("/api/entities?sync=true", json=filled(body, ids))
            ids[name] = made.json()["id"]
    while await house.app.worker.run_once():
        pass
    return ids


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


def test_the_rest_schema_is_as_recorded() -> None:
    check("openapi.json", openapi())


def test_the_help_of_every_command_is_as_recorded(commands: Commands) -> None:
    def paths(command: Any, path: tuple[str, ...]) -> list[tuple[str, ...]]:
        inner = sorted(getattr(command, "commands", {}).items())
        return [path, *(found for name, child in inner for found in paths(child, (*path, name)))]

    pages = [
        f"$ commonplace {' '.join(path)} --help\n{commands.run(*path, '--help', env=PLAIN).stdout}"
        for path in paths(typer.main.get_command(command_line), ())
    ]
    check("help.txt", "\n".join(pages))


@pytest.mark.anyio
@pytest.mark.usefixtures("steady")
async def test_answers_over_rest_are_as_recorded(house: House) -> None:
    ids, answers = await furnish(house), []
    for who, method, path, body in REST:
        async with house.client(who) as client:
            answer = await client.request(method, path.format(**ids), json=filled(body, ids))
        answers.append(
            {
                "asked": f"{who}: {method} {path}",
                "body": body,
                "status": answer.status_code,
                "answer": answer.json(),
            }
        )
    check_answers("answers_rest.json", answers)


@pytest.mark.anyio
@pytest.mark.usefixtures("steady")
async def test_answers_over_mcp_are_as_recorded(house: House) -> None:
    ids, answers = await furnish(house), []
    for who, tool, arguments in MCP:
        async with house.client(who) as client:
            answer = await call_tool(client, tool, filled(arguments, ids))
        answers.append({"asked": f"{who}: {tool}", "arguments": arguments, **answer})
    check_answers("answers_mcp.json", answers)


@pytest.mark.usefixtures("steady")
def test_answers_of_commands_are_as_recorded(commands: Commands, data_dir: Path) -> None:
    async def prepare() -> dict[str, str]:
        async with open_house(data_dir) as house:
            return await furnish(house)

    ids, answers = asyncio.run(prepare()), []
    for line in CLI:
        said = commands.run(*shlex.split(line.format(**ids, empty="''")), env=PLAIN)
        out = json.loads(said.stdout) if "--json" in line else said.stdout.splitlines()
        answers.append(
            {"asked": line, "code": said.exit_code, "out": out, "err": said.stderr.splitlines()}
        )
    check_answers("answers_cli.json", answers)
