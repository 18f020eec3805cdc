"""How long is waited, and how many may ask at once."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import anyio

from commonplace.errors import IngestFailed

SLOWEST = 1 << 16  # bytes a second that a body must come in at, once the first patience is used up
TOGETHER, PER_HOST = 16, 4
QUEUE_SECONDS = 60.0


class TimeBudget:
    """Seconds for all requests of a download together. Bytes that arrive earn more; waiting for a turn costs none."""

    def __init__(self, seconds: float) -> None:
        self._whole = self._left = seconds
        self._scope = anyio.CancelScope()
        self._earned = False

    @contextmanager
    def running(self) -> Iterator[None]:
        began = anyio.current_time()
        with anyio.CancelScope(deadline=began + self._left) as self._scope:
            yield
        self._left -= anyio.current_time() - began
        if self._scope.cancelled_caught:
            raise IngestFailed(
                "The server sends too slowly."
                if self._earned
                else f"The server did not answer within {self._whole:g} s.",
                transient=True,
            )

    def earn(self, size: int) -> None:
        self._earned = True
        self._scope.deadline += size / SLOWEST


class HostLimiter:
    """Manners: few requests at once, and fewer to one host."""

    def __init__(self) -> None:
        self._all = anyio.Semaphore(TOGETHER)
        self._hosts: dict[str, anyio.Semaphore] = {}
        self._interested: Counter[str] = Counter()

    @asynccontextmanager
    async def take(self, host: str) -> AsyncIterator[None]:
        with self._of_host(host) as turn:
            async with _taken(turn, host), _taken(self._all, host):
                yield

    @contextmanager
    def _of_host(self, host: str) -> Iterator[anyio.Semaphore]:
        """The host's own semaphore, which is forgotten when nobody needs it any more."""
        self._interested[host] += 1
        try:
            yield self._hosts.setdefault(host, anyio.Semaphore(PER_HOST))
        finally:
            self._interested[host] -= 1
            if not self._interested[host]:
                del self._interested[host], self._hosts[host]


@asynccontextmanager
async def _taken(turn: anyio.Semaphore, host: str) -> AsyncIterator[None]:
    with anyio.move_on_after(QUEUE_SECONDS) as scope:
        await turn.acquire()
    if scope.cancelled_caught:
        raise IngestFailed(
            f"Too many downloads were waiting before the one from {host}; try again later.",
            transient=True,
        )
    try:
        yield
    finally:
        turn.release()
