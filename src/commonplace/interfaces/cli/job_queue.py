"""Working off the queue from the command line."""

import asyncio
from typing import TYPE_CHECKING

from commonplace.interfaces.cli.output import Advance

if TYPE_CHECKING:
    from commonplace.core.services import Services

LOOK_AGAIN_SECONDS = 0.2


async def work_off(app: "Services", advance: Advance) -> None:
    """Until nothing is left that could be done now; other processes may be at it too."""
    total = left = await waiting(app)
    while left:
        turn = asyncio.create_task(app.worker.run_once())
        while not turn.done():
            await asyncio.wait([turn], timeout=LOOK_AGAIN_SECONDS)
            left = await waiting(app)
            total = max(total, left)
            advance(
                round(100 * (total - left + await app.store.jobs.running_share()) / max(total, 1)),
                100,
            )
        if not await turn and left:
            if not (await app.store.jobs.counts()).get("running"):
                return  # what is left failed a moment ago and waits for its next try
            await asyncio.sleep(LOOK_AGAIN_SECONDS)


async def waiting(app: "Services") -> int:
    counts = await app.store.jobs.counts()
    return counts.get("queued", 0) + counts.get("running", 0)
