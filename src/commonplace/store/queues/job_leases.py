"""Leasing jobs of one library: those that are due, and those of lost workers."""

from datetime import datetime, timedelta

from commonplace.database import Tx
from commonplace.database.columns import micros
from commonplace.model import INDEX, EventType, Job
from commonplace.store import rows
from commonplace.store.events import log
from commonplace.store.queues import job_queues

CRASHES = 5  # after which a job is not given to another worker
CRASHED = f"The worker stopped {CRASHES} times while it ran this job, perhaps for lack of memory."
# The item's column with the status of such a job.
STATUS = {"ingest": "ingest_status", "transcribe": "transcription_status"}
_RUNNING = "library_id = :library_id AND kind = :kind AND state = 'running'"
_QUEUED = "library_id = :library_id AND kind = :kind AND state = 'queued'"
_OWN = "library_id = :library_id AND id IN :ids"


def take(
    tx: Tx,
    library_id: str,
    kind: str,
    worker: str,
    limit: int,
    at: datetime,
    seconds: int,
    first: bool,
) -> tuple[list[Job], bool]:
    """Lease jobs of a library whose queue is locked, and tell whether a worker was lost with one.

    Such a job comes alone, if it is the first: if it is the cause, it harms no others.
    """
    key = {"library_id": library_id, "kind": kind}
    time, ahead = micros(at), micros(at + job_queues.AHEAD)
    held = tx.tuples(
        f"SELECT id, item_id, attempts, leased_until FROM jobs WHERE {_RUNNING} ORDER BY run_after",
        **key,
    )
    # Times further ahead than any lease are from before the clock was set back.
    lost = [row for row in held if not time <= row[3] <= ahead]
    ends = [row[3] for row in held if row not in lost]
    for job_id, item_id, attempts, _ in lost:
        if attempts >= CRASHES:
            tx.run(
                f"""UPDATE jobs SET state = 'failed', error = :error, leased_by = NULL,
                    leased_until = NULL, updated_at = :at WHERE {_OWN}""",
                error=CRASHED,
                at=at,
                library_id=library_id,
                ids=[job_id],
            )
            fail_item(tx, library_id, item_id, kind, CRASHED)
    again = [job_id for job_id, _, attempts, _ in lost if attempts < CRASHES]
    waiting = tx.tuples(
        f"SELECT id, run_after FROM jobs WHERE {_QUEUED} ORDER BY run_after LIMIT :most",
        most=limit + 1,
        **key,
    )
    ready = [job_id for job_id, run_after in waiting if not time < run_after <= ahead]
    if again:
        ready = again[:1] if first else []
        ends += [time for _ in again[len(ready) :]]
    if kind == INDEX:  # one at a time: two would make and drop the same indexes
        waiting = [] if ends else waiting[:1]
        ready = ready[: 0 if ends else 1]
    ready = ready[:limit]
    until = at + timedelta(seconds=seconds)
    taken = rows.every(
        tx,
        Job,
        f"""UPDATE jobs SET state = 'running', attempts = attempts + 1, leased_by = :worker,
            leased_until = :until, updated_at = :now
            WHERE {_OWN} AND state IN ('queued', 'running') RETURNING *""",
        worker=worker,
        until=until,
        now=at,
        library_id=library_id,
        ids=ready,
    )
    ends += [run_after for job_id, run_after in waiting if job_id not in ready]
    job_queues.reschedule(tx, library_id, kind, at, [*ends, *(micros(until) for _ in taken)])
    return sorted(taken, key=lambda job: (job.run_after, job.id)), bool(again)


def fail_item(tx: Tx, library_id: str, item_id: str | None, kind: str, error: str) -> None:
    """Show on the job's item that reading or transcribing it has failed for good."""
    if (column := STATUS.get(kind)) and tx.run(
        f"""UPDATE items SET {column} = 'failed', status_reason = :error
            WHERE library_id = :library_id AND id = :item_id
            AND {column} IN ('queued', 'running')""",
        error=error,
        library_id=library_id,
        item_id=item_id,
    ):
        log.record(tx, EventType.FAILED, library_id, [str(item_id)], None)
