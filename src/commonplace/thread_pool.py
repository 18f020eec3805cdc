"""Threads that run units of work for the event loop, with one future per hop.

asyncio's own executor needs three futures, a shield and several locks for each.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar, cast

T = TypeVar("T")
_Future = asyncio.Future[Any]


class ThreadPool:
    def __init__(self, count: int, name: str) -> None:
        self._jobs: SimpleQueue[
            tuple[asyncio.AbstractEventLoop, _Future, Callable[[], Any]] | None
        ] = SimpleQueue()
        self._count, self._name = count, name
        self._running: list[threading.Thread] = []
        self._closed = False

    async def run(self, work: Callable[[], T]) -> T:
        """Run `work` in a thread, to its end even if the caller is cancelled."""
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
        future = loop.create_future()
        self._jobs.put((loop, future, work))
        return cast(T, await future)

    def close(self) -> None:
        """Wait for the work that was started."""
        self._closed = True
        for _ in self._running:
            self._jobs.put(None)
        for thread in self._running:
            thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            loop, future, work = job
            result, error = None, None
            try:
                result = work()
            except BaseException as raised:
                error = raised
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_resolve, future, result, error)
            # Or the last result would stay in memory until the next call.
            del job, loop, future, work, result, error


def _resolve(future: _Future, result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
