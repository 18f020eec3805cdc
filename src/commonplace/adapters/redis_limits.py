"""Rate limits on Redis, shared by several servers."""

import time

from limits import RateLimitItemPerSecond
from limits.aio.storage import RedisStorage
from limits.aio.strategies import MovingWindowRateLimiter
from redis.asyncio import ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from commonplace.adapters.circuit_breaker import Breaker, Unavailable
from commonplace.ports import Limits, Window


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
        reset = max(0.0, newest + seconds - time.time()) if uses else 0.0
        return Window(True, stats.remaining, reset)

    async def close(self) -> None:
        await self._breaker.close()
        await self._pool.aclose()
