"""Run queued jobs from the command line."""

import asyncio
from typing import TYPE_CHECKING

from commonplace.interfaces.cli import output

if TYPE_CHECKING:
    from commonplace.core.services import Services

POLL_SECONDS = 0.2


async def run_jobs(services: "Services", label: str) -> None:
    """Run all jobs that can run now, with a progress bar; other processes may run some of them."""
    total = left = await count_unfinished(services)
    with output.progress(label) as advance:
        while left:
            turn = asyncio.create_task(services.worker.run_once())
            while not turn.done():
                await asyncio.wait([turn], timeout=POLL_SECONDS)
                left = await count_unfinished(services)
                total = max(total, left)
                done = total - left + await services.store.jobs.running_share()
                advance(round(100 * done / max(total, 1)), 100)
            if not await turn and left:
                if not (await services.store.jobs.counts()).get("running"):
                    return  # the rest failed a moment ago and waits for its next try
                await asyncio.sleep(POLL_SECONDS)


async def count_unfinished(services: "Services") -> int:
    counts = await services.store.jobs.counts()
    return counts.get("queued", 0) + counts.get("running", 0)
