"""Hostile connections from many loopback addresses: they end, cost little, and nobody waits."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from random import Random
from time import monotonic

import psutil

from torture.harness import Part, Play, Round, Stage, require
from torture.server import Place, Server

CONNECTIONS = 2_000
PER_ADDRESS = 200  # what one address may have at most
FLOODS = 12  # connections that send as fast as they can; the others are slow
FLOOD_BYTES = 24 << 20  # more than the buffers of both ends hold
GONE_SECONDS = 60.0  # the longest limit is 20 s, for a body that trickles
GROWN_MB = 50.0

Reader, Writer = asyncio.StreamReader, asyncio.StreamWriter
Behave = Callable[["Attack", Reader, Writer], Awaitable[bool]]


class Attack:
    def __init__(
        self, server: Server, random: Random, connections: int, slow: Sequence[str]
    ) -> None:
        self._token, self._random, self._count, self._slow = server.token, random, connections, slow
        self._host, _, port = server.address.rpartition("//")[2].partition(":")
        self._port = int(port)

    async def run(self) -> Counter[str]:
        """How many connections of each kind the server left open, or took everything from."""
        kinds = [self._random.choice(self._slow) for _ in range(self._count)]
        kinds[:FLOODS] = [
            list(FLOODING)[n % len(FLOODING)] for n in range(min(FLOODS, self._count))
        ]
        results = await asyncio.gather(*(self._connect(n, kind) for n, kind in enumerate(kinds)))
        return Counter(kind for kind, ended in zip(kinds, results, strict=True) if not ended)

    async def _connect(self, number: int, kind: str) -> bool:
        """Whether the server ended the connection."""
        address = f"127.0.0.{2 + number // PER_ADDRESS}"
        try:
            async with asyncio.timeout(GONE_SECONDS):
                reader, writer = await asyncio.open_connection(
                    self._host, self._port, local_addr=(address, 0)
                )
        except (OSError, TimeoutError):
            return True
        try:
            async with asyncio.timeout(GONE_SECONDS):
                return await {**SLOW, **FLOODING}[kind](self, reader, writer)
        except TimeoutError:
            return False
        except OSError:
            return True
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    # -- slow: each piece comes in time, all of it never does

    async def trickle(self, reader: Reader, writer: Writer, head: bytes) -> bool:
        ended = asyncio.create_task(reader.read())
        try:
            writer.write(head)
            while not ended.done():
                await asyncio.wait([ended], timeout=1.0)
                writer.write(b"a")
                await writer.drain()
            return True
        finally:
            ended.cancel()
            with suppress(asyncio.CancelledError, OSError):
                await ended

    async def half_header(self, reader: Reader, writer: Writer) -> bool:
        return await self.trickle(
            reader, writer, b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-a: "
        )

    async def half_line(self, reader: Reader, writer: Writer) -> bool:
        return await self.trickle(reader, writer, b"GET /heal")

    async def slow_body(self, reader: Reader, writer: Writer) -> bool:
        return await self.trickle(
            reader,
            writer,
            self._post(
                "/api/v1/ingest", f"Authorization: Bearer {self._token}", "Content-Length: 1000000"
            ),
        )

    async def strangers_body(self, reader: Reader, writer: Writer) -> bool:
        return await self.trickle(reader, writer, self._post("/mcp", "Content-Length: 1000000"))

    async def silence(self, reader: Reader, writer: Writer) -> bool:
        await reader.read()
        return True

    async def noise(self, reader: Reader, writer: Writer) -> bool:
        writer.write(self._random.randbytes(300))
        await reader.read()
        return True

    # -- flooding

    async def flood(self, writer: Writer, head: bytes, piece: bytes) -> bool:
        """Whether it was refused before it was taken whole."""
        try:
            writer.write(head)
            for _ in range(FLOOD_BYTES // len(piece)):
                writer.write(piece)
                await writer.drain()
        except OSError:
            return True
        return False

    async def endless_header(self, reader: Reader, writer: Writer) -> bool:
        return await self.flood(
            writer, b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-a: ", b"a" * 65536
        )

    async def endless_lines(self, reader: Reader, writer: Writer) -> bool:
        return await self.flood(
            writer, b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n", b"X-a: aaaaaaa\r\n" * 4096
        )

    async def strangers_chunks(self, reader: Reader, writer: Writer) -> bool:
        head = self._post("/api/v1/uploads/nothing/content", "Transfer-Encoding: chunked").replace(
            b"POST", b"PUT", 1
        )
        return await self.flood(writer, head, b"10000\r\n" + b"a" * 65536 + b"\r\n")

    def _post(self, path: str, *lines: str) -> bytes:
        return "\r\n".join(
            [
                f"POST {path} HTTP/1.1",
                "Host: 127.0.0.1",
                "Content-Type: application/json",
                *lines,
                "",
                "",
            ]
        ).encode()


SLOW: dict[str, Behave] = {
    "half header": Attack.half_header,
    "half line": Attack.half_line,
    "slow body": Attack.slow_body,
    "a stranger's body": Attack.strangers_body,
    "silence": Attack.silence,
    "noise": Attack.noise,
}
FLOODING: dict[str, Behave] = {
    "endless header": Attack.endless_header,
    "endless header lines": Attack.endless_lines,
    "a stranger's chunks": Attack.strangers_chunks,
}


def open_connections(server: Server) -> int:
    return sum(
        each.status == psutil.CONN_ESTABLISHED
        for each in psutil.Process(server.process.pid).net_connections("tcp")
    )


@contextmanager
def open_sockets(
    stage: Stage, connections: int = CONNECTIONS, slow: Sequence[str] = ()
) -> Iterator[Play]:
    with Place(stage.folder / "data").serve() as server:
        server.add("A heron stands in the river.")

        def play(round: Round) -> None:
            before = open_connections(server)
            began = monotonic()
            with server.watch(stage.vitals):
                left = asyncio.run(
                    Attack(server, round.random, connections, slow or list(SLOW)).run()
                )
            require(
                not left, f"Not ended by the server in {monotonic() - began:.0f} s: {dict(left)}"
            )
            require(
                open_connections(server) <= before + 1,
                f"{open_connections(server)} connections are still open.",
            )
            require(server.search("heron"), "Search does not work afterwards.")
            stage.require_calm(GROWN_MB)

        yield play


PART = Part("sockets", rounds=4, long_rounds=100, share=2, open=open_sockets)
