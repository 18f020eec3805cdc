"""Webhooks: who is told of a library's events, and up to which one."""

from collections.abc import Sequence
from datetime import timedelta

from commonplace.database import Table, Tx, reads, writes
from commonplace.database.columns import micros
from commonplace.errors import Conflict, NotFound
from commonplace.model import WEBHOOK, Job, JobState, Webhook, now
from commonplace.store import rows
from commonplace.store.jobs import insert_jobs
from commonplace.store.people.people import lock_library
from commonplace.store.queues import job_queues

MOST = 100  # in a library
_ONE = "library_id = :library_id AND id = :id"
_AGAIN = timedelta(seconds=1)  # until a library is looked at again that a job is at
# Those whose next event waits, each with its open job, which has the same id.
_BEHIND = """SELECT w.id, j.state, j.run_after
             FROM webhooks AS w JOIN event_counters AS c ON c.library_id = w.library_id
             LEFT JOIN jobs AS j ON j.library_id = w.library_id AND j.id = w.id
                  AND j.state IN ('queued', 'running')
             WHERE w.library_id = :library_id AND w.disabled_at IS NULL AND w.seq < c.last"""


class Webhooks(Table):
    @writes
    def create(self, tx: Tx, webhook: Webhook) -> Webhook:
        """Create a webhook for events from now on."""
        lock_library(tx, webhook.library_id)
        if len(_of_library(tx, webhook.library_id)) >= MOST:
            raise Conflict(f"A library may have {MOST} webhooks. Delete one first.")
        seq = tx.scalar(
            "SELECT last FROM event_counters WHERE library_id = :library_id",
            library_id=webhook.library_id,
        )
        rows.insert(tx, "webhooks", webhook, seq=seq or 0)
        return webhook

    @reads
    def of_library(self, tx: Tx, library_id: str) -> list[Webhook]:
        return _of_library(tx, library_id)

    @reads
    def get(self, tx: Tx, library_id: str, webhook_id: str) -> tuple[Webhook, int]:
        """Return a webhook, and the number of the event that it was told last."""
        row = tx.one(f"SELECT * FROM webhooks WHERE {_ONE}", library_id=library_id, id=webhook_id)
        if row is None:
            raise NotFound("Webhook not found")
        return rows.value(Webhook, row), row["seq"]

    @writes
    def delete(self, tx: Tx, webhook: Webhook) -> None:
        key = {"library_id": webhook.library_id, "id": webhook.id}
        if not tx.run(f"DELETE FROM webhooks WHERE {_ONE}", **key):
            raise NotFound("Webhook not found")
        tx.run(f"DELETE FROM jobs WHERE {_ONE}", **key)

    @writes
    def advance(self, tx: Tx, webhook: Webhook, seq: int, *, delivered: bool) -> bool:
        """Continue behind this event the next time. False: the webhook was deleted."""
        return (
            tx.run(
                f"""UPDATE webhooks SET seq = :seq, delivered_at = coalesce(:at, delivered_at),
                    error = CASE WHEN :at IS NULL THEN error ELSE NULL END WHERE {_ONE}""",
                seq=seq,
                at=now() if delivered else None,
                library_id=webhook.library_id,
                id=webhook.id,
            )
            > 0
        )

    @writes
    def record_failure(self, tx: Tx, webhook: Webhook, error: str, *, disable: bool) -> None:
        tx.run(
            f"""UPDATE webhooks SET error = :error, disabled_at = coalesce(:at, disabled_at)
                WHERE {_ONE}""",
            error=error,
            at=now() if disable else None,
            library_id=webhook.library_id,
            id=webhook.id,
        )

    @writes
    def enable(self, tx: Tx, webhook: Webhook) -> None:
        """Send what has happened since it was disabled, or try again at once."""
        key = {"library_id": webhook.library_id, "id": webhook.id}
        tx.run(f"UPDATE webhooks SET disabled_at = NULL, error = NULL WHERE {_ONE}", **key)
        tx.run(f"DELETE FROM jobs WHERE {_ONE} AND state = 'queued'", **key)
        job_queues.note(tx, webhook.library_id, job_queues.NOTIFY, now())

    async def enqueue_due(self) -> int:
        """Queue a job for each webhook that is behind; return how many."""
        libraries = await self._db.read(job_queues.due, job_queues.NOTIFY, now())
        return await self._enqueue_due(libraries) if libraries else 0

    @writes
    def _enqueue_due(self, tx: Tx, libraries: Sequence[str]) -> int:
        at, queued = now(), 0
        for library_id in job_queues.lock_due(tx, libraries, job_queues.NOTIFY, at):
            behind = tx.tuples(_BEHIND, library_id=library_id)
            for webhook_id, state, _ in behind:
                if state is None:
                    tx.run(f"DELETE FROM jobs WHERE {_ONE}", library_id=library_id, id=webhook_id)
                    insert_jobs(tx, [Job(webhook_id, library_id, None, WEBHOOK, JobState.QUEUED)])
                    queued += 1
            again = micros(at + _AGAIN)
            times = [max(again, due) if state == "queued" else again for _, state, due in behind]
            job_queues.reschedule(tx, library_id, job_queues.NOTIFY, at, times)
        return queued


def _of_library(tx: Tx, library_id: str) -> list[Webhook]:
    return rows.every(
        tx,
        Webhook,
        "SELECT * FROM webhooks WHERE library_id = :library_id ORDER BY created_at, id",
        library_id=library_id,
    )
