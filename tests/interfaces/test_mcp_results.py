"""What goes wrong, as agents read it: errors as results where a framework hides JSON-RPC errors, and messages that say what to do."""

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from commonplace import errors
from tests.interfaces.conftest import OpenHouse
from tests.interfaces.house import ADDRESS, House, call_tool, open_house, rpc
from tests.interfaces.test_mcp import ERAS, request
from tests.interfaces.test_mcp_errors import CALLER, failing, toolset

pytestmark = pytest.mark.anyio

TIDES = "The moon pulls the sea twice a day, and harbours keep tables of when the water is high."
TEXT = {"kind": "text", "title": "Tides", "text": TIDES}
NOWHERE = "document_2222nowhere2"
# who, which tool, arguments, code, what the message says
WRONG: list[tuple[str, str, dict[str, Any], int, str]] = [
    ("owner", "search", {"query": "x", "limit": 51}, -32602, "`limit` must be at most 50."),
    ("owner", "get_item", {"item_id": NOWHERE}, -32603, f"No item '{NOWHERE}'."),
    ("owner", "add", {"title": "T", "content": ""}, -32602, "Content cannot be empty"),
    ("reader", "add_to_knowledge", TEXT, -32603, "This needs the 'write' capability"),
    (
        "owner",
        "add_to_knowledge",
        {"kind": "url", "url": "http://127.0.0.1:1/"},
        -32603,
        "127.0.0.1",
    ),
]


@pytest.fixture(scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    async with open_house(tmp_path_factory.mktemp("results") / "data") as opened:
        yield opened


async def post(
    house: House, who: str, era: str, message: dict[str, Any], path: str = "/mcp"
) -> Any:
    """The JSON-RPC answer, also where it is the last event of a stream."""
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": era,
        "Mcp-Method": message["method"],
        "Mcp-Name": message["params"].get("name", ""),
    }
    async with house.client(who) as client:
        answer = await client.post(path, headers=headers, json=message)
    if not answer.headers["content-type"].startswith("text/event-stream"):
        return answer.json()
    events = [line[6:] for line in answer.text.splitlines() if line.startswith("data: {")]
    return json.loads(events[-1])


@pytest.mark.parametrize("meta", [{}, {"progressToken": "p"}], ids=["plain", "streamed"])
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(("who", "tool", "arguments", "code", "sentence"), WRONG)
async def test_errors_are_results_where_the_address_asks_for_it(
    house: House,
    who: str,
    tool: str,
    arguments: dict[str, Any],
    code: int,
    sentence: str,
    era: str,
    meta: dict[str, str],
) -> None:
    message = request(era, arguments, tool, **meta)
    error = (await post(house, who, era, message))["error"]
    assert error["code"] == code and sentence in error["message"]
    told = (await post(house, who, era, message, "/mcp?errors=result"))["result"]
    assert told["isError"] is True
    assert told["content"] == [{"type": "text", "text": error["message"]}]
    assert told["structuredContent"] == {"code": code, "data": error["data"]}


@pytest.mark.parametrize("era", ERAS)
async def test_the_sdk_shows_errors_that_are_results(house: House, era: str) -> None:
    headers = {"Authorization": f"Bearer {house.tokens['owner']}"}
    url = f"{ADDRESS}/mcp/core?errors=result"
    async with (
        httpx2.AsyncClient(transport=httpx2.ASGITransport(house.asgi), headers=headers) as http,
        Client(streamable_http_client(url, http_client=http), mode=ERAS[era]) as client,
    ):
        await client.list_tools()  # so that it knows the schema of answers, and checks it
        wrong = await client.call_tool("fetch", {"id": NOWHERE})
        right = await client.call_tool("search", {"query": "tides"})
    assert wrong.is_error and wrong.structured_content["data"]["error"] == "not_found"
    assert wrong.content[0].text == f"No entity '{NOWHERE}'. Use search to find its id."
    assert not right.is_error and right.structured_content["results"] == []


@pytest.mark.parametrize("meta", [{}, {"progressToken": "p"}], ids=["plain", "streamed"])
@pytest.mark.parametrize("era", ERAS)
async def test_a_setting_makes_all_errors_results(
    house_with: OpenHouse, era: str, meta: dict[str, str]
) -> None:
    async with house_with(mcp_errors="result") as house:
        wrong = request(era, {"item_id": NOWHERE}, "get_item", **meta)
        assert (await post(house, "owner", era, wrong))["result"]["isError"] is True
        unknown = request(era, {}, "forget_everything", **meta)
        assert (await post(house, "owner", era, unknown))["error"]["code"] == -32602


@pytest.mark.parametrize("era", ERAS)
async def test_errors_of_the_protocol_stay_errors(house: House, era: str) -> None:
    unknown = request(era, {}, "forget_everything")
    shapeless = request(era, "all of it", "list_recent")  # type: ignore[arg-type]
    for message in (unknown, shapeless):
        answer = await post(house, "owner", era, message, "/mcp?errors=result")
        assert answer["error"]["code"] == -32602
    async with house.client(token="sk_wrong") as client:
        refused = await client.post("/mcp?errors=result", json=unknown)
    assert refused.status_code == 401


@pytest.mark.parametrize(
    ("error", "code"),
    [(errors.RateLimited(17), -32605), (errors.QuotaExceeded("No minutes left."), 402)],
)
async def test_limits_and_quotas_stay_errors(error: errors.CommonplaceError, code: int) -> None:
    tools = toolset(library=failing(error))
    with pytest.raises(MCPError) as caught:
        await tools.call(CALLER, "list_recent", {}, errors_as_results=True)
    assert caught.value.code == code


# -- messages that say what to do


@pytest.mark.parametrize(
    ("path", "tool", "field", "sentence"),
    [
        ("/mcp", "get_item", "item_id", "No item '{}'. Use search to find its id."),
        (
            "/mcp/knowledge",
            "get_item",
            "item_id",
            "No item '{}'. Use search_knowledge_base to find its id.",
        ),
        ("/mcp/core", "fetch", "id", "No entity '{}'. Use search to find its id."),
        ("/mcp/graph", "fetch", "id", "No entity '{}'. Use search to find its id."),
    ],
)
async def test_what_is_not_there_can_be_searched_for(
    house: House, path: str, tool: str, field: str, sentence: str
) -> None:
    async with house.client("owner") as client:
        for missing in ("task_nope", NOWHERE):
            error = (await call_tool(client, tool, {field: missing}, path))["error"]
            assert error["message"] == sentence.format(missing)
            assert (error["code"], error["data"]["error"]) == (-32603, "not_found")
        done = await call_tool(client, "manage", {"action": "start_task", "entity_id": "task_nope"})
    assert done["error"]["message"] == "No entity 'task_nope'. Use search to find its id."


async def test_a_refused_transition_names_the_actions(house: House) -> None:
    async with house.client("owner") as client:
        about = {"title": "Harbour", "content": "Open it.", "entity_type": "project"}
        project = (await call_tool(client, "add", about))["result"]["structuredContent"]["id"]
        about |= {"title": "Dredge", "entity_type": "task", "project": project}
        task = (await call_tool(client, "add", about))["result"]["structuredContent"]["id"]
        asked = {"action": "complete_task", "entity_id": task}
        error = (await call_tool(client, "manage", asked))["error"]
    assert error["code"] == -32602
    assert error["message"].endswith(
        "it can go to: doing, archived. Use start_task or archive_task."
    )
    assert error["data"]["actions"] == ["start_task", "archive_task"]


@pytest.mark.parametrize("era", ERAS)
async def test_an_unknown_cursor_is_refused(house: House, era: str) -> None:
    message = request(era, {}) | {"method": "tools/list"}
    message["params"] = {"cursor": "2", "_meta": message["params"]["_meta"]}
    error = (await post(house, "owner", era, message))["error"]
    assert (error["code"], error["data"]) == (-32602, {"error": "invalid_request"})
    assert "cursor" in error["message"]


# -- limits


async def test_a_used_up_limit_names_itself_and_its_setting(house_with: OpenHouse) -> None:
    async with house_with(rate_writes_per_hour=1) as house, house.client("owner") as client:
        await call_tool(client, "add_to_knowledge", TEXT)
        error = (await call_tool(client, "add_to_knowledge", TEXT | {"title": "More"}))["error"]
    assert error["code"] == -32605
    assert re.fullmatch(
        r"Write limit reached: 1 per hour for this token\. Retry in \d+ min, or raise "
        r"COMMONPLACE_RATE_WRITES_PER_HOUR\.",
        error["message"],
    )
    assert 3500 < error["data"]["retry_after_sec"] <= 3600


async def test_too_many_requests_are_told_so_by_json_rpc(house_with: OpenHouse) -> None:
    """MCP endpoints have three times the limit of REST, counted apart."""
    async with house_with(rate_requests_per_minute=2) as house, house.client("owner") as client:
        for _ in range(2):
            assert (await client.get("/api/v1/items")).status_code == 200
        assert (await client.get("/api/v1/items")).json()["error"] == "rate_limit_exceeded"
        for _ in range(6):
            assert "result" in await rpc(client, "tools/list")
        message = request("2025-11-25", {}) | {"id": "seventh"}
        refused = await client.post("/mcp", json=message)
        unreadable = await client.post("/mcp/core", content=b"{", headers={"Accept": "*/*"})
    for answer, number in ((refused, "seventh"), (unreadable, None)):
        seconds = int(answer.headers["retry-after"])
        assert answer.status_code == 429 and 0 < seconds <= 60
        assert answer.json() == {
            "jsonrpc": "2.0",
            "id": number,
            "error": {
                "code": -32605,
                "message": f"Request limit reached: 6 per minute for this token. Retry in {seconds} s, "
                "or raise COMMONPLACE_RATE_REQUESTS_PER_MINUTE.",
                "data": {
                    "error": "rate_limit_exceeded",
                    "retry_after": seconds,
                    "retry_after_sec": seconds,
                },
            },
        }


@pytest.mark.parametrize("era", ERAS)
async def test_the_sdk_shows_why_there_were_too_many(house_with: OpenHouse, era: str) -> None:
    async with house_with(rate_requests_per_minute=2) as house:
        headers = {"Authorization": f"Bearer {house.tokens['owner']}"}
        async with (
            httpx2.AsyncClient(transport=httpx2.ASGITransport(house.asgi), headers=headers) as http,
            Client(
                streamable_http_client(f"{ADDRESS}/mcp", http_client=http), mode=ERAS[era]
            ) as client,
        ):
            with pytest.raises(MCPError) as caught:
                for _ in range(7):
                    await client.call_tool("list_recent", {})
    assert caught.value.code == -32605
    assert caught.value.message.startswith("Request limit reached: 6 per minute for this token.")
    assert 0 < caught.value.data["retry_after_sec"] <= 60


# -- who we are


def expect_identity(info: Any) -> None:
    assert (info["name"], info["title"], info["websiteUrl"]) == (
        "commonplace",
        "Commonplace",
        ADDRESS,
    )
    [icon] = info["icons"]
    assert icon["mimeType"] == "image/svg+xml"
    assert icon["src"].startswith("data:image/svg+xml;base64,")


async def test_the_server_says_who_it_is(house: House) -> None:
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    async with house.client("owner") as client:
        expect_identity((await rpc(client, "initialize", hello))["result"]["serverInfo"])
    message = request("2026-07-28", {}) | {"method": "server/discover"}
    message["params"] = {"_meta": message["params"]["_meta"]}
    found = (await post(house, "owner", "2026-07-28", message))["result"]
    assert found["supportedVersions"] == ["2026-07-28", "2025-11-25"]
    assert (found["ttlMs"], found["cacheScope"]) == (300_000, "private")
    expect_identity(found["_meta"]["io.modelcontextprotocol/serverInfo"])
    called = await post(house, "owner", "2026-07-28", request("2026-07-28", {}))
    stamp = called["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]
    assert stamp.keys() == {"name", "version"}


@pytest.mark.parametrize("mode", ["auto", *ERAS.values()])
async def test_clients_connect_however_they_begin(house: House, mode: str) -> None:
    headers = {"Authorization": f"Bearer {house.tokens['owner']}"}
    async with (
        httpx2.AsyncClient(transport=httpx2.ASGITransport(house.asgi), headers=headers) as http,
        Client(streamable_http_client(f"{ADDRESS}/mcp", http_client=http), mode=mode) as client,
    ):
        assert len((await client.list_tools()).tools) == 16
