"""Group commit: writes that arrive while another is being committed share the next commit.

A disk takes as long for ten as for one. Each write is answered after its commit. If one of a
group fails, all are rolled back and run one by one, so that each has its own result. A kind of
write that was slow the last time is committed alone.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from commonplace.thread_pool import ThreadPool

MOST = 64  # in one commit
QUICK_SECONDS = 0.003  # on the processor

Work = Callable[..., Any]


@dataclass(slots=True)
class _Write:
    work: Callable[[Any], Any]
    kind: Any  # the key of its duration: closures differ, their code does not
    done: bool = False
    result: Any = None
    error: BaseException | None = None


class GroupCommit:
    def __init__(self, thread: ThreadPool, committed: Callable[[Work], None]) -> None:
        """`thread` is a pool of one; `committed(work)` runs `work(tx)` in its own transaction."""
        self._thread = thread
        self._committed = committed
        self._waiting: deque[_Write] = deque()
        self._took: dict[Any, float] = {}

    async def write(self, work: Work, args: Any, kwargs: Any) -> Any:
        mine = _Write(lambda tx: work(tx, *args, **kwargs), getattr(work, "__code__", type(work)))
        self._waiting.append(mine)
        await self._thread.run(lambda: self._turn(mine))
        if mine.error is not None:
            raise mine.error
        return mine.result

    def _turn(self, mine: _Write) -> None:
        while not mine.done:  # an earlier write may have committed it too
            self._next()

    def _next(self) -> None:
        group = [self._waiting.popleft()]
        while (
            self._waiting
            and len(group) < MOST
            and self._is_quick(group[-1])
            and self._is_quick(self._waiting[0])
        ):
            group.append(self._waiting.popleft())
        if len(group) == 1 or self._commit(*group):
            for write in group:  # alone, each shows its own error
                write.error = self._commit(write)
        for write in group:
            write.done = True

    def _commit(self, *group: _Write) -> BaseException | None:
        try:
            self._committed(lambda tx: self._run(tx, *group))
        except BaseException as error:
            return error
        return None

    def _run(self, tx: Any, *group: _Write) -> None:
        for write in group:
            began = time.thread_time()
            write.result = write.work(tx)
            self._took[write.kind] = time.thread_time() - began

    def _is_quick(self, write: _Write) -> bool:
        return self._took.get(write.kind, QUICK_SECONDS) < QUICK_SECONDS
