"""Clients that leave while their call runs: with the newest protocol that cancels it, with the older one it does not."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from commonplace.interfaces.mcp.server import Toolset
from tests.interfaces.test_hostile_sockets import Peer, Served, serving, until
from tests.interfaces.test_mcp import request
from tests.webserver import WebServer, Wire, page, web_server

pytestmark = pytest.mark.anyio

ARTICLE = "<article><h1>Tides</h1>" + "<p>The moon pulls the sea twice a day.</p>" * 20
PROGRESS = {"plain": {}, "with progress": {"progressToken": "p"}}


@dataclass
class SlowPage:
    """A page that is asked for at once, and answers when the test lets it."""

    web: WebServer
    ready: Event = field(default_factory=Event)

    @property
    def url(self) -> str:
        return f"{self.web.url}/slow"

    def answer(self, wire: Wire) -> None:
        while not self.ready.wait(0.02):
            if wire.closing.is_set():
                return
        page(ARTICLE)(wire)

    async def asked_for(self) -> None:
        await until(lambda: self.web.requests)


@pytest.fixture
def slow() -> Any:
    with web_server() as web:
        source = SlowPage(web)
        web.pages["/slow"] = source.answer
        yield source


@pytest.fixture
async def served(data_dir: Path, slow: SlowPage) -> AsyncIterator[Served]:
    async with serving(data_dir, fetch_allow_hosts=slow.web.host) as opened:
        yield opened


def post(served: Served, era: str, body: bytes) -> bytes:
    lines = [
        "POST /mcp HTTP/1.1",
        "Host: 127.0.0.1",
        f"Authorization: Bearer {served.house.tokens['owner']}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"MCP-Protocol-Version: {era}",
        "Mcp-Method: tools/call",
        f"Mcp-Name: {json.loads(body)['params']['name']}",
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def call(served: Served, era: str, name: str, arguments: Any, **meta: Any) -> Peer:
    peer = await served.connect()
    message = json.dumps(request(era, arguments, name, **meta)).encode()
    await peer.send(post(served, era, message))
    return peer


async def add_and_leave(served: Served, slow: SlowPage, era: str, meta: dict[str, str]) -> None:
    peer = await call(served, era, "add_to_knowledge", {"kind": "url", "url": slow.url}, **meta)
    await slow.asked_for()
    peer.close()
    await until(lambda: not served.server.server_state.connections)


async def titles(served: Served) -> list[str]:
    return [item.title for item in await served.house.app.library.recent(served.house.owner, 10)]


async def until_stored(served: Served) -> None:
    async with asyncio.timeout(30):
        while not await titles(served):  # noqa: ASYNC110 (nothing here has an event to wait for)
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("meta", PROGRESS.values(), ids=PROGRESS)
async def test_leaving_cancels_a_call_of_the_newest_protocol(
    served: Served, slow: SlowPage, meta: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    await add_and_leave(served, slow, "2026-07-28", meta)
    # It ends although its page has not answered yet.
    await until(lambda: not served.server.server_state.tasks)
    slow.ready.set()
    assert await served.is_healthy()
    assert await titles(served) == []
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.parametrize("meta", PROGRESS.values(), ids=PROGRESS)
async def test_leaving_does_not_cancel_a_call_of_the_older_protocol(
    served: Served, slow: SlowPage, meta: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    await add_and_leave(served, slow, "2025-11-25", meta)
    slow.ready.set()
    await until_stored(served)
    assert await titles(served) == ["Tides"]
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_what_was_left_ends_with_the_server(
    data_dir: Path, slow: SlowPage, caplog: pytest.LogCaptureFixture
) -> None:
    def calls() -> list[str]:
        names = [task.get_coro().__qualname__ for task in asyncio.all_tasks()]  # type: ignore[union-attr]
        return [name for name in names if name == Toolset.call.__qualname__]

    async with serving(data_dir, fetch_allow_hosts=slow.web.host) as served:
        await add_and_leave(served, slow, "2025-11-25", PROGRESS["with progress"])
        assert len(calls()) == 1
    assert calls() == []
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_requests_that_follow_a_slow_one_are_answered(served: Served, slow: SlowPage) -> None:
    """Watching the client must not swallow what it sends next."""
    era = "2026-07-28"
    arguments = {"kind": "url", "url": slow.url}
    peer = await call(served, era, "add_to_knowledge", arguments)
    await slow.asked_for()
    for _ in range(2):
        await peer.send(post(served, era, json.dumps(request(era, {})).encode()))
    slow.ready.set()
    answers = [json.loads((await peer.answer())[2]) for _ in range(3)]
    assert answers[0]["result"]["structuredContent"]["status"] == "ready"
    for answer in answers[1:]:
        assert answer["result"]["structuredContent"]["items"][0]["title"] == "Tides"


async def test_a_client_that_left_holds_nothing_back(served: Served, slow: SlowPage) -> None:
    """The same page can be added again at once: no lock, job or half an item is left behind."""
    await add_and_leave(served, slow, "2026-07-28", {})
    await until(lambda: not served.server.server_state.tasks)
    slow.ready.set()
    peer = await call(served, "2026-07-28", "add_to_knowledge", {"kind": "url", "url": slow.url})
    status, _, body = await peer.answer()
    assert status == 200 and json.loads(body)["result"]["structuredContent"]["status"] == "ready"
    assert await titles(served) == ["Tides"]
