"""The graph door's add, search and fetch, as MCP clients see them."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from hypothesis import given, strategies as st

from tests.interfaces.conftest import OpenHouse
from tests.interfaces.house import House, call_tool, open_house, rpc

pytestmark = pytest.mark.anyio
PATH = "/mcp/graph"


@pytest.fixture(scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    async with open_house(tmp_path_factory.mktemp("graph") / "data", own={"workers": 1}) as opened:
        yield opened


@pytest.fixture
async def client(house: House) -> AsyncIterator[httpx.AsyncClient]:
    async with house.client("owner") as opened:
        yield opened


async def call(client: httpx.AsyncClient, name: str, **arguments: Any) -> Any:
    answer = await call_tool(client, name, arguments, "/mcp" if name == "fetch" else PATH)
    assert "result" in answer, answer
    assert answer["result"]["content"][0]["text"]
    return answer["result"]["structuredContent"]


async def refusal(client: httpx.AsyncClient, name: str, arguments: dict[str, Any]) -> Any:
    answer = await call_tool(client, name, arguments, "/mcp" if name == "fetch" else PATH)
    assert "error" in answer, answer
    return answer["error"]


async def test_adding_answers_as_the_schema_says(client: httpx.AsyncClient) -> None:
    arguments = {
        "title": "Redis connection pooling insight",
        "content": "Pool size must be >= concurrent requests.",
        "category": "debugging",
        "languages": ["python"],
        "technologies": ["redis", "asyncio"],
    }
    added = await call(client, "add", **arguments)
    assert added == {
        "success": True,
        "id": added["id"],
        "timestamp": added["timestamp"],
        "conflicts": [],
        "similar": [],
        "message": "Queued: Redis connection pooling insight (processing in background)",
    }
    assert added["id"].startswith("episode_") and added["timestamp"].endswith("Z")
    again = await call(client, "add", **arguments)
    assert again["id"] != added["id"]
    assert again["conflicts"] == [
        {
            "id": added["id"],
            "name": arguments["title"],
            "score": 1.0,
            "kind": "duplicate",
            "reason": "Both say the same in the same words.",
            "statements": [f"{arguments['title']}. {arguments['content']}"] * 2,
            "difference": None,
        }
    ]
    for skipped in ({"skip_conflicts": True}, {"check_conflicts": False}):
        assert (await call(client, "add", **arguments, **skipped))["conflicts"] == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "Title cannot be empty"),
        ({"content": "text"}, "Title cannot be empty"),
        ({"title": "", "content": "text"}, "Title cannot be empty"),
        ({"title": None, "content": "text"}, "Title cannot be empty"),
        ({"title": "T"}, "Content cannot be empty"),
        ({"title": "T", "content": None}, "Content cannot be empty"),
        ({"title": "T", "content": "  "}, "Content cannot be empty"),
        ({"title": "T", "content": "text", "entity_type": "task"}, "Tasks require a project"),
        (
            {"title": "T", "content": "text", "entity_type": "task", "project": ""},
            "Tasks require a project",
        ),
        ({"title": "T", "content": "text", "entity_type": "epic"}, "Epics require a project"),
        (
            {"title": "T", "content": "text", "entity_type": "epic", "project": " "},
            "Epics require a project",
        ),
    ],
)
async def test_refusals_are_the_seeds_own_sentences(
    client: httpx.AsyncClient, arguments: dict[str, Any], sentence: str
) -> None:
    error = await refusal(client, "add", arguments)
    assert (error["code"], error["message"]) == (-32602, sentence)


@pytest.mark.parametrize(
    ("extra", "sentence"),
    [
        ({"sync": True}, "Unknown field `sync`"),
        ({"epic": "epic_x"}, "Unknown field `epic`"),
        ({"title": "x" * 201}, "200"),
        ({"content": "x" * 50_001}, "50,000"),
        ({"entity_type": "document"}, "add_to_knowledge"),
        ({"entity_type": "rule"}, "`entity_type` must be episode, "),
        (
            {"priority": "urgent"},
            "`priority` must be critical, high, medium, low or someday",
        ),
        ({"due_date": "2026-02-30"}, "not an ISO date"),
        ({"due_date": 20260101}, "`due_date` must be text"),
        ({"languages": "python"}, "`languages` must be a list"),
        ({"languages": ["x"] * 51}, "`languages` must have at most 50 entries"),
        ({"tags": [" "]}, "must not be blank"),
        ({"metadata": []}, "`metadata` must be an object"),
        ({"metadata": {"deep": "\0"}}, "NUL"),
        ({"metadata": {"order": 10**30}}, "a whole number of more than 64 bits; send it as text"),
        ({"conflict_threshold": 1.5}, "`conflict_threshold` must be at most 1"),
        ({"project": ""}, "`project` is empty; leave it out"),
        ({"project": "project_zzzzzzzzzzzz"}, "No project 'project_zzzzzzzzzzzz'."),
        ({"related_to": ["nothing"]}, "There is no entity 'nothing'"),
    ],
)
async def test_what_is_wrong_is_named(
    client: httpx.AsyncClient, extra: dict[str, Any], sentence: str
) -> None:
    error = await refusal(client, "add", {"title": "T", "content": "unmistakable", **extra})
    assert error["code"] == -32602 and sentence in error["message"]
    found = await call(client, "search", query="unmistakable", limit=50, include_content=True)
    assert not any("unmistakable" in result["content"] for result in found["results"])


@given(
    title=st.text(max_size=260),
    content=st.text(max_size=80),
    entity_type=st.sampled_from(["episode", "pattern", "task", "nonsense"]),
    priority=st.none() | st.sampled_from(["low", "high", "LOW", ""]),
    due_date=st.none() | st.dates().map(str) | st.text(max_size=12),
)
def test_anything_is_either_kept_or_refused_as_invalid(
    anyio_backend_name: str,
    house: House,
    title: str,
    content: str,
    entity_type: str,
    priority: str | None,
    due_date: str | None,
) -> None:
    """The rules are pure: what passes them obeys the limits, what does not is an Invalid."""
    from commonplace.core.entities.validation import PRIORITIES, NewEntity, checked
    from commonplace.errors import Invalid

    try:
        kept = checked(
            NewEntity(
                title, content, entity_type, priority=priority, due_date=due_date, project="p"
            )
        )
    except Invalid as error:
        assert error.message
        assert (
            not title.strip()
            or len(title.strip()) > 200
            or not content.strip()
            or entity_type == "nonsense"
            or priority in ("LOW", "")
            or due_date is not None
        )
        return
    assert 1 <= len(kept.title) <= 200 and kept.title == title.strip() and kept.content == content
    assert kept.priority in (None, *PRIORITIES)
    assert kept.due_date is None or kept.due_date[:4].isdigit()


async def test_search_shows_each_entity_once_by_its_best_passage(
    client: httpx.AsyncClient, house: House
) -> None:
    text = "\n\n".join(
        f"## Part {n}\n\n" + f"The capybara of part {n} bathes. " * 40 for n in range(6)
    )
    await call(
        client,
        "add",
        title="Capybaras",
        content=text,
        entity_type="artifact",
        tags=["fauna"],
        metadata={"river": "Plata"},
    )
    await house.add(
        "A saved page on capybaras", text="Capybara families bathe at dusk in warm springs."
    )
    found = await call(client, "search", query="capybara bathes", limit=10, content_max_chars=100)
    assert [result["type"] for result in found["results"]].count("artifact") == 1
    assert {result["type"] for result in found["results"]} >= {"artifact", "document"}
    artifact = next(result for result in found["results"] if result["type"] == "artifact")
    assert artifact.keys() == {
        "id",
        "type",
        "title",
        "content",
        "score",
        "url",
        "created_at",
        "metadata",
    }
    assert len(artifact["content"]) <= 100 and 0 <= artifact["score"] <= 1
    assert artifact["metadata"]["tags"] == ["fauna"]
    assert (
        artifact["url"] == f"http://127.0.0.1:8642/items/{artifact['id'].removeprefix('artifact_')}"
    )
    assert (found["query"], found["filters"], found["total"], found["has_more"]) == (
        "capybara bathes",
        {},
        len(found["results"]),
        False,
    )
    short = await call(client, "search", query="capybara bathes", limit=1, include_content=False)
    assert (len(short["results"]), short["results"][0]["content"], short["has_more"]) == (
        1,
        None,
        True,
    )
    fetched = await call(client, "fetch", id=artifact["id"])
    assert fetched.keys() == {"id", "title", "text", "url", "metadata"}
    assert (fetched["id"], fetched["title"], fetched["text"], fetched["url"]) == (
        artifact["id"],
        "Capybaras",
        text,
        artifact["url"],
    )
    assert fetched["metadata"]["entity_type"] == "artifact"
    assert fetched["metadata"]["river"] == "Plata"


async def test_search_keeps_to_its_filters(client: httpx.AsyncClient) -> None:
    project = (
        await call(
            client,
            "add",
            title="Quokka station",
            content="Field work on quokkas.",
            entity_type="project",
        )
    )["id"]
    task = (
        await call(
            client,
            "add",
            title="Count quokkas",
            content="Count quokkas at dawn.",
            entity_type="task",
            project=project,
            assignees=["alice"],
            category="field",
            languages=["python"],
        )
    )["id"]
    other = (
        await call(
            client,
            "add",
            title="Quokka diet",
            content="Quokkas eat leaves.",
            entity_type="claim",
            category="biology",
        )
    )["id"]

    async def ids(**filters: Any) -> set[str]:
        found = await call(client, "search", query="quokkas", **filters)
        assert found["filters"] == filters
        return {result["id"] for result in found["results"] if "uokka" in result["title"]}

    assert await ids() == {project, task, other}
    for filters in (
        {"types": ["task"]},
        {"project": project},
        {"status": "todo"},
        {"assignee": "alice"},
        {"language": "python"},
        {"category": "field"},
        {"types": ["task", "claim"], "since": "1d", "category": "field"},
    ):
        assert await ids(**filters) == {task}, filters
    assert await ids(since="2099-01-01") == set()
    assert await ids(status="doing,todo") == {task} and await ids(status="doing") == set()
    for status in ("lost", "TODO", "todo,lost", ""):
        refused = await refusal(client, "search", {"query": "x", "status": status})
        assert refused["code"] == -32602 and "backlog, todo, doing" in refused["message"], status
    for since in ("yesterday", ""):
        assert (
            "`since` must be an ISO date"
            in (await refusal(client, "search", {"query": "x", "since": since}))["message"]
        )
    assert (await refusal(client, "search", {"query": "x", "types": ["rule"] * 2}))[
        "message"
    ].count("`types` must be document") == 1
    assert (
        "`conflict_threshold` must be at most 1"
        in (await refusal(client, "add", {"title": "x", "content": "y", "conflict_threshold": 2}))[
            "message"
        ]
    )
    assert (
        "explore(types"
        in (await refusal(client, "search", {"query": "x", "project": task}))["message"]
    )
    for bad in (
        {"limit": 0},
        {"limit": 51},
        {"types": ["rule"]},
        {"query": " "},
        {"content_max_chars": 0},
    ):
        assert (await refusal(client, "search", {"query": "x"} | bad))["code"] == -32602


async def test_facts_come_back_as_they_were_given(client: httpx.AsyncClient) -> None:
    given = {"path": "src/auth.py", "line": 7, "nested": {"a": [1, None, 2.5]}}
    entity = (
        await call(
            client,
            "add",
            title="Where tokens are checked",
            content="In the middleware.",
            metadata=given,
        )
    )["id"]
    facts = (await call(client, "fetch", id=entity))["metadata"]
    assert {name: value for name, value in facts.items() if name in given} == given


@pytest.mark.parametrize(
    "given_by, base",
    [
        ({"host": "::"}, "http://127.0.0.1:8642"),
        ({"host": "0.0.0.0"}, "http://127.0.0.1:8642"),
        ({"host": "::1", "port": 99}, "http://[::1]:99"),
        ({"public_url": "https://kb.example.org/"}, "https://kb.example.org"),
    ],
)
async def test_the_address_of_an_entity_is_one_that_leads_there(
    house_with: OpenHouse, given_by: dict[str, Any], base: str
) -> None:
    async with house_with(**given_by) as house, house.client("owner") as client:
        added = await call(client, "add", title="Otters", content="They hold hands.")
        fetched = await call(client, "fetch", id=added["id"])
        assert fetched["url"] == f"{base}/items/{added['id'].rpartition('_')[2]}"


async def test_what_is_not_there_cannot_be_fetched(client: httpx.AsyncClient) -> None:
    error = await refusal(client, "fetch", {"id": "episode_zzzzzzzzzzzz"})
    assert (error["code"], error["data"]["error"]) == (-32603, "not_found")


async def test_the_tools_say_what_they_do(client: httpx.AsyncClient) -> None:
    graph = {"add", "search", "context", "explore", "manage", "remember", "reflect"}
    for path, shown in (
        (PATH, graph | {"fetch"}),
        ("/mcp", graph | {"fetch"}),
        ("/api/mcp", graph | {"fetch"}),
        ("/mcp/core", {"search", "context", "manage", "remember", "fetch"}),
    ):
        tools = {
            tool["name"]: tool
            for tool in (await rpc(client, "tools/list", path=path))["result"]["tools"]
        }
        assert shown == tools.keys() & (graph | {"fetch"})
    tools = {
        tool["name"]: tool
        for tool in (await rpc(client, "tools/list", path=PATH))["result"]["tools"]
    }
    assert tools["add"]["annotations"] == {
        "readOnlyHint": False,
        "destructiveHint": False,
        "idempotentHint": False,
        "openWorldHint": False,
    }
    schema = tools["add"]["inputSchema"]
    assert schema["required"] == ["title", "content"] and schema["additionalProperties"] is False
    assert (
        schema["properties"]["title"]["maxLength"],
        schema["properties"]["content"]["maxLength"],
    ) == (200, 50_000)
    assert schema["properties"]["entity_type"]["default"] == "episode"
    assert schema["properties"]["conflict_threshold"]["default"] == 0.85
    limit = tools["search"]["inputSchema"]["properties"]["limit"]
    assert (limit["minimum"], limit["maximum"], limit["default"]) == (1, 50, 10)
    assert tools["search"]["inputSchema"]["properties"]["content_max_chars"]["default"] == 500
