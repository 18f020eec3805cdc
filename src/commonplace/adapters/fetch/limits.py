"""Limits on downloads: the time and size of each, and how many run at once."""

import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import BinaryIO
from weakref import WeakValueDictionary

import anyio

from commonplace.errors import IngestFailed, StorageFailed

SLOWEST = 1 << 16  # bytes a second that a body must arrive at, once the first budget is used up
TOGETHER, PER_HOST = 16, 4
QUEUE_SECONDS = 60.0
_PIECE = 1 << 18  # decompressed at once; bounds the memory that a zip bomb can take
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS


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
        async with (
            _acquire(self._hosts.setdefault(host, anyio.Semaphore(PER_HOST)), host),
            _acquire(self._all, host),
        ):
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


class BodyWriter:
    """Write a body of at most `max_bytes`, compressed and decompressed.

    `encoding` is the Content-Encoding; with `empty`, an empty body is accepted.
    """

    def __init__(self, file: BinaryIO, encoding: str, max_bytes: int, *, empty: bool) -> None:
        name = encoding.strip().lower()
        if name not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise IngestFailed(f"The response has an unknown compression ({name[:40]}).")
        self._compressed = name not in ("", "identity")
        self._file, self._may_be_empty = file, empty
        self._max_bytes, self._received, self.size = max_bytes, 0, 0
        self._decompressor = zlib.decompressobj(_GZIP_OR_ZLIB)

    def check_length(self, length: str | None) -> None:
        """Refuse a body that is too large by its Content-Length, before reading any of it."""
        if length is not None and length.isdecimal() and int(length) > self._max_bytes:
            raise self._too_large()

    def write(self, data: bytes) -> None:
        self._received += len(data)
        if self._received > self._max_bytes:
            raise self._too_large()
        if self._compressed:
            self._decompress(data)
        else:
            self._store(data)

    def finish(self) -> None:
        if self._compressed and self._received and not self._decompressor.eof:
            raise IngestFailed("The response ended before it was complete.", transient=True)
        if not self.size and not self._may_be_empty:
            raise IngestFailed("The response is empty.")

    def _decompress(self, data: bytes) -> None:
        try:
            while data:
                if self._decompressor.eof:
                    if not data.startswith(b"\x1f"):
                        return  # padding, which browsers ignore too
                    # A gzip file may have several members.
                    self._decompressor = zlib.decompressobj(_GZIP_OR_ZLIB)
                self._store(self._decompressor.decompress(data, _PIECE))
                data = self._decompressor.unconsumed_tail or self._decompressor.unused_data
        except zlib.error:
            raise IngestFailed("The response's compression is damaged.") from None

    def _store(self, data: bytes) -> None:
        self.size += len(data)
        if self.size > self._max_bytes:
            raise self._too_large()
        try:
            self._file.write(data)
        except OSError as error:
            raise StorageFailed(f"The download cannot be written ({error.strerror}).") from error

    def _too_large(self) -> IngestFailed:
        return IngestFailed(f"The file is larger than {self._max_bytes / 1e6:.3g} MB.")
