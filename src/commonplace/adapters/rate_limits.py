"""Allowances by a sliding window: in memory for one process, on Redis for several."""

import time
from collections import deque

from commonplace.errors import extra
from commonplace.ports import Limits
from commonplace.settings import Settings

FORGET_SECONDS = 3600


class MemoryLimits:
    def __init__(self) -> None:
        self._uses: dict[str, deque[float]] = {}
        self._forget_at = time.monotonic() + FORGET_SECONDS

    async def hit(self, key: str, amount: int, seconds: int) -> float | None:
        at = time.monotonic()
        if at > self._forget_at:
            self._forget_at = at + FORGET_SECONDS
            self._uses = {
                k: uses for k, uses in self._uses.items() if uses[-1] > at - FORGET_SECONDS
            }
        uses = self._uses.setdefault(key, deque(maxlen=amount))
        if len(uses) == amount and uses[0] > at - seconds:
            return uses[0] + seconds - at
        uses.append(at)
        return None

    async def close(self) -> None:
        return None


def make_limits(settings: Settings) -> Limits:
    if not settings.redis_url:
        return MemoryLimits()
    with extra("redis", "COMMONPLACE_REDIS_URL"):
        from commonplace.adapters.redis_limits import RedisLimits  # slow to import

    return RedisLimits(settings.redis_url, MemoryLimits())
