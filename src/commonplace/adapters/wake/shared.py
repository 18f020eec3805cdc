"""Waking workers on other machines, by a Redis channel."""

import asyncio
import logging

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from commonplace.ports import Wake

log = logging.getLogger(__name__)
CHANNEL = "commonplace:jobs"
REDIS_SECONDS = 1.0  # whoever adds something waits no longer than this for a Redis that hangs
AGAIN_SECONDS = 5.0


class RedisWake:
    """A lost Redis makes jobs start a poll later, nothing worse."""

    def __init__(self, url: str, here: Wake) -> None:
        self._redis = Redis.from_url(url, socket_connect_timeout=REDIS_SECONDS, retry=Retry(NoBackoff(), 1))
        self._here = here
        self._listener: asyncio.Task[None] | None = None

    async def signal(self) -> bool:
        await self._here.signal()
        try:
            async with asyncio.timeout(REDIS_SECONDS):
                await self._redis.publish(CHANNEL, "job")
        except (RedisError, TimeoutError) as error:
            why = str(error) or "no answer"
            log.warning("Redis did not take the wake-up (%s); workers will find the job at their next poll", why)
            return False
        return True

    async def wait(self, seconds: float) -> None:
        if self._listener is None:
            self._listener = asyncio.create_task(self._listen())
        await self._here.wait(seconds)

    async def close(self) -> None:
        if self._listener is not None:
            self._listener.cancel()
            await asyncio.wait([self._listener])
        await self._redis.aclose()

    async def _listen(self) -> None:
        """One ear for all workers of this process: a channel must not be read by two at once."""
        while True:
            try:
                async with self._redis.pubsub(ignore_subscribe_messages=True) as channel:
                    await channel.subscribe(CHANNEL)
                    async for _ in channel.listen():
                        await self._here.signal()
            except RedisError as error:
                log.warning("Redis cannot be listened to (%s); trying again in a moment", error)
                await asyncio.sleep(AGAIN_SECONDS)
