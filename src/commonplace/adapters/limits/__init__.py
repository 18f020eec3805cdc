"""Allowances by a sliding window: in memory for one process, on Redis for several."""

import logging
import time
from collections import deque

from limits import RateLimitItemPerSecond
from limits.aio.storage import RedisStorage
from limits.aio.strategies import MovingWindowRateLimiter
from redis.asyncio import ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from commonplace.ports import Limits
from commonplace.settings import Settings

log = logging.getLogger(__name__)
FORGET_SECONDS = 3600
REDIS_SECONDS = 1.0  # a request waits no longer than this for a Redis that hangs


class MemoryLimits:
    def __init__(self) -> None:
        self._uses: dict[str, deque[float]] = {}
        self._forget_at = time.monotonic() + FORGET_SECONDS

    async def hit(self, key: str, amount: int, seconds: int) -> float | None:
        at = time.monotonic()
        if at > self._forget_at:
            self._forget_at = at + FORGET_SECONDS
            self._uses = {k: uses for k, uses in self._uses.items() if uses[-1] > at - FORGET_SECONDS}
        uses = self._uses.setdefault(key, deque(maxlen=amount))
        if len(uses) == amount and uses[0] > at - seconds:
            return uses[0] + seconds - at
        uses.append(at)
        return None

    async def close(self) -> None:
        return None


class RedisLimits:
    """A lost Redis means that each server counts for itself meanwhile: better than to refuse everybody."""

    def __init__(self, url: str) -> None:
        self._pool = ConnectionPool.from_url(url, socket_timeout=REDIS_SECONDS, socket_connect_timeout=REDIS_SECONDS,
                                             retry=Retry(NoBackoff(), 1))
        self._window = MovingWindowRateLimiter(RedisStorage(
            f"async+{url}", implementation="redispy", connection_pool=self._pool))  # type: ignore[arg-type]
        self._meanwhile = MemoryLimits()

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


def make_limits(settings: Settings) -> Limits:
    return RedisLimits(settings.redis_url) if settings.redis_url else MemoryLimits()
