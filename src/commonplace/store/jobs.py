"""The queue: rows written with the item they are about, leased, retried. Running a job twice is harmless."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from commonplace.database import scope_sql
from commonplace.database.columns import micros
from commonplace.database.transaction import Tx
from commonplace.database.unit_of_work import Table, reads, reads_inline, writes
from commonplace.errors import NotFound
from commonplace.model import Item, Job, JobState, Json, Scope, new_id, now
from commonplace.store import rows

_COLUMNS = (
    "library_id",
    "id",
    "item_id",
    "kind",
    "state",
    "attempts",
    "error",
    "progress",
    "payload",
    "created_at",
    "updated_at",
    "run_after",
)

# What a worker let go of without a word comes first. One condition at a time: for several at once all that wait would be read
# and sorted. What lies further ahead than any lease or pause is from before the clock was set back.
_LOST = (
    "j.state = 'running' AND j.leased_until < :now",
    "j.state = 'running' AND j.leased_until > :ahead",
)
_DUE = ("j.state = 'queued' AND j.run_after <= :now", "j.state = 'queued' AND j.run_after > :ahead")
AHEAD = timedelta(hours=2)
CRASHES = 5  # after which a job is not given to another worker
CRASHED = f"The worker stopped {CRASHES} times while it ran this job, perhaps for lack of memory."

# The column of an item that says how far a job of this kind is.
_STATUS = {"ingest": "ingest_status", "transcribe": "transcription_status"}
# Kinds of which each library gets its turn: those with fewer jobs running come first.
_FAIR = ("ingest",)
_RUNNING = """LEFT JOIN (SELECT library_id, count(*) AS running FROM jobs WHERE kind = :kind
              AND state = 'running' GROUP BY library_id) AS busy
              ON busy.library_id = j.library_id"""

_SWEPT = 10_000  # items queued at once


def insert_jobs(tx: Tx, jobs: Sequence[Job]) -> None:
    tx.insert(
        "jobs",
        ", ".join(_COLUMNS),
        [
            (
                job.library_id,
                job.id,
                job.item_id,
                job.kind,
                job.state,
                job.attempts,
                job.error,
                job.progress,
                json.dumps(job.payload),
                *map(micros, (job.created_at, job.updated_at, job.run_after)),
            )
            for job in jobs
        ],
    )


COUNTED = 1_000  # open jobs; a few more say little, and counting 100,000 slows each search down


class Jobs(Table):
    @writes
    def enqueue_embedding(self, tx: Tx, stamp: str) -> int:
        """A job for every item that has sections without a vector of this stamp and no job waiting; how many."""

        tx.run(
            "DELETE FROM jobs WHERE kind = 'embed' AND state = 'failed'"
        )  # what they were about is asked for anew
        stale = tx.all(
            """SELECT DISTINCT s.library_id, s.item_id
               FROM sections AS s
               LEFT JOIN vectors AS v ON v.library_id = s.library_id AND v.item_id = s.item_id
               AND v.section_id = s.id AND v.stamp = :stamp
               WHERE v.section_id IS NULL AND NOT EXISTS (SELECT 1 FROM jobs AS j
               WHERE j.library_id = s.library_id AND j.item_id = s.item_id AND j.kind = 'embed'
               AND j.state = 'queued')""",
            stamp=stamp,
        )
        jobs = [
            Job(id=new_id(), library_id=row["library_id"], item_id=row["item_id"], kind="embed")
            for row in stale
        ]
        insert_jobs(tx, jobs)
        return len(jobs)

    async def enqueue_missing(self) -> int:
        """Queue embedding for items with sections that have no vector at all, and no job that is open or has failed; how many."""

        def look(tx: Tx) -> list[Any]:
            return tx.all(
                """SELECT DISTINCT s.library_id, s.item_id
                   FROM sections AS s
                   WHERE NOT EXISTS (SELECT 1 FROM vectors AS v
                   WHERE v.library_id = s.library_id AND v.item_id = s.item_id
                   AND v.section_id = s.id) AND NOT EXISTS (SELECT 1 FROM jobs AS j
                   WHERE j.library_id = s.library_id AND j.item_id = s.item_id
                   AND j.kind = 'embed' AND j.state <> 'done') LIMIT :most""",
                most=_SWEPT,
            )

        def work(tx: Tx) -> int:
            jobs = [
                Job(id=new_id(), library_id=row["library_id"], item_id=row["item_id"], kind="embed")
                for row in look(tx)
            ]
            insert_jobs(tx, jobs)
            return len(jobs)

        return await self._db.write(work) if await self._db.read(look) else 0

    @reads
    def count_open(self, tx: Tx, kind: str, scope: Scope | None = None) -> tuple[int, str | None]:
        """How many items of the scope, or of all libraries, have an open job of this kind, and why one did not succeed yet.
        More than COUNTED are not counted any further."""
        condition, values = scope_sql.visible(scope) if scope else ("TRUE", {})
        own = "j.library_id = :library_id" if scope else "TRUE"
        of_item = "JOIN items AS i ON i.library_id = j.library_id AND i.id = j.item_id"

        found = len(
            tx.tuples(
                f"""SELECT 1 FROM jobs AS j {of_item}
                    WHERE {own} AND j.kind = :kind AND j.state IN ('queued', 'running')
                    AND {condition} LIMIT :most""",
                kind=kind,
                most=COUNTED + 1,
                **values,
            )
        )
        # Those that failed are tried again later than the rest: looking at the last ones is enough, and takes no time.
        last = found and tx.one(
            f"""SELECT j.error FROM (SELECT * FROM jobs WHERE state = 'queued' AND kind = :kind
                ORDER BY run_after DESC LIMIT :most) AS j {of_item}
                WHERE j.error IS NOT NULL AND {condition} LIMIT 1""",
            kind=kind,
            most=COUNTED,
            **values,
        )
        return found, last["error"] if last else None

    async def lease(self, worker: str, kind: str, *, limit: int, seconds: int) -> list[Job]:
        """Jobs of the kind that nobody holds, held for `seconds`."""
        at = now()
        # Looked for without a write lock: idle workers must not stand in the writers' way.
        if not await self._db.read(_ready, kind, at, 1):
            return []

        def work(tx: Tx) -> list[Job]:
            _give_up_crashing(tx, kind, at)
            taken = _ready(tx, kind, at, limit, lock=True)
            tx.run(
                """UPDATE jobs SET state = 'running', attempts = attempts + 1,
                   leased_by = :worker, leased_until = :until, updated_at = :now
                   WHERE id IN :ids""",
                worker=worker,
                until=micros(at + timedelta(seconds=seconds)),
                now=micros(at),
                ids=taken,
            )
            return [
                rows.job(row)
                for row in tx.all(
                    "SELECT * FROM jobs WHERE id IN :ids ORDER BY run_after, id", ids=taken
                )
            ]

        return await self._db.write(work)

    @writes
    def extend(self, tx: Tx, worker: str, job_ids: Sequence[str], seconds: int) -> None:
        until = micros(now() + timedelta(seconds=seconds))
        tx.run(
            """UPDATE jobs SET leased_until = :until
               WHERE id IN :ids AND leased_by = :worker AND state = 'running'""",
            until=until,
            ids=list(job_ids),
            worker=worker,
        )

    @writes
    def finish(self, tx: Tx, worker: str, job_ids: Sequence[str]) -> None:
        tx.run(
            """UPDATE jobs SET state = 'done', progress = 1, error = NULL, leased_by = NULL,
               leased_until = NULL, updated_at = :at
               WHERE id IN :ids AND leased_by = :worker""",
            at=micros(now()),
            ids=list(job_ids),
            worker=worker,
        )

    @writes
    def fail(
        self,
        tx: Tx,
        worker: str,
        job_id: str,
        error: str,
        retry_at: datetime | None,
        *,
        counted: bool = True,
    ) -> None:
        """Back to the queue at `retry_at`, or failed for good. `counted`: as one of the attempts that a job has."""

        held = tx.run(
            """UPDATE jobs SET state = :state, error = :error,
               attempts = attempts - :uncounted, leased_by = NULL,
               run_after = coalesce(:run_after, run_after), leased_until = NULL,
               updated_at = :at
               WHERE id = :id AND leased_by = :worker""",
            state=JobState.QUEUED if retry_at else JobState.FAILED,
            error=error,
            run_after=micros(retry_at),
            at=micros(now()),
            id=job_id,
            worker=worker,
            uncounted=0 if counted else 1,
        )
        if held and not retry_at:
            _tell_item(tx, job_id, error)
        elif held:  # an unread item says why it still waits
            tx.run(
                """UPDATE items SET status_reason = :error
                   WHERE ingest_status = 'queued' AND (library_id, id) IN (SELECT library_id,
                   item_id FROM jobs WHERE id = :id AND kind = 'ingest')""",
                error=error,
                id=job_id,
            )

    @writes
    def set_payload(self, tx: Tx, worker: str, job_id: str, payload: Json) -> None:
        """What to know when it is tried again."""
        tx.run(
            "UPDATE jobs SET payload = :payload WHERE id = :id AND leased_by = :worker",
            payload=json.dumps(payload),
            id=job_id,
            worker=worker,
        )

    @writes
    def postpone(self, tx: Tx, worker: str, job_id: str, until: datetime) -> None:
        """Back to the queue as if it had not been tried."""
        tx.run(
            """UPDATE jobs SET state = 'queued', attempts = attempts - 1, run_after = :until,
               leased_by = NULL, leased_until = NULL, updated_at = :at
               WHERE id = :id AND leased_by = :worker""",
            until=micros(until),
            at=micros(now()),
            id=job_id,
            worker=worker,
        )

    @writes
    def retry(self, tx: Tx, scope: Scope, item_id: str) -> list[Job]:
        """Queue the item's failed jobs anew."""

        failed = [
            row["id"]
            for row in tx.all(
                """SELECT id FROM jobs
                   WHERE library_id = :library_id AND item_id = :item_id AND state = 'failed'""",
                library_id=scope.library_id,
                item_id=item_id,
            )
        ]
        if not failed:
            return []
        tx.run(
            """UPDATE jobs SET state = 'queued', attempts = 0, error = NULL, progress = 0,
               created_at = :at, run_after = :at, updated_at = :at
               WHERE id IN :ids""",
            at=micros(now()),
            ids=failed,
        )
        for column in _STATUS.values():
            tx.run(
                f"""UPDATE items SET {column} = 'queued', status_reason = NULL
                    WHERE library_id = :library_id AND id = :item_id AND {column} = 'failed'""",
                library_id=scope.library_id,
                item_id=item_id,
            )
        return [rows.job(row) for row in tx.all("SELECT * FROM jobs WHERE id IN :ids", ids=failed)]

    @reads_inline
    def latest(self, tx: Tx, item: Item, kind: str) -> Job | None:
        row = tx.one(
            """SELECT * FROM jobs
               WHERE library_id = :library_id AND item_id = :item_id AND kind = :kind
               ORDER BY created_at DESC LIMIT 1""",
            library_id=item.library_id,
            item_id=item.id,
            kind=kind,
        )
        return rows.job(row) if row else None

    @writes
    def enqueue(self, tx: Tx, jobs: Sequence[Job]) -> None:
        insert_jobs(tx, jobs)

    @writes
    def withdraw(self, tx: Tx, scope: Scope, item_ids: Sequence[str], kind: str) -> int:
        """Take these items' jobs of a kind out of the queue, as long as nobody runs them; how many."""
        condition, values = scope_sql.visible(scope)
        return tx.run(
            f"""DELETE FROM jobs
                WHERE library_id = :library_id AND kind = :kind AND state = 'queued'
                AND item_id IN (SELECT i.id FROM items AS i WHERE {condition} AND i.id IN :ids)""",
            kind=kind,
            ids=list(item_ids),
            **values,
        )

    @reads
    def list_jobs(
        self,
        tx: Tx,
        scope: Scope,
        *,
        states: Sequence[JobState],
        kinds: Sequence[str] = (),
        item_ids: Sequence[str] = (),
        limit: int,
    ) -> list[Job]:
        """Of what the scope sees, newest first; no kinds or items named: of all."""
        condition, values = scope_sql.visible(scope)
        if kinds:
            condition, values = f"{condition} AND j.kind IN :kinds", values | {"kinds": list(kinds)}
        if item_ids:
            condition, values = (
                f"{condition} AND j.item_id IN :ids",
                values | {"ids": list(item_ids)},
            )
        return [
            rows.job(row)
            for row in tx.all(
                f"""SELECT j.* FROM jobs AS j
                    JOIN items AS i ON i.library_id = j.library_id AND i.id = j.item_id
                    WHERE j.library_id = :library_id AND j.state IN :states AND {condition}
                    ORDER BY j.updated_at DESC, j.id LIMIT :limit""",
                states=[*states],
                limit=limit,
                **values,
            )
        ]

    @reads_inline
    def get(self, tx: Tx, scope: Scope, job_id: str) -> Job:
        condition, values = scope_sql.visible(scope)
        row = tx.one(
            f"""SELECT j.* FROM jobs AS j
                JOIN items AS i ON i.library_id = j.library_id AND i.id = j.item_id
                WHERE {condition} AND j.library_id = :library_id AND j.id = :id""",
            id=job_id,
            **values,
        )
        if row is None:
            raise NotFound("Job not found")
        return rows.job(row)

    @writes
    def prune(self, tx: Tx, before: datetime) -> None:
        """Forget jobs done before then."""
        tx.run(
            "DELETE FROM jobs WHERE state = 'done' AND updated_at < :before",
            before=micros(before),
        )

    @reads
    def has_activity(self, tx: Tx, since: datetime) -> bool:
        """Whether anybody has taken up or finished a job since then."""
        return (
            tx.one(
                """SELECT 1 FROM jobs
                   WHERE state IN ('running', 'done') AND updated_at >= :since LIMIT 1""",
                since=micros(since),
            )
            is not None
        )

    @reads
    def has_new_jobs(self, tx: Tx, kind: str, since: datetime) -> bool:
        """Whether jobs of this kind were queued since then that nobody has taken up."""
        return (
            tx.one(
                """SELECT 1 FROM jobs
                   WHERE state = 'queued' AND run_after >= :since AND run_after <= :now
                   AND kind = :kind LIMIT 1""",
                since=micros(since),
                now=micros(now()),
                kind=kind,
            )
            is not None
        )

    @reads
    def running_share(self, tx: Tx) -> float:
        """How many jobs' worth of the running ones is done."""
        row = tx.one("SELECT coalesce(sum(progress), 0) AS done FROM jobs WHERE state = 'running'")
        return float(row["done"]) if row else 0.0

    @reads
    def counts(self, tx: Tx) -> dict[str, int]:
        found = tx.all("SELECT state, count(*) AS n FROM jobs GROUP BY state")
        return {row["state"]: row["n"] for row in found}


def _ready(tx: Tx, kind: str, at: datetime, limit: int, *, lock: bool = False) -> list[str]:
    """Return the ids of jobs to run now. One that a worker was lost with comes alone: should it have been the cause, it
    does no harm to others."""
    end = " FOR UPDATE OF j SKIP LOCKED" if lock and tx.engine == "postgres" else ""

    fair, first = (_RUNNING, "coalesce(busy.running, 0), ") if kind in _FAIR else ("", "")

    def find(ready: str, most: int) -> list[str]:
        return [
            row["id"]
            for row in tx.all(
                f"""SELECT j.id FROM jobs AS j {fair}
                    WHERE j.kind = :kind AND {ready}
                    ORDER BY {first}j.run_after LIMIT :limit{end}""",
                kind=kind,
                limit=most,
                now=micros(at),
                ahead=micros(at + AHEAD),
            )
        ]

    for lost in _LOST:
        if found := find(lost, 1):
            return found
    due: list[str] = []
    for ready in _DUE:
        due += find(ready, limit - len(due))
    return due


def _give_up_crashing(tx: Tx, kind: str, at: datetime) -> None:
    for lost in _LOST:
        for row in tx.all(
            f"SELECT j.id FROM jobs AS j WHERE j.kind = :kind AND {lost} AND j.attempts >= :most",
            kind=kind,
            most=CRASHES,
            now=micros(at),
            ahead=micros(at + AHEAD),
        ):
            tx.run(
                """UPDATE jobs SET state = 'failed', error = :error, leased_by = NULL,
                   leased_until = NULL, updated_at = :at
                   WHERE id = :id""",
                error=CRASHED,
                at=micros(at),
                id=row["id"],
            )
            _tell_item(tx, row["id"], CRASHED)


def _tell_item(tx: Tx, job_id: str, error: str) -> None:
    """Show on its item that reading or transcribing it has failed for good."""
    for kind, column in _STATUS.items():
        tx.run(
            f"""UPDATE items SET {column} = 'failed', status_reason = :error
                WHERE {column} IN ('queued', 'running') AND (library_id, id) IN
                (SELECT library_id, item_id FROM jobs WHERE id = :id AND kind = :kind)""",
            error=error,
            id=job_id,
            kind=kind,
        )
