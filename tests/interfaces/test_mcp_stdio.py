"""`commonplace mcp`: the same tools over standard input and output."""

import json
import os
import sys
from pathlib import Path
from subprocess import PIPE, Popen, run
from threading import Event
from typing import Any

import pytest
from anyio import to_thread
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp_types import ResourceTemplateReference

from tests.interfaces.command import Commands
from tests.webserver import Wire, web_server

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

COMMAND = ["-c", "from commonplace.interfaces.cli.main import main; main()", "mcp"]
TIDES = "The moon pulls the sea twice a day, and harbours keep tables of when the water is high."
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


@pytest.fixture
def environment(data_dir: Path) -> dict[str, str]:
    src = str(Path(__file__).parents[2] / "src")
    return os.environ | {
        "COMMONPLACE_DATA_DIR": str(data_dir),
        "COMMONPLACE_EMBEDDER": "static",
        "PYTHONPATH": src,
    }


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy", "auto"])
async def test_a_client_adds_and_finds(environment: dict[str, str], mode: str) -> None:
    server = StdioServerParameters(command=sys.executable, args=COMMAND, env=environment)
    async with Client(server, mode=mode) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        added = await client.call_tool(
            "add_to_knowledge", {"kind": "text", "title": "Tides", "text": TIDES}
        )
        found = await client.call_tool("search_knowledge_base", {"query": "when is high water"})
    assert "add_to_knowledge" in names
    assert (
        found.structured_content["hits"][0]["item_id"] == added.structured_content["user_item_id"]
    )


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
async def test_resources_and_prompts_are_served_too(environment: dict[str, str], mode: str) -> None:
    server = StdioServerParameters(command=sys.executable, args=COMMAND, env=environment)
    async with Client(server, mode=mode) as client:
        await client.call_tool(
            "add_to_knowledge", {"kind": "text", "title": "Tides", "text": TIDES}
        )
        listed = {each.title: each.uri for each in (await client.list_resources()).resources}
        [item] = (await client.read_resource(listed["Tides"])).contents
        told = await client.get_prompt("start", {"goal": "Read the tides"})
        ref = ResourceTemplateReference(type="ref/resource", uri="commonplace://item/{id}")
        found = await client.complete(ref, {"name": "id", "value": "tid"})
    assert TIDES in item.text and TIDES in told.messages[-1].content.resource.text
    assert [f"commonplace://item/{each}" for each in found.completion.values] == [listed["Tides"]]


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
async def test_errors_are_results_where_a_setting_says_so(
    environment: dict[str, str], mode: str
) -> None:
    asked = {**environment, "COMMONPLACE_MCP_ERRORS": "result"}
    server = StdioServerParameters(command=sys.executable, args=COMMAND, env=asked)
    async with Client(server, mode=mode) as client:
        wrong = await client.call_tool("get_item", {"item_id": "nowhere"})
        with pytest.raises(MCPError) as unknown:
            await client.call_tool("forget_everything", {})
    assert wrong.is_error
    assert wrong.content[0].text == "No item 'nowhere'. Use search to find its id."
    assert wrong.structured_content["code"] == -32603
    assert wrong.structured_content["data"]["error"] == "not_found"
    assert unknown.value.code == -32602


async def test_a_revoked_token_is_refused_at_once(
    environment: dict[str, str], data_dir: Path
) -> None:
    cli = Commands(data_dir)
    token = await to_thread.run_sync(cli.json, "token", "create", "--name", "desktop")
    server = StdioServerParameters(
        command=sys.executable,
        args=COMMAND,
        env={**environment, "COMMONPLACE_TOKEN": token["token"]},
    )
    async with Client(server) as client:
        assert "add_to_knowledge" not in [tool.name for tool in (await client.list_tools()).tools]
        await client.call_tool("list_recent", {})
        await to_thread.run_sync(cli.text, "token", "revoke", "desktop")
        with pytest.raises(MCPError) as refused:
            await client.call_tool("list_recent", {})
    assert refused.value.error.data == {"error": "unauthorized"}


def test_every_line_is_answered_and_nothing_else_is_printed(environment: dict[str, str]) -> None:
    call = {
        "jsonrpc": "2.0",
        "id": 3,
        "method": "tools/call",
        "params": {"name": "search_knowledge_base", "arguments": {"query": "HERE"}},
    }
    with Popen(
        [sys.executable, *COMMAND], env=environment, stdin=PIPE, stdout=PIPE, text=True
    ) as process:
        assert process.stdin and process.stdout

        def ask(line: str) -> Any:
            process.stdin.write(line + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        assert ask("not JSON at all")["error"]["code"] == -32700
        too_early = ask(json.dumps(call))
        assert (too_early["id"], too_early["error"]["code"]) == (
            3,
            -32602,
        ) and "send `initialize` first" in too_early["error"]["message"]
        initialized = ask(
            json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE})
        )
        assert initialized["result"]["serverInfo"]["name"] == "commonplace"
        garbled = ask(json.dumps(call).replace("HERE", "\\ud83d"))
        assert (garbled["id"], garbled["error"]["code"]) == (3, -32602)
        assert ask(json.dumps(call))["result"]["structuredContent"]["hits"] == []
        process.stdin.close()
        assert process.stdout.read() == "" and process.wait(20) == 0


def test_a_cancelled_call_ends_and_stores_nothing(environment: dict[str, str]) -> None:
    asked, left = Event(), Event()

    def slow(wire: Wire) -> None:
        asked.set()
        wire.sock.recv(1)  # nothing, when the other end closes
        left.set()

    with web_server() as web:
        web.pages["/slow"] = slow
        with Popen(
            [sys.executable, *COMMAND],
            env={**environment, "COMMONPLACE_FETCH_ALLOW_HOSTS": web.host},
            stdin=PIPE,
            stdout=PIPE,
            text=True,
        ) as process:
            assert process.stdin and process.stdout

            def send(method: str, params: Any, **number: int) -> None:
                message = {"jsonrpc": "2.0", "method": method, "params": params, **number}
                process.stdin.write(json.dumps(message) + "\n")
                process.stdin.flush()

            send("initialize", INITIALIZE, id=1)
            page = {"kind": "url", "url": f"{web.url}/slow"}
            send("tools/call", {"name": "add_to_knowledge", "arguments": page}, id=2)
            assert asked.wait(30)
            send("notifications/cancelled", {"requestId": 2})
            assert left.wait(10)  # long before the fetch would time out
            send("tools/call", {"name": "list_recent"}, id=3)
            answers = [json.loads(process.stdout.readline()) for _ in range(2)]
            process.stdin.close()
            assert process.wait(20) == 0
    assert [answer["id"] for answer in answers] == [1, 3]
    assert answers[1]["result"]["structuredContent"] == {"items": []}


def test_what_was_asked_before_the_input_ended_is_answered(environment: dict[str, str]) -> None:
    asked: list[dict[str, Any]] = [
        {"method": "initialize", "params": INITIALIZE},
        {"method": "tools/list"},
        {
            "method": "tools/call",
            "params": {
                "name": "add_to_knowledge",
                "arguments": {"kind": "text", "title": "Tides", "text": TIDES},
            },
        },
        {"method": "tools/call", "params": {"name": "list_recent"}},
    ]
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": number, **request})
        for number, request in enumerate(asked)
    ]
    gone = json.dumps(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}}
    )
    done = run(
        [sys.executable, *COMMAND],
        env=environment,
        input="\n".join([*lines, gone]),
        stdout=PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    answers = {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}
    assert done.returncode == 0 and len(answers[1]["result"]["tools"]) > 10
    assert answers[2]["result"]["structuredContent"]["status"] == "ready"


def test_a_closed_input_ends_it(environment: dict[str, str]) -> None:
    done = run(
        [sys.executable, *COMMAND],
        env=environment,
        input="",
        stdout=PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")
