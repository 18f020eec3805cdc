"""A worker that runs jobs until it is stopped. Any number of workers and processes share one
queue."""

import asyncio
import logging
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Protocol

from commonplace.core.jobs.retry import LEASE_SECONDS, retry_or_fail
from commonplace.errors import CommonplaceError
from commonplace.malloc_trim import release_memory
from commonplace.model import EMBED, INGEST, TRANSFORM, Job, now
from commonplace.ports import Wake
from commonplace.store import Store

log = logging.getLogger(__name__)
POLL_SECONDS = 1.0
AFTER_TROUBLE_SECONDS = 5.0
SWEEP_SECONDS = 600.0
PRUNE_SECONDS = 3600
PATIENT_SECONDS = 60.0
QUIET_SECONDS = 2.0  # a batch of an import takes more than a second to become visible
LANES = {INGEST: 4}  # a slow page or a large file does not block the others
AFTER = {TRANSFORM: EMBED}  # embedding comes before summarizing


class Handler(Protocol):
    """Runs jobs of one kind, up to `at_once` together, and finishes or fails each."""

    @property
    def at_once(self) -> int: ...

    async def run(self, worker: str, jobs: Sequence[Job]) -> None: ...


class Worker:
    def __init__(self, store: Store, wake: Wake, handlers: Mapping[str, Handler]) -> None:
        self._store = store
        self._wake = wake
        self._handlers = handlers
        self._name = uuid.uuid4().hex
        self._prune_at = 0.0
        self._idle = {kind: asyncio.Event() for kind in handlers}

    def another(self) -> "Worker":
        """Return a second worker for the same jobs."""
        return Worker(self._store, self._wake, self._handlers)

    async def run(self) -> None:
        """Run each kind of job on its own: a transcription takes hours and must not block short
        jobs."""
        async with asyncio.TaskGroup() as lanes:
            for kind in self._handlers:
                for _ in range(LANES.get(kind, 1)):
                    lanes.create_task(self._run(kind))
            lanes.create_task(self._sweep())

    async def run_once(self) -> int:
        """Run one batch of each kind, and return the number of jobs."""
        return sum([await self._turn(kind) for kind in self._handlers])

    async def _run(self, kind: str) -> None:
        while True:
            try:
                await self._let_others_pass(kind)
                busy = await self._turn(kind)
            except Exception as error:
                # Leases expire and jobs are taken again; the worker must outlive a lost database.
                await _after_trouble(error)
                continue
            if not busy:
                await self._wake.wait(POLL_SECONDS)

    async def _sweep(self) -> None:
        """Queue items that lost their vectors or their embed job."""
        while True:
            try:
                if found := await self._store.jobs.enqueue_missing():
                    log.info("Queued %s items that have no vectors.", found)
            except Exception as error:
                await _after_trouble(error)
            await asyncio.sleep(SWEEP_SECONDS)

    async def _turn(self, kind: str) -> int:
        handler, idle = self._handlers[kind], self._idle[kind]
        jobs = await self._store.jobs.lease(
            self._name, kind, limit=handler.at_once, seconds=LEASE_SECONDS
        )
        if jobs:
            idle.clear()
            try:
                await handler.run(self._name, jobs)
            except Exception as error:
                for job in jobs:  # finished or failed ones stay so
                    await retry_or_fail(self._store, self._name, job, error)
            return len(jobs)
        if not idle.is_set():
            release_memory()  # that the last jobs needed
            idle.set()
        if time.monotonic() > self._prune_at:
            self._prune_at = time.monotonic() + PRUNE_SECONDS
            await self._store.jobs.prune(now() - timedelta(days=1))
        return 0

    async def _let_others_pass(self, kind: str) -> None:
        """Wait for jobs that come first, and for an import to end. Only for a while: a reindex
        takes hours, and other jobs continue slowly meanwhile."""
        if kind in AFTER:
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENT_SECONDS):
                    await self._idle[AFTER[kind]].wait()
                    has_new, quiet = self._store.jobs.has_new_jobs, timedelta(seconds=QUIET_SECONDS)
                    while await has_new(kind, now() - quiet):  # noqa: ASYNC110
                        await asyncio.sleep(QUIET_SECONDS / 5)


async def _after_trouble(error: Exception) -> None:
    known = isinstance(error, CommonplaceError)  # its message is enough
    log.error(
        "The job queue failed; retrying soon: %s",
        error,
        exc_info=None if known else error,
    )
    await asyncio.sleep(AFTER_TROUBLE_SECONDS)
