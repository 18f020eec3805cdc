"""Wake workers on other machines through a Redis channel."""

import asyncio
import logging

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from commonplace.adapters.circuit_breaker import Breaker, Unavailable
from commonplace.ports import Wake

log = logging.getLogger(__name__)
CHANNEL = "commonplace:jobs"
RETRY_SECONDS = 5.0


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
