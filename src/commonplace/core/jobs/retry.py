"""Leases of running jobs, and what becomes of failed ones: a retry, or a message."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

from commonplace.errors import CommonplaceError, IngestFailed
from commonplace.model import Job, now
from commonplace.store import Store

log = logging.getLogger(__name__)
LEASE_SECONDS = 120
ATTEMPTS = 8  # for a job that fails by its own fault, or unexpectedly
LONGEST_WAIT = 600
SHORTEST_PAUSE = 2.0  # before the retry of a transient failure
LONGEST_PAUSE = 60.0  # so that jobs finish soon after a service is back
SOURCE_PAUSE = 1800.0  # many dead sources must not delay the others
SOURCE_SECONDS = 86_400  # during which an unreachable source is retried: it may be gone for good


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
        job.id,
        error_message(job, error),
        retry_at(job, error, attempts),
        counted=not is_transient(error),
    )
