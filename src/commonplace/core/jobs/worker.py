"""A worker that runs jobs until it is stopped. Failed ones are retried, or get a message.

Any number of workers and processes share the queues. A job is leased while it runs.
"""

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol

from commonplace.errors import CommonplaceError, IngestFailed, NotFound
from commonplace.malloc_trim import release_memory
from commonplace.model import EMBED, INGEST, TRANSFORM, WEBHOOK, Job, now
from commonplace.ports import Wake
from commonplace.store import Store
from commonplace.store.versions import KEPT_FOR
from commonplace.telemetry import operation

log = logging.getLogger(__name__)
LEASE_SECONDS = 30  # a killed worker delays its jobs as long
RENEW_SECONDS = 10  # well before a lease expires
ATTEMPTS = 8  # for a job that fails by its own fault, or unexpectedly
LONGEST_WAIT = 600
SHORTEST_PAUSE = 2.0  # before the retry of a transient failure
LONGEST_PAUSE = 60.0  # so that jobs finish soon after a service is back
SOURCE_PAUSE = 1800.0  # many dead sources must not delay the others
SOURCE_SECONDS = 86_400  # during which an unreachable source is retried: it may be gone for good
POLL_SECONDS = 1.0
AFTER_TROUBLE_SECONDS = 5.0
SWEEP_SECONDS = 600.0
PRUNE_SECONDS = 3600
EVENTS_KEPT = timedelta(days=7)
PATIENT_SECONDS = 60.0
QUIET_SECONDS = 2.0  # a batch of an import takes more than a second to become visible
LANES = {INGEST: 4, WEBHOOK: 4}  # a slow page or a large file does not block the others
AFTER = {TRANSFORM: EMBED}  # embedding comes before summarizing


@asynccontextmanager
async def renewing_lease(renew: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Call `renew` repeatedly."""

    async def hold() -> None:
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            try:
                await renew()
            except Exception as error:  # the database may be back before the lease expires
                log.warning("A lease could not be renewed; trying again: %s", error)

    holding = asyncio.create_task(hold())
    try:
        yield
    finally:
        holding.cancel()
        # a lost lease only means that another worker may try too
        await asyncio.gather(holding, return_exceptions=True)


def error_message(job: Job, error: Exception) -> str:
    """Return the message for a failed job. Unexpected errors are logged too."""
    if isinstance(error, CommonplaceError):
        return error.message
    if not is_transient(error):
        log.error("Job %s (%s of item %s) failed", job.id, job.kind, job.item_id, exc_info=error)
    return f"Unexpected {type(error).__name__}. See the server's log for details."


def is_transient(error: Exception) -> bool:
    """Whether a dependency is down, so that a retry may succeed."""
    return (
        error.transient
        if isinstance(error, CommonplaceError)
        else isinstance(error, ConnectionError | TimeoutError)
    )


def retry_at(job: Job, error: Exception, attempts: int = ATTEMPTS) -> datetime | None:
    """Return the time of the next attempt, or None for no more. Transient failures of services are
    retried without end, those of sources for a day, with delays that grow with the job's age."""
    if is_transient(error):
        age = (now() - job.created_at).total_seconds()
        of_source = isinstance(error, IngestFailed)
        if of_source and age > SOURCE_SECONDS:
            return None
        return now() + timedelta(
            seconds=min(max(age / 2, SHORTEST_PAUSE), SOURCE_PAUSE if of_source else LONGEST_PAUSE)
        )
    if job.attempts >= attempts:
        return None
    return now() + timedelta(seconds=min(2**job.attempts, LONGEST_WAIT))


async def retry_or_fail(
    store: Store, worker: str, job: Job, error: Exception, attempts: int = ATTEMPTS
) -> None:
    await store.jobs.fail(
        worker,
        job,
        error_message(job, error),
        retry_at(job, error, attempts),
        counted=not is_transient(error),
    )


async def run_each(
    store: Store,
    worker: str,
    jobs: Sequence[Job],
    work: Callable[[Job], Awaitable[None]],
    known_errors: int = ATTEMPTS,
) -> None:
    """Run jobs one by one. A job is done if its item was deleted meanwhile. One that `work` has
    postponed or failed stays so. `known_errors`: attempts after an error that is no surprise."""
    for job in jobs:
        try:
            with suppress(NotFound):
                await work(job)
            await store.jobs.finish(worker, [job])
        except asyncio.CancelledError:
            # the server stops: the next one continues at once
            await store.jobs.postpone(worker, job, now())
            raise
        except Exception as error:
            attempts = known_errors if isinstance(error, CommonplaceError) else ATTEMPTS
            await retry_or_fail(store, worker, job, error, attempts)


class Handler(Protocol):
    """Runs jobs of one kind, up to `at_once` together, and finishes or fails each."""

    @property
    def at_once(self) -> int: ...

    async def run(self, worker: str, jobs: Sequence[Job]) -> None: ...


class Worker:
    def __init__(
        self, store: Store, wake: Wake, handlers: Mapping[str, Handler], trash_days: int = 30
    ) -> None:
        self._store = store
        self._trash_kept = timedelta(days=trash_days)
        self._wake = wake
        self._handlers = handlers
        self._name = uuid.uuid4().hex
        self._prune_at = 0.0
        self._idle = {kind: asyncio.Event() for kind in handlers}

    def another(self) -> "Worker":
        """Return a second worker for the same jobs."""
        return Worker(self._store, self._wake, self._handlers, self._trash_kept.days)

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
        """Queue items that lost their vectors or their embed job, some items at a time."""
        after = ("", "")
        while True:
            try:
                found, after = await self._store.jobs.enqueue_missing(after)
                if found:
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
            renew = partial(self._store.jobs.extend, self._name, jobs, LEASE_SECONDS)
            try:
                with operation("job", f"job {kind}", {"commonplace.job.kind": kind}):
                    async with renewing_lease(renew):
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
            await self._store.idempotency.prune()
            await self._store.undo.prune()
            await self._store.events.prune(now() - EVENTS_KEPT)
            await self._store.versions.prune(now() - KEPT_FOR)
            while await self._store.trash.expire(now() - self._trash_kept):
                pass
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
