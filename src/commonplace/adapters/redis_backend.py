"""Rate limits and wake-ups on Redis.

A circuit breaker guards both: Redis is not asked for a while after it did not answer.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from limits import RateLimitItemPerSecond
from limits.aio.storage import RedisStorage
from limits.aio.strategies import MovingWindowRateLimiter
from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from commonplace.ports import Limits, Wake, Window

log = logging.getLogger(__name__)
T = TypeVar("T")
ANSWER_SECONDS = 0.1  # the longest that a request waits for Redis
PAUSE_SECONDS = 30.0  # between attempts, after it did not answer in time
CHANNEL = "commonplace:jobs"
RETRY_SECONDS = 5.0


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


class RedisLimits:
    """Limits on Redis. While it is down, each server counts for itself with `fallback`."""

    def __init__(self, url: str, fallback: Limits) -> None:
        self._pool = ConnectionPool.from_url(url, retry=Retry(NoBackoff(), 1))
        self._storage = RedisStorage(
            f"async+{url}",
            implementation="redispy",
            connection_pool=self._pool,  # type: ignore[arg-type]
        )
        self._window = MovingWindowRateLimiter(self._storage)
        self._fallback = fallback
        self._breaker = Breaker("This server counts requests by itself")

    async def hit(self, key: str, amount: int, seconds: int) -> Window:
        try:
            return await self._breaker.call(
                lambda: self._hit(key, RateLimitItemPerSecond(amount, seconds))
            )
        except Unavailable:
            return await self._fallback.hit(key, amount, seconds)

    async def peek(self, key: str, amount: int, seconds: int) -> Window:
        try:
            return await self._breaker.call(
                lambda: self._peek(key, RateLimitItemPerSecond(amount, seconds))
            )
        except Unavailable:
            return await self._fallback.peek(key, amount, seconds)

    async def _hit(self, key: str, allowance: RateLimitItemPerSecond) -> Window:
        allowed = await self._window.hit(allowance, key)
        stats = await self._window.get_window_stats(allowance, key)
        if allowed:
            return Window(True, max(0, stats.remaining), float(allowance.get_expiry()))
        return Window(False, 0, max(0.0, stats.reset_time - time.time()))

    async def _peek(self, key: str, allowance: RateLimitItemPerSecond) -> Window:
        stats = await self._window.get_window_stats(allowance, key)
        if stats.remaining <= 0:
            return Window(False, 0, max(0.0, stats.reset_time - time.time()))
        seconds = allowance.get_expiry()
        # A window of one use begins with the newest.
        newest, uses = await self._storage.get_moving_window(allowance.key_for(key), 1, seconds)
        return Window(
            True, stats.remaining, max(0.0, newest + seconds - time.time()) if uses else 0.0
        )

    async def close(self) -> None:
        await self._breaker.close()
        await self._pool.aclose()


class RedisWake:
    """Signals on Redis. While it is down, jobs start with the next poll."""

    def __init__(self, url: str, local: Wake) -> None:
        self._redis = Redis.from_url(url, retry=Retry(NoBackoff(), 1))
        self._local = local
        self._breaker = Breaker("Workers on other machines find new jobs at their next poll")
        self._listener: asyncio.Task[None] | None = None

    async def signal(self) -> bool:
        await self._local.signal()
        try:
            await self._breaker.call(lambda: self._redis.publish(CHANNEL, "job"))
        except Unavailable:
            return False
        return True

    async def wait(self, seconds: float) -> None:
        if self._listener is None:
            self._listener = asyncio.create_task(self._listen())
        await self._local.wait(seconds)

    async def close(self) -> None:
        if self._listener is not None:
            self._listener.cancel()
            await asyncio.wait([self._listener])
        await self._breaker.close()
        await self._redis.aclose()

    async def _listen(self) -> None:
        """Pass signals on to all workers of this process; only one task may read a channel."""
        while True:
            try:
                async with self._redis.pubsub(ignore_subscribe_messages=True) as channel:
                    await channel.subscribe(CHANNEL)
                    async for _ in channel.listen():
                        await self._local.signal()
            except RedisError as error:
                log.warning("Lost the Redis channel (%s); retrying in %.0f s", error, RETRY_SECONDS)
                await asyncio.sleep(RETRY_SECONDS)
