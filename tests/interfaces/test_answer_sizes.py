"""Answers and tool lists that fit: none is much larger than what it says.

Models are shown either the text or the structured content, so both are bounded. Measured in characters; benchmarks/agent_session.py
counts tokens. A token of the tool lists has 4.15 characters.
"""

import json
import random
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from commonplace.interfaces.actions.shapes import ALWAYS
from tests.interfaces.house import House, call_tool, open_house, rpc

pytestmark = pytest.mark.anyio

LONG = 60_000
CHARACTERS_PER_TOKEN = 4.15
MOST_TOKENS = {"/mcp": 4_400, "/mcp/core": 2_200}
HINTS = {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
SUBJECTS = ["billing export", "invoice table", "retry queue", "rounding of taxes", "audit log"]
CLAUSES = [
    "keeps amounts in integer cents",
    "failed when two requests came at once",
    "waits for the approval of an accountant",
    "was measured again after the upgrade",
    "reads its limits from the settings",
]
TYPES = ["decision"] * 12 + ["procedure"] * 8 + ["claim"] * 8 + ["episode"] * 8
# What the documents that the tools come from name, and their additions.
FIELDS = {
    "search_knowledge_base": "query limit mode",
    "add_to_knowledge": "kind url text title in_kb auto_transform",
    "ask": "query project as_of limit thread_id",
    "get_item": "item_id from_section max_chars",
    "list_recent": "limit",
    "add": "title content entity_type category languages tags related_to metadata project priority "
    "assignees due_date technologies depends_on repository_url check_conflicts skip_conflicts "
    "conflict_threshold",
    "search": "query types language category status project assignee since text_language author "
    "published_after published_before as_of limit include_content content_max_chars",
    "fetch": "id from_section max_chars",
    "context": "goal intent project limit token_budget",
    "explore": "mode types entity_id relationship_types depth project status limit",
    "manage": "action entity_id data expected_revision",
    "remember": "title content kind project tags related_to idempotency_key valid_until review_by",
    "reflect": "content source_title project persist limit",
    "search_knowledge": "query limit",
    "get_disk": "disk_id from_section max_chars",
    "list_disks": "scope category tag limit",
}
DISK_FIELDS = (
    "public_id title summary category visibility relationship owner_user_id owner_display_name "
    "word_count tags saved_at created_at"
)


def sentence(pick: random.Random) -> str:
    first, second = pick.choice(CLAUSES), pick.choice(CLAUSES)
    return f"The {pick.choice(SUBJECTS)} {first}, because the {pick.choice(SUBJECTS)} {second}."


def prose(pick: random.Random, size: int) -> str:
    paragraphs, part = [], 0
    while sum(map(len, paragraphs)) < size:
        part += 1
        paragraphs.append(f"## Part {part}")
        paragraphs += [" ".join(sentence(pick) for _ in range(5)) for _ in range(8)]
    return "\n\n".join(paragraphs)[:size]


class Library:
    """60 items: 48 entities and 12 documents, one of them long."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client
        self.project = self.long = self.task = ""
        self.text = ""

    async def fill(self) -> None:
        pick = random.Random(7)
        self.text = prose(pick, LONG)
        self.project = await self.add("project", "Billing service", sentence(pick))
        of = {"project": self.project}
        for number in range(11):
            title = f"Check the {pick.choice(SUBJECTS)} before release {number}"
            self.task = await self.add("task", title, sentence(pick), **of)
        for number, kind in enumerate(TYPES):
            title = f"The {pick.choice(SUBJECTS)} {pick.choice(CLAUSES)} ({number})"
            await self.add(kind, title, f"{sentence(pick)} {sentence(pick)}", **of)
        for number in range(12):
            text = prose(pick, 800) if number else self.text
            page = {"kind": "text", "title": f"Notes of the finance team, {number}", "text": text}
            added = await self.ask("add_to_knowledge", page)
            self.long = self.long or added["structuredContent"]["user_item_id"]

    async def add(self, kind: str, title: str, content: str, **more: Any) -> str:
        body = {"entity_type": kind, "title": title, "content": content, **more}
        added = await self.client.post("/api/entities?sync=true", json=body)
        return str(added.raise_for_status().json()["id"])

    async def ask(self, name: str, arguments: dict[str, Any]) -> Any:
        answer = await call_tool(self.client, name, arguments)
        assert "result" in answer, answer
        return answer["result"]


@pytest.fixture(scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    async with open_house(tmp_path_factory.mktemp("sizes") / "data") as opened:
        yield opened


@pytest.fixture(scope="module")
async def library(house: House) -> AsyncIterator[Library]:
    async with house.client("owner") as client:
        library = Library(client)
        await library.fill()
        yield library


def length(structured: Any) -> int:
    return len(json.dumps(structured, ensure_ascii=False, separators=(",", ":")))


def expect_fit(answer: Any, says: str, text: float, structured: float) -> None:
    """Check both forms of an answer against what it says, which must be in the text."""
    assert len(says) > 40
    assert len(answer["content"][0]["text"]) <= text * len(says)
    assert length(answer["structuredContent"]) <= structured * len(says)
    expect_nothing_empty(answer["structuredContent"])


def expect_nothing_empty(value: Any, name: str = "") -> None:
    assert name in ALWAYS or (value is not None and value != []), name
    if isinstance(value, dict):
        for key, each in value.items():
            expect_nothing_empty(each, key)
    if isinstance(value, list):
        for each in value:
            expect_nothing_empty(each, name)


def line(entry: Any) -> str:
    facts = [entry.get("status"), entry["created_at"][:10]]
    return f"- [{entry['id']}] {entry['title']} ({', '.join(filter(None, facts))})"


async def test_a_long_item_comes_in_parts_and_its_text_only_once(library: Library) -> None:
    whole = await library.ask("get_item", {"item_id": library.long, "max_chars": 500_000})
    expect_fit(whole, library.text, 1.02, 1.15)
    assert whole["structuredContent"]["text"] == library.text
    part = await library.ask("get_item", {"item_id": library.long})
    assert 35_000 < len(part["structuredContent"]["text"]) <= 40_000
    expect_fit(part, part["structuredContent"]["text"], 1.02, 1.15)
    fetched = await library.ask("fetch", {"id": library.long, "max_chars": 500_000})
    expect_fit(fetched, library.text, 1.15, 1.15)


async def test_a_disk_has_its_text_and_that_of_its_sections(library: Library) -> None:
    disk = await library.ask("get_disk", {"disk_id": library.long})
    expect_fit(disk, library.text, 2.15, 2.15)
    assert json.loads(disk["content"][0]["text"]) == disk["structuredContent"]


async def test_lists_of_items_are_one_line_each(library: Library) -> None:
    recent = await library.ask("list_recent", {})
    says = "\n".join(map(line, recent["structuredContent"]["items"]))
    assert len(recent["structuredContent"]["items"]) == 20
    assert recent["content"][0]["text"] == says
    expect_fit(recent, says, 1, 1.8)


async def test_lists_of_entities_are_one_line_each(library: Library) -> None:
    types = sorted({"project", "task", *TYPES})
    found = await library.ask("explore", {"types": types})
    says = "\n".join(map(line, found["structuredContent"]["entities"]))
    assert len(found["structuredContent"]["entities"]) == 48
    assert found["content"][0]["text"] == says
    expect_fit(found, says, 1, 2.3)


async def test_lists_of_disks_have_the_fields_of_their_origin_and_no_more(library: Library) -> None:
    found = await library.ask("list_disks", {})
    text, structured = found["content"][0]["text"], found["structuredContent"]
    assert json.loads(text) == structured and len(text) == length(structured)
    assert structured.keys() == {"scope", "total", "disks"} and len(structured["disks"]) == 20
    assert {*DISK_FIELDS.split()} == structured["disks"][0].keys()


async def test_results_of_a_search_are_little_more_than_their_passages(library: Library) -> None:
    found = await library.ask("search", {"query": "how are taxes rounded"})
    results = found["structuredContent"]["results"]
    says = "\n".join(f"[{each['id']}] {each['title']}\n{each['content']}" for each in results)
    assert len(results) == 10
    expect_fit(found, says, 1.15, 1.8)


async def test_a_change_is_told_in_a_sentence(library: Library) -> None:
    asked = {"action": "start_task", "entity_id": library.task}
    done = await library.ask("manage", asked)
    told = done["structuredContent"]
    branch = told["data"].pop("branch_name")
    assert branch.startswith(f"task/{library.task}-")
    assert told["data"] == {"id": library.task, "status": "doing", "revision": 2}
    told["data"]["branch_name"] = branch
    says = f"{told['message']} [{library.task}] (doing, revision 2, branch {branch})"
    assert done["content"][0]["text"] == says
    expect_fit(done, says, 1, 2.5)
    note = {"action": "add_note", "entity_id": library.task, "data": {"content": "Rounds twice."}}
    told = (await library.ask("manage", note))["structuredContent"]
    assert length(told) <= 2.5 * len(says)


async def test_what_actions_list_is_in_their_text_too(library: Library) -> None:
    for action, name in (("suggest", "suggestions"), ("prioritize", "tasks")):
        done = await library.ask("manage", {"action": action, "entity_id": library.project})
        tasks = done["structuredContent"]["data"][name]
        lines = done["content"][0]["text"].splitlines()
        assert len(lines) == len(tasks) + 1 > 2
        for task, told in zip(tasks, lines[1:], strict=True):
            assert task["id"] in told and task["title"] in told and task["reasons"][0] in told
        expect_fit(done, done["content"][0]["text"], 1, 2.5)


@pytest.mark.parametrize("path", MOST_TOKENS)
async def test_tool_lists_fit(library: Library, path: str) -> None:
    tools = (await rpc(library.client, "tools/list", path=path))["result"]["tools"]
    assert length(tools) <= CHARACTERS_PER_TOKEN * MOST_TOKENS[path]
    for tool in tools:
        assert tool["annotations"].keys() == HINTS


async def test_no_field_is_missing_from_the_tools(library: Library) -> None:
    tools = (await rpc(library.client, "tools/list"))["result"]["tools"]
    for tool in tools:
        schema = tool["inputSchema"]
        assert set(FIELDS[tool["name"]].split()) <= schema["properties"].keys(), tool["name"]
    assert [tool["name"] for tool in tools if tool["name"] not in FIELDS] == []
    assert len(tools) == len(FIELDS)
