"""Leases: a worker keeps its jobs for as long as it works on them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

LEASE_SECONDS = 120


@asynccontextmanager
async def renewing_lease(renew: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Call `renew` repeatedly, well before a lease expires."""

    async def hold() -> None:
        while True:
            await asyncio.sleep(LEASE_SECONDS / 3)
            await renew()

    holding = asyncio.create_task(hold())
    try:
        yield
    finally:
        holding.cancel()
        # a lost lease only means that another worker may try too
        await asyncio.gather(holding, return_exceptions=True)
