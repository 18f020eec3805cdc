"""Connections that mean no good: they end, cost little, and nobody else waits for them."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from starlette.types import ASGIApp, Receive, Scope, Send

from commonplace.interfaces.http import connections
from commonplace.interfaces.http.connections import LimitedServer
from commonplace.interfaces.http.gate import MAX_ANONYMOUS_BODY
from tests.interfaces.house import House, open_house

pytestmark = pytest.mark.anyio
FLOOD = 24 * 1024 * 1024  # far more than both ends' socket buffers hold
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@dataclass
class Served:
    house: House
    server: LimitedServer
    port: int
    peers: list["Peer"] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def connect(self) -> "Peer":
        peer = Peer(*await asyncio.open_connection("127.0.0.1", self.port))
        self.peers.append(peer)
        return peer

    async def is_healthy(self) -> bool:
        async with httpx.AsyncClient(timeout=20) as client:
            return (await client.get(f"{self.url}/healthz")).status_code == 200

    async def later(self, seconds: float) -> None:
        """What happens when that much time has passed."""
        now = asyncio.get_running_loop().time()
        for connection in list(self.server.server_state.connections):
            connection.check(now + seconds)  # type: ignore[union-attr]


@dataclass
class Peer:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def flood(self, piece: bytes, upto: int = FLOOD) -> int:
        """Send the same bytes again and again; how many the server and the sockets took."""
        sent = 0
        try:
            while sent < upto:
                await self.send(piece)
                sent += len(piece)
        except ConnectionError:
            self.reader._exception = None  # type: ignore[attr-defined]  # what came before can still be read
        return sent

    async def answer(self) -> tuple[int, dict[bytes, bytes], bytes]:
        async with asyncio.timeout(60):
            status = int((await self.reader.readline()).split()[1])
            headers = {}
            while line := (await self.reader.readline()).strip():
                name, _, value = line.partition(b":")
                headers[name.lower()] = value.strip()
            return (
                status,
                headers,
                await self.reader.readexactly(int(headers.get(b"content-length", 0))),
            )

    async def rest(self) -> bytes:
        """Everything until the server closes."""
        async with asyncio.timeout(60):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b""

    def close(self) -> None:
        self.writer.transport.abort()


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110 (nothing here has an event to wait for)
            await asyncio.sleep(0.01)


@asynccontextmanager
async def serving(
    data_dir: Path, app: ASGIApp | None = None, **wanted: Any
) -> AsyncIterator[Served]:
    async with open_house(data_dir, **wanted) as house:
        with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
            server = LimitedServer(
                app or house.asgi, house.app.settings, timeout_graceful_shutdown=1
            )
            server.config.lifespan = "off"
            serving = asyncio.create_task(server._serve([listener]))
            await until(lambda: bool(server.started))
            served = Served(house, server, listener.getsockname()[1])
            try:
                yield served
            finally:
                for peer in served.peers:
                    peer.close()
                server.should_exit = True
                await serving


@pytest.fixture(scope="module")
async def one_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    async with serving(tmp_path_factory.mktemp("sockets") / "data") as opened:
        yield opened


@pytest.fixture
def served(one_server: Served) -> Iterator[Served]:
    yield one_server
    for peer in one_server.peers:
        peer.close()
    one_server.peers.clear()


@pytest.fixture(autouse=True)
def no_long_goodbyes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "LINGER_SECONDS", 0.2)


# -- headers


@pytest.mark.parametrize(
    "endless",
    [
        HEALTH + b"X-A: ",
        HEALTH + b"X-A: 1\r\n" * 90 + b"X-",
        b"GET /",
        b"\r\n",
        b"G",
        HEALTH + b"\r\n" + HEALTH + b"X-A: ",
        HEALTH + b"Transfer-Encoding: chunked\r\n\r\n5;x=",
        HEALTH + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX-Trailer: ",
    ],
    ids=[
        "value",
        "name",
        "target",
        "blank lines",
        "method",
        "second request",
        "chunk extension",
        "trailer",
    ],
)
async def test_an_endless_header_is_cut(served: Served, endless: bytes) -> None:
    peer = await served.connect()
    await peer.send(endless)
    piece = b"\r\n" * 8192 if endless == b"\r\n" else b"a" * 16_384
    assert await peer.flood(piece) < FLOOD
    assert await served.is_healthy()


async def test_headers_of_64_kb_are_too_large_and_said_to_be(served: Served) -> None:
    peer = await served.connect()
    await peer.send(HEALTH + b"X-A: " + b"a" * 70_000)  # not even complete
    status, headers, body = await peer.answer()
    assert (status, headers[b"connection"], json.loads(body)["error"]) == (
        431,
        b"close",
        "headers_too_large",
    )
    assert await peer.rest() == b""
    peer = await served.connect()
    await peer.send(HEALTH + b"X-A: " + b"a" * 60_000 + b"\r\n\r\n")
    assert (await peer.answer())[0] == 200


@pytest.mark.parametrize(("lines", "status"), [(99, 200), (101, 431), (10_000, 431)])
async def test_a_request_has_at_most_100_header_lines(
    served: Served, lines: int, status: int
) -> None:
    peer = await served.connect()
    await peer.send(HEALTH + b"a:\r\n" * lines + b"\r\n")
    assert (await peer.answer())[0] == status


async def test_many_small_requests_on_one_connection_are_not_taken_for_one_large(
    served: Served,
) -> None:
    peer = await served.connect()
    count = 100_000 // len(HEALTH + b"\r\n")
    sending = asyncio.create_task(peer.send((HEALTH + b"\r\n") * count))
    for _ in range(count):
        assert (await peer.answer())[0] == 200
    await sending


async def test_half_sent_headers_are_gone_after_ten_seconds(served: Served) -> None:
    peers = [await served.connect() for _ in range(150)]
    for peer in peers[:-1]:
        await peer.send(HEALTH)
    assert await served.is_healthy()
    await served.later(9)
    assert not any(peer.reader.at_eof() for peer in peers)
    await served.later(11)
    answers = [await peer.rest() for peer in peers]
    assert all(b" 408 " in answer for answer in answers[:-1])
    assert answers[-1] == b""  # who sent nothing is told nothing


async def test_dribbling_bytes_does_not_prolong_a_header(served: Served) -> None:
    peer = await served.connect()
    for byte in HEALTH:
        await peer.send(bytes([byte]))
        await served.is_healthy() if byte == HEALTH[-1] else await asyncio.sleep(0)
    await served.later(11)
    assert b" 408 " in await peer.rest()


async def test_blank_lines_do_not_keep_an_idle_connection_open(served: Served) -> None:
    peer = await served.connect()
    await peer.send(HEALTH + b"\r\n")
    await peer.answer()
    await peer.send(b"\r\n")
    await served.is_healthy()
    await served.later(11)
    assert await peer.rest() is not None


# -- bodies


def post(path: str, body: str, extra: str = "") -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{body}\r\n{extra}\r\n".encode()


CHUNKED, LARGE = "Transfer-Encoding: chunked", "Content-Length: 314572800"
REFUSED = [
    (post("/mcp", CHUNKED), 401),
    (post("/mcp", LARGE), 401),
    (post("/api/v1/ingest", CHUNKED, "Authorization: Bearer sk_no\r\n"), 401),
    (post("/api/v1/uploads/x/content", CHUNKED).replace(b"POST", b"PUT", 1), 401),
    (
        post("/api/v1/uploads/x/content?expires=1&signature=y", LARGE).replace(b"POST", b"PUT", 1),
        401,
    ),
    (post("/api/v1/webhooks/transcription/gladia?secret=x", CHUNKED), 401),
    (post("/metrics", CHUNKED), 401),
    (post("/items", CHUNKED), 401),
    (post("/nowhere", CHUNKED), 401),
    (post("/mcp", CHUNKED).replace(b"127.0.0.1", b"evil.example"), 421),
    (post("/mcp", CHUNKED, "Origin: https://evil.example\r\n"), 401),
    (post("/sign-in", CHUNKED, "Origin: https://evil.example\r\n"), 403),
    (post("/oauth/token", LARGE), 413),
    (post("/sign-in", LARGE), 413),
    (post("/api/v1/invitations/accept", LARGE), 413),
    (post("/healthz", CHUNKED), 405),
]


@pytest.mark.parametrize(("head", "status"), REFUSED, ids=lambda each: str(each)[:60])
async def test_the_body_of_a_refused_request_is_not_read(
    served: Served, head: bytes, status: int
) -> None:
    """The answer comes before any of it is sent, and the rest is not taken."""
    peer = await served.connect()
    await peer.send(head)
    answered, headers, _ = await peer.answer()
    assert (answered, headers[b"connection"]) == (status, b"close")
    assert await peer.flood(b"4000\r\n" + b"a" * 0x4000 + b"\r\n") < FLOOD


@pytest.mark.parametrize("path", ["/sign-in", "/api/v1/invitations/accept"])
async def test_who_has_no_account_yet_sends_little(served: Served, path: str) -> None:
    peer = await served.connect()
    await peer.send(post(path, CHUNKED, "Content-Type: application/x-www-form-urlencoded\r\n"))
    assert await peer.flood(b"4000\r\n" + b"a" * 0x4000 + b"\r\n") < FLOOD
    assert (await peer.answer())[0] == 413


async def test_the_refusal_names_the_limit_that_holds(served: Served) -> None:
    peer = await served.connect()
    await peer.send(post("/api/v1/invitations/accept", f"Content-Length: {MAX_ANONYMOUS_BODY + 1}"))
    status, _, body = await peer.answer()
    assert (status, f"{MAX_ANONYMOUS_BODY:,} bytes" in json.loads(body)["message"]) == (413, True)


async def test_a_refused_client_that_sends_first_can_still_read_why(served: Served) -> None:
    async with httpx.AsyncClient() as client:
        for size in (10, 100_000, 1_000_000):
            response = await client.post(f"{served.url}/mcp", content=b"x" * size)
            assert response.status_code == 401
            assert response.json()["error"] == "unauthorized"


async def test_a_body_that_trickles_is_ended_and_one_that_flows_is_not(served: Served) -> None:
    token = served.house.tokens["owner"]
    peers = [await served.connect() for _ in range(2)]
    for peer in peers:
        await peer.send(
            post("/api/v1/ingest", "Content-Length: 1000000", f"Authorization: Bearer {token}\r\n")
        )
    for peer, amount in zip(peers, (10, 60_000), strict=True):
        await peer.send(b"x" * amount)
    await until(lambda: len(served.server.server_state.tasks) == 2)
    await asyncio.sleep(0.05)
    await served.later(19)
    assert not peers[0].reader.at_eof()
    await served.later(19 + 5)
    assert b" 408 " in await peers[0].rest()
    assert not peers[1].reader.at_eof()
    await served.later(19 + 5 + 90)
    assert b" 408 " in await peers[1].rest()
    assert await served.is_healthy()


async def test_the_clock_stands_while_the_server_keeps_the_client_waiting(data_dir: Path) -> None:
    """Neither a server that reads slowly, nor one that takes long to answer, makes the client a slow one."""
    size = 16 * 1024 * 1024

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        began.set()
        await go_on.wait()
        while (await receive())["more_body"]:
            pass
        read.set()
        go_on.clear()
        await go_on.wait()
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    for expect in ("", "Expect: 100-continue\r\n"):
        began, go_on, read = asyncio.Event(), asyncio.Event(), asyncio.Event()
        async with serving(data_dir / (expect[:6] or "plain"), app) as served:
            peer = await served.connect()
            await peer.send(post("/", f"Content-Length: {size}", expect))
            sending = None if expect else asyncio.create_task(peer.send(b"x" * size))
            await began.wait()
            [connection] = served.server.server_state.connections
            await until(lambda expects=expect, flow=connection.flow: expects or flow.read_paused)
            await served.later(1000)
            go_on.set()
            if expect:
                assert (await peer.answer())[0] == 100
                sending = asyncio.create_task(peer.send(b"x" * size))
            await read.wait()
            await served.later(2000)  # the answer takes its time
            go_on.set()
            assert (await peer.answer())[0] == 204
            await sending


async def test_expect_100_continue_is_answered_for_bodies_that_are_wanted(served: Served) -> None:
    body = json.dumps({"kind": "text", "title": "Fox", "text": "The quick brown fox."}).encode()
    for token, statuses in ((served.house.tokens["owner"], [100, 201]), ("sk_wrong", [401])):
        peer = await served.connect()
        await peer.send(
            post(
                "/api/v1/ingest",
                f"Content-Length: {len(body)}",
                f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n",
            )
        )
        for status in statuses:
            assert (await peer.answer())[0] == status
            if status == 100:
                await peer.send(body)
        peer.close()


async def test_connections_are_kept_for_whoever_behaves(served: Served) -> None:
    peer = await served.connect()
    for _ in range(3):
        await peer.send(post("/mcp", "Content-Length: 2") + b"{}")
        status, headers, _ = await peer.answer()
        assert (status, headers.get(b"connection")) == (401, None)


# -- connections


async def test_no_more_connections_than_the_setting_says(data_dir: Path) -> None:
    async with serving(data_dir, max_connections=10) as served:
        peers = [await served.connect() for _ in range(10)]
        await until(lambda: len(served.server.server_state.connections) == 10)
        extras = [await served.connect() for _ in range(20)]
        for extra in extras[:4]:  # at once
            assert b" 503 " in await extra.rest()
        await extras[4].send(post("/sign-in", "Content-Length: 0"))
        assert (await extras[4].answer())[0] == 503
        for _ in range(20):  # as often as you like, so that nobody takes the server for dead
            assert await served.is_healthy()
        await served.later(3)
        for extra in extras[-10:]:
            await extra.rest()
        await until(lambda: len(served.server.server_state.connections) == 10)
        peers.pop().close()
        await until(lambda: len(served.server.server_state.connections) == 9)
        assert await served.is_healthy()


async def many(served: Served, count: int) -> int:
    """How many of so many connections are let in."""
    peers = [await served.connect() for _ in range(count)]
    served_ones = 0
    for peer in peers:
        try:
            await peer.send(b"GET /favicon.ico HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            served_ones += (await peer.answer())[0] == 200
        except (ConnectionError, IndexError):
            pass
    for peer in peers:
        peer.close()
    return served_ones


@pytest.mark.parametrize(
    ("wanted", "let_in"),
    [({}, 200), ({"trusted_proxies": "127.0.0.0/8"}, 220), ({"max_connections": 0}, 220)],
)
async def test_one_address_has_200_connections_unless_it_is_a_proxy(
    data_dir: Path, wanted: Any, let_in: int
) -> None:
    async with serving(data_dir, **wanted) as served:
        assert await many(served, 220) == let_in


async def test_a_closed_connection_makes_room(data_dir: Path) -> None:
    async with serving(data_dir, max_connections=5) as served:
        for _ in range(20):
            assert await many(served, 5) == 5
            await until(lambda: not served.server.server_state.connections)


async def test_a_client_that_takes_nothing_of_its_answer_is_let_go(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = await served.connect()
    peer.reader._transport.pause_reading()  # type: ignore[attr-defined]
    await peer.send((HEALTH.replace(b"/healthz", b"/openapi.json") + b"\r\n") * 60)
    [connection] = served.server.server_state.connections
    await until(lambda: bool(connection.transport.get_write_buffer_size()))
    await asyncio.sleep(0.5)
    await served.later(0)
    await served.later(connections.UNREAD_SECONDS + 1)
    await until(lambda: not served.server.server_state.connections)


# -- smuggling and nonsense


@pytest.mark.parametrize(
    "nonsense",
    [
        post("/healthz", "Content-Length: 5\r\nTransfer-Encoding: chunked"),
        post("/healthz", "Content-Length: 5\r\nContent-Length: 6"),
        post("/healthz", "Transfer-Encoding: xchunked"),
        post("/healthz", "Content-Length : 5"),
        post("/healthz", "Content-Length: -1"),
        post("/healthz", "Content-Length: 5, 5"),
        b"GET /healthz HTTP/1.1\nHost: 127.0.0.1\n\n",
        b"\x16\x03\x01\x02\x00\x01",
        b"CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\n",
        post("/mcp", "Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2") + b"{}",
    ],
)
async def test_ambiguous_requests_are_refused(served: Served, nonsense: bytes) -> None:
    peer = await served.connect()
    await peer.send(nonsense)
    status, headers, _ = await peer.answer()
    assert (status, headers[b"connection"]) == (400, b"close")


async def test_refused_requests_do_not_fill_the_log(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    for nonsense in (
        b"nonsense\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n" + b"X-a: b\r\n" * 101 + b"\r\n",
    ):
        peer = await served.connect()
        await peer.send(nonsense)
        assert (await peer.answer())[0] in (400, 431)
    assert not caplog.records


async def test_what_follows_an_upgrade_is_no_request(served: Served) -> None:
    peer = await served.connect()
    await peer.send(
        HEALTH + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n"
        b"Sec-WebSocket-Version: 13\r\n\r\n"
    )
    status, headers, _ = await peer.answer()
    assert (status, headers[b"connection"]) == (200, b"close")
    assert await peer.rest() == b""


async def test_trailers_are_no_headers(data_dir: Path) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive())["more_body"]:
            pass
        names = b",".join(name for name, _ in scope["headers"])
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-length", b"%d" % len(names))],
            }
        )
        await send({"type": "http.response.body", "body": names})

    async with serving(data_dir, app) as plain:
        peer = await plain.connect()
        await peer.send(post("/", CHUNKED) + b"1\r\nx\r\n0\r\nX-Forwarded-For: 10.0.0.1\r\n\r\n")
        assert (await peer.answer())[2] == b"host,transfer-encoding"


def pieces(data: bytes, cuts: list[int]) -> Iterator[bytes]:
    bounds = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return (data[start:end] for start, end in pairwise(bounds) if end > start)


async def test_how_bytes_are_cut_changes_no_answer(served: Served) -> None:
    """Any split of a good stream gives the same answers; any damage gives an answer or a close, never silence."""
    stream = (
        (HEALTH + b"\r\n") * 3
        + post("/mcp", "Content-Length: 40")
        + b"x" * 40
        + post("/mcp", CHUNKED)
        + b"5;a=b\r\nabcde\r\n0\r\nT: 1\r\n\r\n"
        + HEALTH
        + b"Connection: close\r\n\r\n"
    )
    loop = asyncio.get_running_loop()

    async def talk(parts: list[bytes]) -> list[int]:
        peer = await served.connect()
        for part in parts:
            try:
                await peer.send(part)
            except ConnectionError:
                break
            await asyncio.sleep(0)
        peer.writer.write_eof() if peer.writer.can_write_eof() else None
        said = await peer.rest()
        peer.close()
        return [
            int(line.split()[1]) for line in said.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")
        ]

    @settings(suppress_health_check=list(HealthCheck))
    @given(
        st.lists(st.integers(0, len(stream)), max_size=12),
        st.none() | st.tuples(st.integers(0, len(stream) - 1), st.integers(0, 255)),
    )
    def explore(cuts: list[int], damage: tuple[int, int] | None) -> None:
        data = (
            stream
            if damage is None
            else stream[: damage[0]] + bytes([damage[1]]) + stream[damage[0] + 1 :]
        )
        statuses = asyncio.run_coroutine_threadsafe(talk(list(pieces(data, cuts))), loop).result(30)
        assert all(status < 500 for status in statuses)

    await asyncio.to_thread(explore)
    assert await served.is_healthy()


# -- bytes that are no UTF-8

PLACES = [
    "/api/v1/items?q=%E9&page=%E9&folder_id=%E9",
    "/api/v1/items/%E9",
    "/api/v1/items/%E9/versions",
    "/api/v1/folders/%E9",
    "/api/v1/disks?tag=%E9&category=%E9&search=%E9&scope=%E9",
    "/api/v1/disks/%E9",
    "/api/v1/jobs/%E9",
    "/api/v1/tokens/%E9",
    "/api/v1/uploads/%E9/content?expires=%E9&signature=%E9",
    "/api/v1/webhooks/transcription/%E9?secret=%E9",
    "/api/v1/search",
    "/api/v1/ingest",
    "/api/entities?type=%E9&tag=%E9",
    "/api/entities/%E9",
    "/api/tasks/%E9",
    "/mcp?%E9",
    "/mcp/%E9",
    "/api/v1/invitations/accept",
    "/?q=%E9&tag=%E9&folder=%E9",
    "/search?q=%E9",
    "/items/%E9",
    "/d/%E9",
    "/claim/%E9",
    "/join/%E9",
    "/sign-in?next=%E9",
    "/static/%E9/%E9",
    "/%E9",
    "/healthz?%E9",
    "/readyz/%E9",
    "/%ED%A0%80",
    "/%00",
    "/%",
]
NAMES = [
    "Cookie",
    "User-Agent",
    "Origin",
    "Referer",
    "Accept",
    "Accept-Encoding",
    "Content-Type",
    "Content-Range",
    "X-Csrf-Token",
    "Idempotency-Key",
    "X-Forwarded-For",
    "X-Forwarded-Proto",
    "Mcp-Protocol-Version",
    "Mcp-Session-Id",
    "Sec-Fetch-Site",
    "X-Commonplace-Secret",
    "If-Match",
    "Last-Event-Id",
]


async def ask(served: Served, method: str, path: str, lines: str, body: bytes = b"") -> int:
    peer = await served.connect()
    await peer.send(
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: {len(body)}\r\n"
        f"{lines}\r\n".encode("latin-1")
        + body
    )
    said = await peer.rest()
    peer.close()
    return int(said.split(maxsplit=2)[1])


async def test_latin_1_anywhere_is_no_failure_of_the_server(
    data_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(data_dir, trusted_proxies="127.0.0.1") as served:
        tokens = [
            f"Authorization: Bearer {token}\r\n"
            for token in (served.house.tokens["owner"], "é", "sk_é", "é.é.é")
        ]
        json_type, form = (
            "Content-Type: application/json\r\n",
            "Content-Type: application/x-www-form-urlencoded\r\n",
        )
        for path in PLACES:
            for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
                for lines, body in (
                    (json_type, '{"q":"é","query":"é","token":"é"}'.encode("latin-1")),
                    (form, b"csrf=%E9&q=\xe9"),
                ):
                    assert await ask(served, method, path, tokens[0] + lines, body) < 500, (
                        method,
                        path,
                        lines,
                    )
        for path in ("/api/v1/items", "/mcp", "/", "/healthz", "/metrics"):
            for token in tokens:
                assert await ask(served, "GET", path, token) < 500, (path, token)
            for name in NAMES:
                assert (
                    await ask(served, "POST", path, f"{tokens[0]}{name}: é\xff\r\n", b"\xe9") < 500
                ), (path, name)
            assert await ask(served, "GET", path, "Host: é\r\n") < 500
    assert "Traceback" not in caplog.text
