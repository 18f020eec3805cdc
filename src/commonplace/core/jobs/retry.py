"""What becomes of a job that did not work out: later again, or failed, with the reason in words."""

import logging
from datetime import datetime, timedelta

from commonplace.errors import CommonplaceError, IngestFailed
from commonplace.model import Job, now
from commonplace.store import Store

log = logging.getLogger(__name__)
ATTEMPTS = 8  # of a job that fails for a reason of its own, or for one that nobody foresaw
LONGEST_WAIT = 600
SHORTEST_PAUSE = 2.0  # before a job is tried again that failed for a passing reason
LONGEST_PAUSE = 60.0  # so that all is done soon after a service is back
SOURCE_PAUSE = 1800.0  # many that never answer must not keep those waiting that do
SOURCE_SECONDS = 86_400  # for which a source that cannot be reached is tried: unlike our services it may be gone for good


def error_message(job: Job, error: Exception) -> str:
    """The reason for those who look at the job; what nobody foresaw goes to the log as well."""
    if isinstance(error, CommonplaceError):
        return error.message
    if not is_transient(error):
        log.error("Job %s (%s of item %s) failed", job.id, job.kind, job.item_id, exc_info=error)
    return f"Unexpected {type(error).__name__}; the server's log says more."


def is_transient(error: Exception) -> bool:
    """Whether a dependency is down, so that the job itself may well succeed later."""
    return (
        error.transient
        if isinstance(error, CommonplaceError)
        else isinstance(error, ConnectionError | TimeoutError)
    )


def retry_at(job: Job, error: Exception, attempts: int = ATTEMPTS) -> datetime | None:
    """When to try again; None: not any more. Passing failures of services are retried without end, those of sources for a
    day, after pauses that grow with the job's age."""
    if is_transient(error):
        age = (now() - job.created_at).total_seconds()
        of_source = isinstance(error, IngestFailed)
        if of_source and age > SOURCE_SECONDS:
            return None
        longest = SOURCE_PAUSE if of_source else LONGEST_PAUSE
        return now() + timedelta(seconds=min(max(age / 2, SHORTEST_PAUSE), longest))
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
