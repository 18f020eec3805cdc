"""Threads that run units of work for the event loop, one hop each.

asyncio's bridge to concurrent.futures makes three futures, a shield and a handful of locks for a hop; this makes one future.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")
_Told = asyncio.Future[Any]


class ThreadPool:
    def __init__(self, count: int, name: str) -> None:
        self._jobs: SimpleQueue[
            tuple[asyncio.AbstractEventLoop, _Told, Callable[[], Any]] | None
        ] = SimpleQueue()
        self._count, self._name = count, name
        self._running: list[threading.Thread] = []
        self._closed = False

    async def run(self, work: Callable[[], T]) -> T:
        """Run to the end even when the caller is cancelled: a half-told answer is better than a half-run write."""
        if self._closed:
            raise RuntimeError("The store is closed.")
        if not self._running:
            self._running = [
                threading.Thread(target=self._work, name=f"{self._name}-{n}", daemon=True)
                for n in range(self._count)
            ]
            for thread in self._running:
                thread.start()
        loop = asyncio.get_running_loop()
        told = loop.create_future()
        self._jobs.put((loop, told, work))
        result: T = await told
        return result

    def close(self) -> None:
        """Wait for what was begun."""
        self._closed = True
        for _ in self._running:
            self._jobs.put(None)
        for thread in self._running:
            thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            loop, told, work = job
            result, error = None, None
            try:
                result = work()
            except BaseException as raised:
                error = raised
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_tell, told, result, error)
            del (
                job,
                loop,
                told,
                work,
                result,
                error,
            )  # else the last answer stays in memory until the next call


def _tell(told: _Told, result: Any, error: BaseException | None) -> None:
    if told.done():
        return
    if error is None:
        told.set_result(result)
    else:
        told.set_exception(error)
