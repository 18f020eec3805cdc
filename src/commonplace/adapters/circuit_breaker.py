"""A circuit breaker: Redis is not asked for a while after it did not answer."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from redis.exceptions import RedisError

log = logging.getLogger(__name__)
T = TypeVar("T")
ANSWER_SECONDS = 0.1  # the longest that a request waits for Redis
PAUSE_SECONDS = 30.0  # between attempts, after it did not answer in time


class Unavailable(Exception):
    """Redis cannot be asked now, or did not answer in time."""


class Breaker:
    """Calls to Redis that fail fast. `consequence`: the effect of an outage, for the log."""

    def __init__(self, consequence: str) -> None:
        self._consequence = consequence
        self._closed = True
        self._ask_at = 0.0
        self._abandoned: set[asyncio.Future[Any]] = set()  # until they have cleaned up

    async def close(self) -> None:
        """Wait until abandoned calls have released their connections."""
        if self._abandoned:
            await asyncio.wait(self._abandoned)

    async def call(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Return the answer. Raises Unavailable after ANSWER_SECONDS.

        After a failure, one call per PAUSE_SECONDS tries again; others fail at once.
        """
        now = time.monotonic()
        if now < self._ask_at:
            raise Unavailable
        if not self._closed:
            self._ask_at = now + PAUSE_SECONDS  # nobody else tries in the meantime
        task = asyncio.ensure_future(ask())
        try:
            await asyncio.wait([task], timeout=ANSWER_SECONDS)
            for _ in range(3):  # if this process was busy, the answer may have arrived
                await asyncio.sleep(0)
            if not task.done():
                raise Unavailable(f"no answer within {ANSWER_SECONDS * 1000:.0f} ms")
            answer = task.result()
        except (RedisError, OSError, Unavailable) as error:
            if self._closed:
                log.warning(
                    "Redis does not answer (%s). %s; retrying in %.0f s",
                    error,
                    self._consequence,
                    PAUSE_SECONDS,
                )
            self._closed, self._ask_at = False, time.monotonic() + PAUSE_SECONDS
            raise Unavailable from error
        finally:
            if task.cancel():
                self._abandoned.add(task)
                task.add_done_callback(self._abandoned.discard)
        if not self._closed:
            log.warning("Redis answers again")
        self._closed, self._ask_at = True, 0.0
        return answer
