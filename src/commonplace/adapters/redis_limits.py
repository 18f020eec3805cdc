"""Rate limits on Redis, shared by several servers."""

import time

from limits import RateLimitItemPerSecond
from limits.aio.storage import RedisStorage
from limits.aio.strategies import MovingWindowRateLimiter
from redis.asyncio import ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from commonplace.adapters.circuit_breaker import Breaker, Unavailable
from commonplace.ports import Limits


class RedisLimits:
    """Limits on Redis. While it is down, each server counts for itself with `fallback`."""

    def __init__(self, url: str, fallback: Limits) -> None:
        self._pool = ConnectionPool.from_url(url, retry=Retry(NoBackoff(), 1))
        storage = RedisStorage(
            f"async+{url}",
            implementation="redispy",
            connection_pool=self._pool,  # type: ignore[arg-type]
        )
        self._window = MovingWindowRateLimiter(storage)
        self._fallback = fallback
        self._breaker = Breaker("This server counts requests by itself")

    async def hit(self, key: str, amount: int, seconds: int) -> float | None:
        try:
            return await self._breaker.call(
                lambda: self._hit(key, RateLimitItemPerSecond(amount, seconds))
            )
        except Unavailable:
            return await self._fallback.hit(key, amount, seconds)

    async def _hit(self, key: str, allowance: RateLimitItemPerSecond) -> float | None:
        if await self._window.hit(allowance, key):
            return None
        stats = await self._window.get_window_stats(allowance, key)
        return max(0.0, stats.reset_time - time.time())

    async def close(self) -> None:
        await self._breaker.close()
        await self._pool.aclose()
