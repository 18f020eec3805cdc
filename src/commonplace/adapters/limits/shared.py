"""Allowances on Redis, for several servers."""

import logging
import time

from limits import RateLimitItemPerSecond
from limits.aio.storage import RedisStorage
from limits.aio.strategies import MovingWindowRateLimiter
from redis.asyncio import ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from commonplace.ports import Limits

log = logging.getLogger(__name__)
REDIS_SECONDS = 1.0  # a request waits no longer than this for a Redis that hangs


class RedisLimits:
    """A lost Redis means that each server counts for itself meanwhile: better than to refuse everybody."""

    def __init__(self, url: str, meanwhile: Limits) -> None:
        self._pool = ConnectionPool.from_url(url, socket_timeout=REDIS_SECONDS, socket_connect_timeout=REDIS_SECONDS,
                                             retry=Retry(NoBackoff(), 1))
        self._window = MovingWindowRateLimiter(RedisStorage(
            f"async+{url}", implementation="redispy", connection_pool=self._pool))  # type: ignore[arg-type]
        self._meanwhile = meanwhile

    async def hit(self, key: str, amount: int, seconds: int) -> float | None:
        allowance = RateLimitItemPerSecond(amount, seconds)
        try:
            if await self._window.hit(allowance, key):
                return None
            stats = await self._window.get_window_stats(allowance, key)
        except RedisError as error:
            log.warning("Redis did not count a request (%s); this server counts for itself", error)
            return await self._meanwhile.hit(key, amount, seconds)
        return max(0.0, stats.reset_time - time.time())

    async def close(self) -> None:
        await self._pool.aclose()
