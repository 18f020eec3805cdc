"""What a worker has taken up stays its own for as long as it is at work, however long that takes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

LEASE_SECONDS = 120


@asynccontextmanager
async def renewing_lease(renew: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """`renew` is asked again and again, well before a lease runs out."""

    async def hold() -> None:
        while True:
            await asyncio.sleep(LEASE_SECONDS / 3)
            await renew()

    holding = asyncio.create_task(hold())
    try:
        yield
    finally:
        holding.cancel()
        await asyncio.gather(
            holding, return_exceptions=True
        )  # a lost lease only means that another may try too
