"""A few processes that read files, started when they are needed, killed when they take too long, gone when idle."""

import json
import os
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from subprocess import PIPE

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

from commonplace.adapters.extract import process_protocol
from commonplace.adapters.extract.input_file import Caps, Source
from commonplace.errors import IngestFailed
from commonplace.model import Json

_OUT_OF_TIME = -getattr(signal, "SIGXCPU", 1)
# All that a reader needs to know of our surroundings; keys and passwords stay here.
_ENVIRONMENT = (
    "PATH",
    "PYTHONPATH",
    "LD_LIBRARY_PATH",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "TZ",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
)


class _Died(Exception):
    pass


class _Spent(Exception):
    """It used up the processor time that one file may take."""


class _Places:
    """A few places, for which callers wait in queues. A place that gets free goes to the queues in turn: who has many
    files waiting delays others by one file, not by all of them."""

    def __init__(self, free: int) -> None:
        self._free = free
        self._queues: dict[str, deque[Event]] = {}  # the next in turn first

    @asynccontextmanager
    async def take(self, queue: str) -> AsyncIterator[None]:
        if self._free:
            self._free -= 1
        else:
            await self._wait(queue)
        try:
            yield
        finally:
            self._give_back()

    async def _wait(self, queue: str) -> None:
        turn = Event()
        self._queues.setdefault(queue, deque()).append(turn)
        try:
            await turn.wait()
        except BaseException:
            if turn.is_set():
                self._give_back()
            else:
                waiting = self._queues[queue]
                waiting.remove(turn)
                if not waiting:
                    del self._queues[queue]
            raise

    def _give_back(self) -> None:
        if not self._queues:
            self._free += 1
            return
        queue = next(iter(self._queues))
        waiting = self._queues.pop(queue)
        waiting.popleft().set()
        if waiting:
            self._queues[queue] = waiting  # behind all others


class Pool:
    def __init__(self, processes: int, caps: Caps) -> None:
        self._caps = caps
        self._places = _Places(processes)
        self._idle: list[_Reader] = []

    async def ask(self, verb: str, source: Source, queue: str) -> Json:
        """The reader's answer; IngestFailed in its words, or in ours when it had to be stopped."""
        async with self._places.take(queue):
            try:
                with fail_after(self._caps.seconds):
                    answer = await self._answer(process_protocol.request(verb, source, self._caps))
            except TimeoutError:
                raise IngestFailed(
                    f"Reading the file took longer than {self._caps.seconds:g} s."
                ) from None
            except _Spent:
                raise IngestFailed(
                    f"Reading the file took more than {self._caps.cpu_seconds} s of processor time "
                    f"({self._caps.ocr_cpu_seconds} s for scans and images)."
                ) from None
            except _Died:
                raise IngestFailed(process_protocol.UNREADABLE) from None
        if "failed" in answer:
            raise IngestFailed(answer["failed"])
        return answer

    async def _answer(self, request: bytes) -> Json:
        while self._idle:
            try:
                return await self._use(self._idle.pop(), request)
            except _Died:
                continue  # it may have left for want of work just then; a fresh one tells whether it was the file
        return await self._use(await _Reader.start(), request)

    async def _use(self, reader: "_Reader", request: bytes) -> Json:
        try:
            answer = await reader.ask(request)
        except BaseException:
            with CancelScope(shield=True):
                await reader.stop()
            raise
        if answer.pop("spent", False):
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
        self._to = process.stdin
        self._from = BufferedByteReceiveStream(process.stdout)

    @classmethod
    async def start(cls) -> "_Reader":
        around = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        return cls(
            await open_process(
                [
                    sys.executable,
                    "-m",
                    "commonplace.adapters.extract.process_main",
                    str(os.getpid()),
                ],
                stdin=PIPE,
                stdout=PIPE,
                stderr=None,
                env=around | {"OMP_THREAD_LIMIT": "1"},
            )
        )

    async def ask(self, request: bytes) -> Json:
        try:
            await self._to.send(request)
            size = int(await self._from.receive_until(b"\n", 20))
            if size > process_protocol.LARGEST_ANSWER:
                raise _Died
            answer: Json = json.loads(await self._from.receive_exactly(size))
        except (BrokenResourceError, ClosedResourceError, EndOfStream, IncompleteRead, OSError):
            code = await self._process.wait()  # killing what is just leaving confuses asyncio
            raise (_Spent if code == _OUT_OF_TIME else _Died) from None
        except ValueError:
            raise _Died from None
        return answer

    async def stop(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.aclose()
