"""Rate limits and wake-ups: in memory for one process, on Redis for several."""

import asyncio
import time
from collections import deque

from commonplace.errors import extra
from commonplace.ports import Limits, Wake, Window
from commonplace.settings import Settings

FORGET_SECONDS = 3600


def make_limits(settings: Settings) -> Limits:
    if not settings.redis_url:
        return MemoryLimits()
    with extra("redis", "COMMONPLACE_REDIS_URL"):
        from commonplace.adapters.redis_backend import RedisLimits  # slow to import

    return RedisLimits(settings.redis_url, MemoryLimits())


def make_wake(settings: Settings) -> Wake:
    if not settings.redis_url:
        return LocalWake()
    with extra("redis", "COMMONPLACE_REDIS_URL"):
        from commonplace.adapters.redis_backend import RedisWake  # slow to import

    return RedisWake(settings.redis_url, LocalWake())


class MemoryLimits:
    def __init__(self) -> None:
        self._uses: dict[str, deque[float]] = {}
        self._forget_at = time.monotonic() + FORGET_SECONDS

    async def hit(self, key: str, amount: int, seconds: int) -> Window:
        window = await self.peek(key, amount, seconds)
        if not window.allowed:
            return window
        at = time.monotonic()
        self._uses.setdefault(key, deque()).append(at)
        if at > self._forget_at:
            self._forget_at = at + FORGET_SECONDS
            self._uses = {
                k: uses for k, uses in self._uses.items() if uses and uses[-1] > at - FORGET_SECONDS
            }
        return Window(True, window.remaining - 1, float(seconds))

    async def peek(self, key: str, amount: int, seconds: int) -> Window:
        begin = time.monotonic() - seconds
        uses = self._uses.get(key, deque())
        while uses and uses[0] <= begin:
            uses.popleft()
        if len(uses) >= amount:
            return Window(False, 0, uses[0] - begin)
        return Window(True, amount - len(uses), uses[-1] - begin if uses else 0.0)

    async def close(self) -> None:
        """Do nothing: counts end with the process."""


class LocalWake:
    def __init__(self) -> None:
        self._event = asyncio.Event()

    async def signal(self) -> bool:
        self._event.set()
        return True

    async def wait(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._event.wait(), seconds)
        except TimeoutError:
            return
        self._event.clear()

    async def close(self) -> None:
        """Do nothing: an event needs no cleaning up."""
