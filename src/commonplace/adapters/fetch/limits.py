"""Limits on downloads: the time each may take, and how many run at once."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from weakref import WeakValueDictionary

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
        # A host's semaphore is dropped with its last request.
        self._hosts: WeakValueDictionary[str, anyio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def acquire(self, host: str) -> AsyncIterator[None]:
        own = self._hosts.setdefault(host, anyio.Semaphore(PER_HOST))
        async with _acquire(own, host), _acquire(self._all, host):
            yield


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
