"""A pool of reader processes: started on demand, killed when too slow, gone when idle.

Messages are JSON: a pickle from a process that a hostile file took over could run code in the
server.
"""

import json
import os
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from subprocess import PIPE
from typing import Any

from anyio import (
    BrokenResourceError,
    CancelScope,
    ClosedResourceError,
    EndOfStream,
    Event,
    IncompleteRead,
    fail_after,
    open_process,
)
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from commonplace.adapters.extract.input_file import LARGEST_ANSWER, UNREADABLE, Caps, Source
from commonplace.errors import IngestFailed
from commonplace.model import Json

_CPU_EXCEEDED = -getattr(signal, "SIGXCPU", 1)
# The only variables that a reader gets; keys and passwords stay in the server.
_ENVIRONMENT = (
    "PATH",
    "PYTHONPATH",
    "LD_LIBRARY_PATH",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "TESSDATA_PREFIX",
    "TZ",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
)


class _ReaderDied(Exception):
    """The process ended, or sent something that is not an answer."""


class _FairSemaphore:
    """A semaphore that serves queues in turn.

    A caller with many waiting files delays those of other queues by one file, not by all.
    """

    def __init__(self, free: int) -> None:
        self._free = free
        self._queues: dict[str, deque[Event]] = {}  # the next in turn first

    @asynccontextmanager
    async def acquire(self, queue: str) -> AsyncIterator[None]:
        if self._free:
            self._free -= 1
        else:
            await self._wait(queue)
        try:
            yield
        finally:
            self._release()

    async def _wait(self, queue: str) -> None:
        turn = Event()
        self._queues.setdefault(queue, deque()).append(turn)
        try:
            await turn.wait()
        except BaseException:
            if turn.is_set():
                self._release()
            else:
                waiting = self._queues[queue]
                waiting.remove(turn)
                if not waiting:
                    del self._queues[queue]
            raise

    def _release(self) -> None:
        if not self._queues:
            self._free += 1
            return
        queue = next(iter(self._queues))
        waiting = self._queues.pop(queue)
        waiting.popleft().set()
        if waiting:
            self._queues[queue] = waiting  # behind all others


class ProcessPool:
    def __init__(self, processes: int, caps: Caps) -> None:
        self._caps = caps
        self._processes = _FairSemaphore(processes)
        self._idle: list[_Reader] = []

    async def ask(self, verb: str, source: Source, queue: str, **options: Any) -> Json:
        """Return a reader's answer. Raises IngestFailed when it fails or has to be stopped."""
        # As ASCII: a file's name may contain bytes that are not valid text.
        request = {
            "verb": verb,
            "source": asdict(source),
            "caps": asdict(self._caps),
            "options": options,
        }
        async with self._processes.acquire(queue):
            try:
                with fail_after(self._caps.seconds):
                    answer = await self._answer(json.dumps(request, default=str).encode() + b"\n")
            except TimeoutError:
                raise IngestFailed(
                    f"Reading the file took longer than {self._caps.seconds:g} s."
                ) from None
            except _ReaderDied:
                raise IngestFailed(UNREADABLE) from None
        if "failed" in answer:
            raise IngestFailed(answer["failed"])
        return answer

    async def _answer(self, request: bytes) -> Json:
        while self._idle:
            try:
                return await self._use(self._idle.pop(), request)
            except _ReaderDied:
                continue  # it may have ended for being idle: let a new process try the file
        return await self._use(await _Reader.start(), request)

    async def _use(self, reader: "_Reader", request: bytes) -> Json:
        try:
            answer = await reader.ask(request, self._caps)
        except BaseException:
            with CancelScope(shield=True):
                await reader.stop()
            raise
        if answer.pop("retire", False):
            await reader.stop()
        else:
            self._idle.append(reader)
        return answer

    async def close(self) -> None:
        while self._idle:
            await self._idle.pop().stop()


class _Reader:
    def __init__(self, process: Process) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._process = process
        self._stdin = process.stdin
        self._stdout = BufferedByteReceiveStream(process.stdout)

    @classmethod
    async def start(cls) -> "_Reader":
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        return cls(
            await open_process(
                [sys.executable, "-m", f"{__package__}.process_main", str(os.getpid())],
                stdin=PIPE,
                stdout=PIPE,
                stderr=None,
                # More arenas would reserve address space that its limit counts.
                env=environment | {"OMP_THREAD_LIMIT": "1", "MALLOC_ARENA_MAX": "1"},
            )
        )

    async def ask(self, request: bytes, caps: Caps) -> Json:
        try:
            await self._stdin.send(request)
            size = int(await self._stdout.receive_until(b"\n", 20))
            if size > LARGEST_ANSWER:
                raise _ReaderDied
            answer: Json = json.loads(await self._stdout.receive_exactly(size))
        except (BrokenResourceError, ClosedResourceError, EndOfStream, IncompleteRead, OSError):
            # Killing a process that is ending confuses asyncio.
            if await self._process.wait() != _CPU_EXCEEDED:
                raise _ReaderDied from None
            raise IngestFailed(
                f"Reading the file took more than {caps.cpu_seconds} s of processor time "
                f"({caps.ocr_cpu_seconds} s for scans and images)."
            ) from None
        except ValueError:
            raise _ReaderDied from None
        return answer

    async def stop(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.aclose()
