"""A circuit breaker: a service that does not answer is left alone for a while."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from redis.exceptions import RedisError

log = logging.getLogger(__name__)
T = TypeVar("T")
ANSWER_SECONDS = 0.1  # that a request waits for Redis at most
PAUSE_SECONDS = 30.0  # without asking, after it did not answer in time


class Unavailable(Exception):
    """Redis cannot be asked now, or did not answer in time."""


class Breaker:
    def __init__(self, consequence: str) -> None:
        self._consequence = consequence  # for the log: what happens without Redis
        self._closed = True
        self._ask_at = 0.0
        self._left: set[asyncio.Future[Any]] = (
            set()
        )  # calls that nobody waits for, until they have cleaned up

    async def close(self) -> None:
        """Wait until calls that were given up have let go of their connections."""
        if self._left:
            await asyncio.wait(self._left)

    async def call(self, ask: Callable[[], Awaitable[T]]) -> T:
        """The answer, within ANSWER_SECONDS. After a failure, one call per PAUSE_SECONDS tries again; others fail at once."""
        now = time.monotonic()
        if now < self._ask_at:
            raise Unavailable
        if not self._closed:
            self._ask_at = now + PAUSE_SECONDS  # nobody else tries meanwhile
        task = asyncio.ensure_future(ask())
        try:
            await asyncio.wait([task], timeout=ANSWER_SECONDS)
            for _ in range(
                3
            ):  # the answer may be here already, when it was this process that was busy
                await asyncio.sleep(0)
            if not task.done():
                raise Unavailable(f"no answer within {ANSWER_SECONDS * 1000:.0f} ms")
            answer = task.result()
        except (RedisError, OSError, Unavailable) as error:
            if self._closed:
                log.warning(
                    "Redis does not answer (%s). %s; trying again in %.0f s",
                    error,
                    self._consequence,
                    PAUSE_SECONDS,
                )
            self._closed, self._ask_at = False, time.monotonic() + PAUSE_SECONDS
            raise Unavailable from error
        finally:
            if task.cancel():
                self._left.add(task)
                task.add_done_callback(self._left.discard)
        if not self._closed:
            log.warning("Redis answers again")
        self._closed, self._ask_at = True, 0.0
        return answer
