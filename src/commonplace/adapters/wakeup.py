"""Wake workers: an event within the process, a Redis channel between machines."""

import asyncio

from commonplace.errors import extra
from commonplace.ports import Wake
from commonplace.settings import Settings


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


def make_wake(settings: Settings) -> Wake:
    if not settings.redis_url:
        return LocalWake()
    with extra("redis", "COMMONPLACE_REDIS_URL"):
        from commonplace.adapters.redis_backend import RedisWake  # slow to import

    return RedisWake(settings.redis_url, LocalWake())
