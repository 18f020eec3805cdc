"""A few processes that read files, started when they are needed, killed when they take too long, gone when idle."""

import json
import os
import sys
from subprocess import PIPE

from anyio import (
    BrokenResourceError,
    CancelScope,
    CapacityLimiter,
    ClosedResourceError,
    EndOfStream,
    IncompleteRead,
    fail_after,
    open_process,
)
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from commonplace.adapters.extract import wire
from commonplace.adapters.extract.source import Caps, Source
from commonplace.errors import IngestFailed
from commonplace.model import Json

_LARGEST_ANSWER = 200_000_000
# All that a reader needs to know of our surroundings; keys and passwords stay here.
_ENVIRONMENT = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TMPDIR", "TZ", "SYSTEMROOT", "TEMP", "TMP")


class _Died(Exception):
    pass


class Pool:
    def __init__(self, processes: int, caps: Caps) -> None:
        self._caps = caps
        self._room = CapacityLimiter(processes)
        self._idle: list[_Reader] = []

    async def ask(self, verb: str, source: Source) -> Json:
        """The reader's answer; IngestFailed in its words, or in ours when it had to be stopped."""
        async with self._room:
            try:
                with fail_after(self._caps.seconds):
                    answer = await self._answer(wire.request(verb, source, self._caps))
            except TimeoutError:
                raise IngestFailed(f"Reading the file took longer than {self._caps.seconds:g} s.") from None
            except _Died:
                raise IngestFailed("The file could not be read: it is damaged, or made to break what reads it.") from None
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
        return cls(await open_process([sys.executable, "-m", "commonplace.adapters.extract.reader"],
                                      stdin=PIPE, stdout=PIPE, stderr=None, env=around | {"OMP_THREAD_LIMIT": "1"}))

    async def ask(self, request: bytes) -> Json:
        try:
            await self._to.send(request)
            size = int(await self._from.receive_until(b"\n", 20))
            if size > _LARGEST_ANSWER:
                raise _Died
            answer: Json = json.loads(await self._from.receive_exactly(size))
        except (BrokenResourceError, ClosedResourceError, EndOfStream, IncompleteRead, OSError):
            await self._process.wait()  # killing what is just leaving confuses asyncio
            raise _Died from None
        except ValueError:
            raise _Died from None
        return answer

    async def stop(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.aclose()
