"""The knowledge door as MCP clients see it: over HTTP in both protocol revisions, against the real application."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from commonplace.interfaces.mcp.fast_calls import FastCalls
from tests.interfaces.house import ADDRESS, House, open_house, rpc

pytestmark = pytest.mark.anyio

ERAS = {"2026-07-28": "2026-07-28", "2025-11-25": "legacy"}  # and what the SDK's client calls them
PATHS = ("/mcp", "/mcp/knowledge", "/api/mcp")
TIDES = "The moon pulls the sea twice a day, and harbours keep tables of when the water is high."
TOOLS = {"search_knowledge_base", "add_to_knowledge", "get_item", "list_recent"}


@asynccontextmanager
async def connected(
    house: House, character: str, era: str = "2026-07-28", path: str = "/mcp"
) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {house.tokens[character]}"}
    async with (
        httpx2.AsyncClient(transport=httpx2.ASGITransport(house.asgi), headers=headers) as http,
        Client(streamable_http_client(ADDRESS + path, http_client=http), mode=ERAS[era]) as client,
    ):
        yield client


async def post(
    house: House, token: str | None, era: str, call: Any, path: str = "/mcp"
) -> httpx.Response:
    """A request as it is on the wire; `call` is JSON already, or what JSON is made of."""
    headers = {
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "MCP-Protocol-Version": era,
        "Mcp-Method": "tools/call",
        "Mcp-Name": "list_recent",
    }
    async with house.client(token=token) as http:
        return await http.post(
            path, headers=headers, content=call if isinstance(call, str) else json.dumps(call)
        )


def request(
    era: str, arguments: dict[str, Any], name: str = "list_recent", **meta: Any
) -> dict[str, Any]:
    if era == "2026-07-28":
        meta |= {
            "io.modelcontextprotocol/protocolVersion": era,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    params = {"name": name, "arguments": arguments, "_meta": meta}
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}


@pytest.fixture(scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    async with open_house(tmp_path_factory.mktemp("mcp") / "data") as opened:
        yield opened


async def refused(client: Client, name: str, arguments: dict[str, Any]) -> MCPError:
    with pytest.raises(MCPError) as caught:
        await client.call_tool(name, arguments)
    return caught.value


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("path", PATHS)
async def test_what_is_added_is_found_read_and_listed(house: House, era: str, path: str) -> None:
    title = f"Tides by {era} at {path}"
    async with connected(house, "owner", era, path) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert names == TOOLS if path == "/mcp/knowledge" else names > TOOLS
        kept = await client.call_tool(
            "add_to_knowledge", {"kind": "text", "title": title, "text": TIDES}
        )
        added = kept.structured_content
        found = await client.call_tool(
            "search_knowledge_base", {"query": title, "mode": "keyword", "limit": 3}
        )
        item = await client.call_tool("get_item", {"item_id": added["user_item_id"]})
        recent = (await client.call_tool("list_recent", {"limit": 1})).structured_content
        [newest] = [one["id"] for one in recent["items"]]
        same = await client.call_tool("get_item", {"item_id": newest})
    assert added == {
        "status": "ready",
        "user_item_id": added["user_item_id"],
        "content_id": added["content_id"],
        "folder_id": None,
    }
    hit = next(
        hit for hit in found.structured_content["hits"] if hit["item_id"] == added["user_item_id"]
    )
    assert (hit["title"], hit["text"], hit["section_index"], hit["url"]) == (title, TIDES, 0, None)
    assert (
        f'{hit["rank"]}. ({hit["score"]:.2f}) {title}\n   "...{TIDES}..."' in found.content[0].text
    )
    assert (
        found.structured_content["mode"] == "keyword" and found.structured_content["query"] == title
    )
    assert item.content[0].text.startswith(f"# {title}\n") and item.content[0].text.endswith(TIDES)
    told = item.structured_content
    assert told | {"text": TIDES, "in_kb": True, "kind": "text", "next_section": None} == told
    assert told["sections"] == [{"index": 0, "start": 0, "end": len(TIDES)}]
    assert told["id"] == added["user_item_id"] and same.structured_content == told
    assert recent["items"][0] | {"type": "document", "title": title} == recent["items"][0]


async def test_the_answer_of_add_is_also_the_text(house: House) -> None:
    async with connected(house, "owner") as client:
        answer = await client.call_tool(
            "add_to_knowledge", {"kind": "text", "title": "A title", "text": TIDES}
        )
    assert json.loads(answer.content[0].text) == answer.structured_content


async def test_a_title_of_two_lines_does_not_look_like_two_entries(house: House) -> None:
    title, shown = "Springs\n2. (0.99) Neaps", "Springs 2. (0.99) Neaps"
    async with connected(house, "owner") as client:
        added = await client.call_tool(
            "add_to_knowledge",
            {"kind": "text", "title": title, "text": f"{TIDES} Springs and neaps."},
        )
        item = await client.call_tool(
            "get_item", {"item_id": added.structured_content["user_item_id"]}
        )
        found = await client.call_tool(
            "search_knowledge_base", {"query": "springs neaps", "limit": 1}
        )
        recent = await client.call_tool("list_recent", {"limit": 1})
    assert item.structured_content["title"] == found.structured_content["hits"][0]["title"] == title
    assert item.content[0].text.startswith(f"# {shown}\n")
    assert found.content[0].text.partition("\n")[0].endswith(f") {shown}")
    assert recent.content[0].text.partition("] ")[2].startswith(f"{shown} (")
    assert len(recent.content[0].text.splitlines()) == 1


async def test_tools_tell_agents_and_clients_what_they_are(house: House) -> None:
    async with connected(house, "owner", path="/mcp/knowledge") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    for tool in tools.values():
        assert tool.title and tool.description and len(tool.description) > 80
        assert tool.input_schema["additionalProperties"] is False
        assert tool.output_schema and tool.output_schema["type"] == "object"
        assert tool.annotations
    for name in TOOLS:
        hints = tools[name].annotations
        assert hints and (hints.destructive_hint, hints.read_only_hint) == (
            False,
            name != "add_to_knowledge",
        )
    limit = tools["search_knowledge_base"].input_schema["properties"]["limit"]
    assert (limit["minimum"], limit["maximum"], limit["default"]) == (1, 20, 8)
    limit = tools["list_recent"].input_schema["properties"]["limit"]
    assert (limit["minimum"], limit["maximum"], limit["default"]) == (1, 100, 20)


@pytest.mark.parametrize("era", ERAS)
async def test_a_reader_sees_and_may_call_only_what_reads(house: House, era: str) -> None:
    async with connected(house, "reader", era, "/mcp/knowledge") as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS - {
            "add_to_knowledge"
        }
        for arguments in ({"kind": "text", "title": "Mine", "text": TIDES}, {}):
            error = await refused(client, "add_to_knowledge", arguments)
            assert error.code == -32603
            assert error.data == {
                "error": "capability_denied",
                "required": "write",
                "have": ["read"],
            }


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("search_knowledge_base", {}, "`query` is required"),
    ("search_knowledge_base", {"query": "  "}, "`query` must not be blank"),
    (
        "search_knowledge_base",
        {"query": "x", "limit": 21},
        "`limit` must be at most 20.",
    ),
    (
        "search_knowledge_base",
        {"query": "x", "limit": 0},
        "`limit` must be at least 1.",
    ),
    ("search_knowledge_base", {"query": "x", "limit": "5"}, "`limit` must be a whole number"),
    ("search_knowledge_base", {"query": "x", "limit": True}, "`limit` must be a whole number"),
    (
        "search_knowledge_base",
        {"query": "x", "mode": "fuzzy"},
        "`mode` must be semantic, keyword or hybrid",
    ),
    (
        "search_knowledge_base",
        {"query": "x", "top_k": 3},
        "Unknown field `top_k`; the fields are: query, limit, mode",
    ),
    ("search_knowledge_base", {"query": "a\0b"}, "`query` contains a NUL character"),
    (
        "search_knowledge_base",
        {"query": "x" * 10_001},
        "`query` must have at most 10,000 characters",
    ),
    ("list_recent", {"limit": 101}, "`limit` must be at most 100"),
    ("get_item", {}, "`item_id` is required"),
    ("get_item", {"item_id": 5}, "`item_id` must be text"),
    ("add_to_knowledge", {}, "`kind` is required."),
    ("add_to_knowledge", {"kind": "text", "title": "T"}, "`text` is required when kind=text"),
    ("add_to_knowledge", {"kind": "text", "text": TIDES}, "`title` is required when kind=text"),
    ("add_to_knowledge", {"kind": "text", "text": TIDES, "title": ""}, "`title` must not be blank"),
    (
        "add_to_knowledge",
        {"kind": "text", "text": TIDES, "title": "x" * 501},
        "`title` must have at most 500 characters",
    ),
    (
        "add_to_knowledge",
        {"kind": "text", "text": "short", "title": "T"},
        "`text` must have at least 20 characters.",
    ),
    (
        "add_to_knowledge",
        {"kind": "text", "text": "x" * 500_001, "title": "T"},
        "`text` must have at most 500,000 characters",
    ),
    (
        "add_to_knowledge",
        {"kind": "text", "text": TIDES, "title": "T", "in_kb": "yes"},
        "`in_kb` must be true or",
    ),
    ("add_to_knowledge", {"kind": "url"}, "`url` is required when kind=url"),
    (
        "add_to_knowledge",
        {"kind": "url", "url": "notes.txt"},
        "`url` must be an http:// or https:// address",
    ),
    (
        "add_to_knowledge",
        {"kind": "url", "url": "data:application/pdf;base64,JVBERi0="},
        "/api/v1/uploads/",
    ),
    ("add_to_knowledge", {"kind": "file", "text": TIDES, "title": "T"}, "/api/v1/uploads/"),
    ("add_to_knowledge", {"kind": "binary"}, "/api/v1/uploads/"),
    ("forget_everything", {}, "Unknown tool 'forget_everything'"),
]


@pytest.mark.parametrize("era", ERAS)
async def test_wrong_arguments_are_told_what_would_be_right(house: House, era: str) -> None:
    async with connected(house, "owner", era) as client:
        for name, arguments, sentence in WRONG:
            error = await refused(client, name, arguments)
            assert (error.code, error.data) == (-32602, {"error": "invalid_request"}), (name, error)
            assert sentence in error.message


async def test_params_of_the_wrong_shape_are_named(house: House) -> None:
    answer = await post(
        house, house.tokens["reader"], "2025-11-25", request("2025-11-25", "all of it")
    )  # type: ignore[arg-type]
    error = answer.json()["error"]
    assert (
        error["code"] == -32602
        and "arguments" in error["message"]
        and error["data"] == {"error": "invalid_request"}
    )


@pytest.mark.parametrize("era", ERAS)
async def test_half_a_surrogate_pair_is_refused(house: House, era: str) -> None:
    whole = json.dumps(request(era, {"query": "HERE"}, "search_knowledge_base"))
    answer = await post(house, house.tokens["reader"], era, whole.replace("HERE", "\\ud83d"))
    assert answer.json()["id"] == 7
    assert (
        answer.json()["error"]["code"] == -32602
        and "lone surrogate" in answer.json()["error"]["message"]
    )
    answer = await post(
        house,
        house.tokens["reader"],
        "2025-11-25",
        whole.replace("HERE", "\\ud83d\\ude00 and a pair"),
    )
    assert answer.json()["result"]["structuredContent"]["query"] == "\N{GRINNING FACE} and a pair"


@pytest.mark.parametrize("era", ERAS)
async def test_an_item_that_is_not_there_is_not_found(house: House, era: str) -> None:
    async with connected(house, "reader", era) as client:
        error = await refused(
            client, "get_item", {"item_id": "3f2b8c7e-0000-4000-8000-000000000000"}
        )
    assert error.code == -32603 and error.data["error"] == "not_found"


@pytest.mark.parametrize("era", ERAS)
async def test_a_used_up_allowance_says_when_to_come_back(data_dir: Path, era: str) -> None:
    async with (
        open_house(data_dir, rate_reads_per_hour=1) as house,
        connected(house, "reader", era) as client,
    ):
        await client.call_tool("list_recent", {})
        error = await refused(client, "list_recent", {})
    assert error.code == -32605 and error.data["error"] == "rate_limited"
    assert 3500 < error.data["retry_after_sec"] <= 3600


@pytest.mark.parametrize("era", ERAS)
async def test_answers_are_json_unless_progress_is_asked_for(house: House, era: str) -> None:
    plain = await post(house, house.tokens["reader"], era, request(era, {}))
    assert plain.headers["content-type"] == "application/json"
    assert "items" in plain.json()["result"]["structuredContent"]
    streamed = await post(
        house, house.tokens["reader"], "2025-11-25", request("2025-11-25", {}, progressToken="p")
    )
    assert (
        streamed.headers["content-type"].startswith("text/event-stream")
        and "structuredContent" in streamed.text
    )


@pytest.mark.parametrize("path", PATHS)
async def test_nobody_gets_in_without_a_token(house: House, path: str) -> None:
    for token in (None, "sk_wrong", "sk_" + "A" * 43):
        answer = await post(house, token, "2025-11-25", request("2025-11-25", {}), path)
        assert answer.status_code == 401 and answer.json()["error"] == "unauthorized"
        assert "www-authenticate" in answer.headers


@pytest.mark.parametrize(
    "message",
    [
        [],
        [{"jsonrpc": "2.0", "id": 1, "method": "ping"}],
        7,
        {},
        {"jsonrpc": "1.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": None, "method": "ping"},
        {"jsonrpc": "2.0", "id": True, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []},
    ],
    ids=json.dumps,
)
async def test_what_is_no_message_is_told_what_one_is(house: House, message: Any) -> None:
    answer = await post(house, house.tokens["owner"], "2025-11-25", json.dumps(message))
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["data"]) == (
        400,
        -32600,
        {"error": "invalid_request"},
    )
    assert error["message"].startswith("Send one JSON-RPC message: an object with")


async def test_a_body_that_does_not_say_it_is_json_is_told_how(house: House) -> None:
    async with house.client("reader") as http:
        answer = await http.post("/mcp", headers={"Content-Type": "text/plain"}, content="{}")
    assert (answer.status_code, answer.json()["error"]) == (415, "unsupported_media_type")
    assert "Content-Type: application/json" in answer.json()["message"]


async def test_there_are_no_sessions_to_open_or_end(house: House) -> None:
    async with house.client("reader") as http:
        for method in ("GET", "DELETE"):
            answer = await http.request(method, "/mcp", headers={"Accept": "text/event-stream"})
            assert answer.status_code == 405 and answer.headers["allow"] == "POST"


async def test_pages_from_elsewhere_need_a_token_and_our_name(house: House) -> None:
    elsewhere = {"Origin": "https://evil.example"}
    async with house.client("reader") as http:
        by_host = await http.post("/mcp", headers={"Host": "evil.example"}, content="{}")
        with_token = await rpc(http, "tools/list")
    async with house.client() as http:
        without = await http.post("/mcp", headers=elsewhere, content="{}")
    assert (by_host.status_code, without.status_code) == (421, 401)
    assert with_token["result"]["tools"]


@pytest.mark.slow
async def test_the_longest_text_fits_however_it_is_escaped(house: House) -> None:
    text = "\N{GRINNING FACE} " * 250_000
    call = json.dumps(
        request("2025-11-25", {"kind": "text", "title": "Long", "text": text}, "add_to_knowledge")
    )
    assert len(call) > 3_000_000
    answer = await post(house, house.tokens["owner"], "2025-11-25", call)
    assert answer.json()["result"]["structuredContent"]["status"] == "ready"
    too_long = await post(
        house, house.tokens["owner"], "2025-11-25", " " * (8 * 1024 * 1024) + call
    )
    assert too_long.status_code == 413 and too_long.json()["error"] == "payload_too_large"


CALLS: list[tuple[object, dict[str, str]]] = [
    (
        {
            "jsonrpc": "2.0",
            "id": 7,
            "method": "tools/call",
            "params": {"name": "list_recent", "arguments": {"limit": 3}},
        },
        {},
    ),
    (
        {
            "jsonrpc": "2.0",
            "id": "seven",
            "method": "tools/call",
            "params": {"name": "list_recent"},
        },
        {},
    ),
    (
        {
            "jsonrpc": "2.0",
            "id": 7,
            "method": "tools/call",
            "params": {"name": "list_recent", "arguments": {"limit": 0}},
        },
        {},
    ),
    (
        {
            "jsonrpc": "2.0",
            "id": 7,
            "method": "tools/call",
            "params": {
                "name": "add_to_knowledge",
                "arguments": {
                    "kind": "text",
                    "title": "Tides",
                    "text": "The moon pulls the sea, and twice a day it comes and goes.",
                },
            },
        },
        {},
    ),
    (
        {
            "jsonrpc": "2.0",
            "id": 7,
            "method": "tools/call",
            "params": {"name": "list_recent", "arguments": [1]},
        },
        {},
    ),
    (
        {
            "jsonrpc": "2.0",
            "id": 7,
            "method": "tools/call",
            "params": {"name": "no such tool", "arguments": {}},
        },
        {},
    ),
    ({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"arguments": {}}}, {}),
    (
        {
            "jsonrpc": "2.0",
            "id": 7,
            "method": "tools/call",
            "params": {"name": "get_item", "arguments": {"item_id": "none"}},
        },
        {},
    ),
    ({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "list_recent"}}, {}),
    (
        {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "list_recent"}},
        {"Accept": "text/html"},
    ),
    (
        {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "list_recent"}},
        {"MCP-Protocol-Version": "1999-01-01"},
    ),
]


MODERN_CALLS: list[tuple[object, dict[str, str]]] = [
    (request("2026-07-28", {"limit": 3}), {"Mcp-Name": "search_knowledge_base"}),
    (request("2026-07-28", {"limit": 3}), {"Mcp-Method": "tools/list"}),
    (request("2025-11-25", {"limit": 3}), {}),
    (request("2026-07-28", {"query": "tides"}, "search_knowledge_base"), {}),
    (
        request("2026-07-28", {"query": "tides"}, "search_knowledge_base"),
        {"Mcp-Param-Query": "moons"},
    ),
]


def of_era(era: str, message: Any) -> Any:
    """The same call as clients of that revision send it."""
    match message:
        case {"params": dict() as params} if era == "2026-07-28" and "_meta" not in params:
            return message | {"params": params | {"_meta": request(era, {})["params"]["_meta"]}}
    return message


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(("message", "headers"), CALLS + MODERN_CALLS)
async def test_a_call_in_one_piece_is_answered_as_by_the_sdk(
    house: House, message: Any, headers: dict[str, str], era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = {
        "Authorization": f"Bearer {house.tokens['owner']}",
        "Accept": "application/json",
        "Content-Type": "application/json",
        "MCP-Protocol-Version": era,
    } | headers
    if era == "2026-07-28" and isinstance(message, dict):
        named = {"Mcp-Method": message["method"], "Mcp-Name": message["params"].get("name", "")}
        sent, message = named | sent, of_era(era, message)
    answers = []
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(house.asgi), headers=sent) as http:
        for _ in range(2):
            answer = await http.post(ADDRESS + "/mcp/knowledge", content=json.dumps(message))
            kind = answer.headers.get("content-type", "")
            answers.append(
                (
                    answer.status_code,
                    kind,
                    answer.json() if kind == "application/json" and answer.text else answer.text,
                )
            )
            monkeypatch.setattr(FastCalls, "answer", _no_answer)
    assert answers[0] == answers[1]


async def test_no_argument_has_to_be_in_a_header_too(house: House) -> None:
    """What the short way of tool calls relies on."""
    async with connected(house, "owner") as client:
        assert "x-mcp-header" not in (await client.list_tools()).model_dump_json()


async def _no_answer(*_: object, **__: object) -> None:
    return None
