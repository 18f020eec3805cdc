"""Runs jobs until told to stop. Any number of these, in any number of processes, share one queue."""

import asyncio
import logging
import time
import uuid
from datetime import timedelta

from commonplace.core.embedding import LEASE_SECONDS, EmbedJobs
from commonplace.model import now
from commonplace.ports import Store, Wake

log = logging.getLogger(__name__)
AT_ONCE = 64
POLL_SECONDS = 1.0
AFTER_TROUBLE_SECONDS = 5.0
PRUNE_SECONDS = 3600


class Worker:
    def __init__(self, store: Store, wake: Wake, embedding: EmbedJobs) -> None:
        self._store = store
        self._wake = wake
        self._embedding = embedding
        self._name = uuid.uuid4().hex
        self._prune_at = 0.0

    async def run(self) -> None:
        while True:
            try:
                busy = await self.turn()
            except Exception:
                # Leases run out by themselves and jobs are taken up again; the worker must outlive a lost database.
                log.exception("The queue could not be worked on; trying again in a moment")
                await asyncio.sleep(AFTER_TROUBLE_SECONDS)
                continue
            if not busy:
                await self._wake.wait(POLL_SECONDS)

    async def turn(self) -> int:
        """Run one lot of jobs; how many there were."""
        jobs = await self._store.jobs.lease(self._name, limit=AT_ONCE, seconds=LEASE_SECONDS)
        if jobs:
            await self._embedding.run(self._name, jobs)
        elif time.monotonic() > self._prune_at:
            self._prune_at = time.monotonic() + PRUNE_SECONDS
            await self._store.jobs.prune(now() - timedelta(days=1))
        return len(jobs)
