"""Allowances on Redis, for several servers."""

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
    """A lost Redis means that each server counts for itself meanwhile: better than to refuse everybody."""

    def __init__(self, url: str, meanwhile: Limits) -> None:
        self._pool = ConnectionPool.from_url(url, retry=Retry(NoBackoff(), 1))
        storage = RedisStorage(
            f"async+{url}",
            implementation="redispy",
            connection_pool=self._pool,  # type: ignore[arg-type]
        )
        self._window = MovingWindowRateLimiter(storage)
        self._meanwhile = meanwhile
        self._breaker = Breaker("This server counts requests by itself")

    async def hit(self, key: str, amount: int, seconds: int) -> float | None:
        try:
            return await self._breaker.call(
                lambda: self._hit(key, RateLimitItemPerSecond(amount, seconds))
            )
        except Unavailable:
            return await self._meanwhile.hit(key, amount, seconds)

    async def _hit(self, key: str, allowance: RateLimitItemPerSecond) -> float | None:
        if await self._window.hit(allowance, key):
            return None
        stats = await self._window.get_window_stats(allowance, key)
        return max(0.0, stats.reset_time - time.time())

    async def close(self) -> None:
        await self._breaker.close()
        await self._pool.aclose()
