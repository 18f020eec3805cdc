"""What becomes of a job that did not work out: later again, or failed, with the reason in words."""

import logging
from datetime import datetime, timedelta

from commonplace.errors import CommonplaceError
from commonplace.model import Job, now
from commonplace.ports import Store

log = logging.getLogger(__name__)
ATTEMPTS = 8
LONGEST_WAIT = 600


def in_words(job: Job, error: Exception) -> str:
    """The reason for those who look at the job; what nobody foresaw goes to the log as well."""
    if isinstance(error, CommonplaceError):
        return error.message
    log.error("Job %s (%s of item %s) failed", job.id, job.kind, job.item_id, exc_info=error)
    return f"Unexpected {type(error).__name__}; the server's log says more."


def retry_at(job: Job, attempts: int = ATTEMPTS) -> datetime | None:
    """When to try again; None: not any more."""
    if job.attempts >= attempts:
        return None
    return now() + timedelta(seconds=min(2 ** job.attempts, LONGEST_WAIT))


async def give_back(store: Store, worker: str, job: Job, error: Exception) -> None:
    await store.jobs.fail(worker, job.id, in_words(job, error), retry_at(job))
