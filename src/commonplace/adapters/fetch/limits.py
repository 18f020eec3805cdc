"""Limits on downloads: the time each may take, and how many run at once."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import anyio

from commonplace.errors import IngestFailed

SLOWEST = 1 << 16  # bytes a second that a body must arrive at, once the first budget is used up
TOGETHER, PER_HOST = 16, 4
QUEUE_SECONDS = 60.0


class TimeBudget:
    """Seconds for all requests of one download. Received bytes add to it; queueing is free."""

    def __init__(self, seconds: float) -> None:
        self._whole = self._left = seconds
        self._scope = anyio.CancelScope()
        self._received = False

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time spent inside. Raises IngestFailed when the budget is used up."""
        began = anyio.current_time()
        with anyio.CancelScope(deadline=began + self._left) as self._scope:
            yield
        self._left -= anyio.current_time() - began
        if self._scope.cancelled_caught:
            raise IngestFailed(
                "The server sends too slowly."
                if self._received
                else f"The server did not answer within {self._whole:g} s.",
                transient=True,
            )

    def extend(self, size: int) -> None:
        """Add the time that `size` received bytes may have taken."""
        self._received = True
        self._scope.deadline += size / SLOWEST


class HostLimiter:
    """Limit concurrent requests, in total and per host."""

    def __init__(self) -> None:
        self._all = anyio.Semaphore(TOGETHER)
        self._hosts: dict[str, anyio.Semaphore] = {}
        self._users: Counter[str] = Counter()

    @asynccontextmanager
    async def acquire(self, host: str) -> AsyncIterator[None]:
        with self._of_host(host) as own:
            async with _acquire(own, host), _acquire(self._all, host):
                yield

    @contextmanager
    def _of_host(self, host: str) -> Iterator[anyio.Semaphore]:
        """Provide the host's own semaphore, which is dropped with its last user."""
        self._users[host] += 1
        try:
            yield self._hosts.setdefault(host, anyio.Semaphore(PER_HOST))
        finally:
            self._users[host] -= 1
            if not self._users[host]:
                del self._users[host], self._hosts[host]


@asynccontextmanager
async def _acquire(semaphore: anyio.Semaphore, host: str) -> AsyncIterator[None]:
    with anyio.move_on_after(QUEUE_SECONDS) as scope:
        await semaphore.acquire()
    if scope.cancelled_caught:
        raise IngestFailed(
            f"Too many downloads are waiting before the one from {host}. Try again later.",
            transient=True,
        )
    try:
        yield
    finally:
        semaphore.release()
