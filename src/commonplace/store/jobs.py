"""The job queue: rows written with the item they are about, leased, retried.

Running a job twice is harmless.
"""

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any

from commonplace.database import Table, Tx, reads, reads_inline, scope_sql, writes
from commonplace.model import INDEX, EventType, Item, Job, JobState, Json, Scope, new_id, now
from commonplace.store import rows
from commonplace.store.events import log

AHEAD = timedelta(hours=2)  # no lease or pause is longer
CRASHES = 5  # after which a job is not given to another worker
CRASHED = f"The worker stopped {CRASHES} times while it ran this job, perhaps for lack of memory."
COUNTED = 1_000  # open jobs; a few more say little, and counting 100,000 slows each search down
_SWEPT = 10_000  # items looked at in one turn
_BY_IDS = "SELECT * FROM jobs WHERE id IN :ids"
_COLUMNS = [field.name for field in fields(Job)]

# Jobs of lost workers come first. One condition at a time: for several at once, all waiting jobs
# would be read and sorted. Times further ahead than any lease are from before the clock was set
# back.
_LOST = (
    "j.state = 'running' AND j.leased_until < :now",
    "j.state = 'running' AND j.leased_until > :ahead",
)
_DUE = ("j.state = 'queued' AND j.run_after <= :now", "j.state = 'queued' AND j.run_after > :ahead")
# The item's column with the status of such a job.
_STATUS = {"ingest": "ingest_status", "transcribe": "transcription_status"}
# Kinds whose libraries take turns: those with fewer running jobs come first.
_FAIR = ("ingest",)
_RUNNING = """LEFT JOIN (SELECT library_id, count(*) AS running FROM jobs
                         WHERE kind = :kind AND state = 'running' GROUP BY library_id) AS busy
              ON busy.library_id = j.library_id"""
_OF_ITEM = "JOIN items AS i ON i.library_id = j.library_id AND i.id = j.item_id"
_OF_VECTOR = "v.library_id = s.library_id AND v.item_id = s.item_id AND v.section_id = s.id"
_EMBEDS = "j.library_id = s.library_id AND j.item_id = s.item_id AND j.kind = 'embed'"
# Some items in the order of their key, and whether they have sections without vectors.
_LOOK = f"""WITH seen AS (
        SELECT library_id, id FROM items WHERE (library_id, id) > (:library_id, :item_id)
        ORDER BY library_id, id LIMIT :most)
    SELECT seen.library_id, seen.id, EXISTS (
        SELECT 1 FROM sections AS s WHERE s.library_id = seen.library_id AND s.item_id = seen.id
        AND NOT EXISTS (SELECT 1 FROM vectors AS v WHERE {_OF_VECTOR})
        AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE {_EMBEDS} AND j.state <> 'done'))
    FROM seen ORDER BY seen.library_id, seen.id"""


def insert_jobs(tx: Tx, jobs: Sequence[Job]) -> None:
    tx.insert(
        "jobs",
        ", ".join(_COLUMNS),
        [tuple(rows.column(getattr(job, name)) for name in _COLUMNS) for job in jobs],
    )


def enqueue_index(tx: Tx, library_id: str) -> None:
    """Queue the job that makes or drops a library's indexes, unless it is waiting already."""
    if not tx.one(
        """SELECT 1 FROM jobs WHERE library_id = :library_id AND kind = :kind
           AND state = 'queued' LIMIT 1""",
        library_id=library_id,
        kind=INDEX,
    ):
        insert_jobs(tx, [Job(new_id(), library_id, None, INDEX)])


class Jobs(Table):
    @writes
    def enqueue_embedding(self, tx: Tx, stamp: str) -> int:
        """Queue each item that has sections without a vector of this stamp, and no queued job.

        Return how many.
        """
        tx.run("DELETE FROM jobs WHERE kind = 'embed' AND state = 'failed'")  # they are queued anew
        return _enqueue(
            tx,
            "embed",
            tx.tuples(
                f"""SELECT DISTINCT s.library_id, s.item_id FROM sections AS s
                    LEFT JOIN vectors AS v ON {_OF_VECTOR} AND v.stamp = :stamp
                    WHERE v.section_id IS NULL AND NOT EXISTS (
                        SELECT 1 FROM jobs AS j WHERE {_EMBEDS} AND j.state = 'queued')""",
                stamp=stamp,
            ),
        )

    @writes
    def enqueue_describing(self, tx: Tx) -> int:
        """Queue each item whose summary is not by a model, which costs money; return how many."""
        found = tx.tuples(
            """SELECT i.library_id, i.id FROM items AS i WHERE i.ingest_status IS NULL
               AND i.metadata NOT LIKE '%"ai_generated":true%' AND NOT EXISTS (
                   SELECT 1 FROM jobs AS j WHERE j.library_id = i.library_id
                   AND j.item_id = i.id AND j.kind = 'transform' AND j.state = 'queued')"""
        )
        return _enqueue(tx, "transform", found)

    @writes
    def enqueue_linking(self, tx: Tx) -> int:
        """Delete discovered links, and queue each item that may have some, to be compared with
        what its writer may see. Return how many."""
        tx.run("DELETE FROM relations WHERE kind = 'RELATED_TO' AND explicit = 0")
        folders: dict[str, list[str]] = {}
        for token_id, folder_id in tx.tuples("SELECT token_id, folder_id FROM token_folders"):
            folders.setdefault(token_id, []).append(folder_id)
        found = tx.tuples(
            """SELECT i.library_id, i.id, t.id, t.whole_library, t.kb_only FROM items AS i
               LEFT JOIN tokens AS t ON t.library_id = i.library_id AND t.id = i.created_by
               WHERE i.entity_type <> 'document' AND i.in_kb = 1 ORDER BY i.id"""
        )
        jobs = [
            Job(
                new_id(),
                library_id,
                item_id,
                "link",
                payload={
                    "folders": None if token is None or whole else sorted(folders.get(token, [])),
                    "kb_only": bool(kb_only),
                },
            )
            for library_id, item_id, token, whole, kb_only in found
        ]
        insert_jobs(tx, jobs)
        return len(jobs)

    async def enqueue_missing(
        self, after: tuple[str, str] = ("", ""), most: int = _SWEPT
    ) -> tuple[int, tuple[str, str]]:
        """Queue items that have sections without any vector, and no open or failed job, among the
        next items `after` one. Return how many, and the last item: ("", "") at the end."""

        def look(tx: Tx) -> list[tuple[Any, ...]]:
            return tx.tuples(_LOOK, library_id=after[0], item_id=after[1], most=most)

        seen = await self._db.read(look)
        missing = sum(found for *_, found in seen)
        if missing:
            missing = await self._db.write(
                lambda tx: _enqueue(tx, "embed", [row[:2] for row in look(tx) if row[2]])
            )
        return missing, (seen[-1][0], seen[-1][1]) if len(seen) == most else ("", "")

    @reads
    def count_open(self, tx: Tx, kind: str, scope: Scope | None = None) -> tuple[int, str | None]:
        """Count items in scope, or in all libraries, with an open job of this kind.

        Counts no further than COUNTED + 1. Return also an error of one that failed before.
        """
        own = f"j.library_id = :library_id AND {scope_sql.visible(scope)}" if scope else "TRUE"
        values = {"kind": kind} | (scope_sql.within(scope) if scope else {})
        found = tx.tuples(
            f"""SELECT 1 FROM jobs AS j {_OF_ITEM} WHERE j.kind = :kind
                AND j.state IN ('queued', 'running') AND {own} LIMIT :most""",
            most=COUNTED + 1,
            **values,
        )
        # Failed ones are retried later than the rest: looking at the last ones is enough.
        library = "j.library_id = :library_id" if scope else "TRUE"
        error = found and tx.scalar(
            f"""SELECT j.error FROM (
                    SELECT * FROM jobs AS j WHERE {library} AND j.kind = :kind
                    AND j.state IN ('queued', 'running')
                    ORDER BY j.run_after DESC LIMIT :most) AS j {_OF_ITEM}
                WHERE j.error IS NOT NULL AND {own} LIMIT 1""",
            most=COUNTED,
            **values,
        )
        return len(found), error or None

    @reads_inline
    def has_open(self, tx: Tx, kind: str) -> bool:
        """Return whether any library has an open job of this kind."""
        return any(
            tx.one(
                "SELECT 1 FROM jobs WHERE state = :state AND kind = :kind LIMIT 1",
                state=state,
                kind=kind,
            )
            for state in (JobState.QUEUED, JobState.RUNNING)
        )

    async def lease(self, worker: str, kind: str, *, limit: int, seconds: int) -> list[Job]:
        """Lease jobs of the kind that nobody holds, for `seconds`."""
        # Looked for without a write lock: idle workers must not block writers.
        if not await self._db.read(_ready, kind, now(), 1):
            return []
        return await self._lease(worker, kind, limit, seconds)

    @writes
    def _lease(self, tx: Tx, worker: str, kind: str, limit: int, seconds: int) -> list[Job]:
        at = now()
        _give_up_crashing(tx, kind, at)
        taken = _ready(tx, kind, at, limit, lock=True)
        tx.run(
            """UPDATE jobs SET state = 'running', attempts = attempts + 1, leased_by = :worker,
               leased_until = :until, updated_at = :now WHERE id IN :ids""",
            worker=worker,
            until=at + timedelta(seconds=seconds),
            now=at,
            ids=taken,
        )
        return rows.every(tx, Job, f"{_BY_IDS} ORDER BY run_after, id", ids=taken)

    @writes
    def extend(self, tx: Tx, worker: str, job_ids: Sequence[str], seconds: int) -> None:
        tx.run(
            """UPDATE jobs SET leased_until = :until
               WHERE id IN :ids AND leased_by = :worker AND state = 'running'""",
            until=now() + timedelta(seconds=seconds),
            ids=list(job_ids),
            worker=worker,
        )

    @writes
    def finish(self, tx: Tx, worker: str, job_ids: Sequence[str]) -> None:
        tx.run(
            """UPDATE jobs SET state = 'done', progress = 1, error = NULL, leased_by = NULL,
               leased_until = NULL, updated_at = :at
               WHERE id IN :ids AND leased_by = :worker""",
            at=now(),
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
        """Queue the job again at `retry_at`, or fail it for good.

        `counted`: it counts as one of the attempts that a job has.
        """
        held = tx.run(
            """UPDATE jobs SET state = :state, error = :error, attempts = attempts - :uncounted,
               leased_by = NULL, run_after = coalesce(:run_after, run_after),
               leased_until = NULL, updated_at = :at WHERE id = :id AND leased_by = :worker""",
            state=JobState.QUEUED if retry_at else JobState.FAILED,
            error=error,
            run_after=retry_at,
            at=now(),
            id=job_id,
            worker=worker,
            uncounted=0 if counted else 1,
        )
        if held and not retry_at:
            _fail_item(tx, job_id, error)
        elif held:  # an unread item says why it still waits
            tx.run(
                """UPDATE items SET status_reason = :error
                   WHERE ingest_status = 'queued' AND (library_id, id) IN
                   (SELECT library_id, item_id FROM jobs WHERE id = :id AND kind = 'ingest')""",
                error=error,
                id=job_id,
            )

    @writes
    def set_payload(self, tx: Tx, worker: str, job_id: str, payload: Json) -> None:
        """Store what the next attempt needs to know."""
        tx.run(
            "UPDATE jobs SET payload = :payload WHERE id = :id AND leased_by = :worker",
            payload=rows.column(payload),
            id=job_id,
            worker=worker,
        )

    @writes
    def postpone(self, tx: Tx, worker: str, job_id: str, until: datetime) -> None:
        """Queue the job again without counting the attempt."""
        tx.run(
            """UPDATE jobs SET state = 'queued', attempts = attempts - 1, run_after = :until,
               leased_by = NULL, leased_until = NULL, updated_at = :at
               WHERE id = :id AND leased_by = :worker""",
            until=until,
            at=now(),
            id=job_id,
            worker=worker,
        )

    @writes
    def retry(self, tx: Tx, scope: Scope, item_id: str) -> list[Job]:
        """Queue the item's failed jobs again."""
        key = {"library_id": scope.library_id, "item_id": item_id}
        failed = tx.column(
            """SELECT id FROM jobs WHERE library_id = :library_id AND item_id = :item_id
               AND state = 'failed'""",
            **key,
        )
        if not failed:
            return []
        tx.run(
            """UPDATE jobs SET state = 'queued', attempts = 0, error = NULL, progress = 0,
               created_at = :at, run_after = :at, updated_at = :at WHERE id IN :ids""",
            at=now(),
            ids=failed,
        )
        for column in _STATUS.values():
            tx.run(
                f"""UPDATE items SET {column} = 'queued', status_reason = NULL
                    WHERE library_id = :library_id AND id = :item_id AND {column} = 'failed'""",
                **key,
            )
        return rows.every(tx, Job, _BY_IDS, ids=failed)

    @reads_inline
    def latest(self, tx: Tx, item: Item, kind: str) -> Job | None:
        return rows.first(
            tx,
            Job,
            """SELECT * FROM jobs WHERE library_id = :library_id AND item_id = :item_id
               AND kind = :kind ORDER BY created_at DESC LIMIT 1""",
            library_id=item.library_id,
            item_id=item.id,
            kind=kind,
        )

    @writes
    def enqueue(self, tx: Tx, jobs: Sequence[Job]) -> None:
        insert_jobs(tx, jobs)

    @writes
    def withdraw(self, tx: Tx, scope: Scope, item_ids: Sequence[str], kind: str) -> int:
        """Delete the items' queued jobs of a kind; return how many."""
        return tx.run(
            f"""DELETE FROM jobs WHERE library_id = :library_id AND kind = :kind
                AND state = 'queued' AND item_id IN
                (SELECT i.id FROM items AS i WHERE {scope_sql.visible(scope)} AND i.id IN :ids)""",
            kind=kind,
            ids=list(item_ids),
            **scope_sql.within(scope),
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
        """Return jobs in scope, newest first; without kinds or items, those of all."""
        condition, values = scope_sql.visible(scope), scope_sql.within(scope)
        for column, wanted in (("kind", kinds), ("item_id", item_ids)):
            if wanted:
                condition += f" AND j.{column} IN :{column}s"
                values[f"{column}s"] = list(wanted)
        return rows.every(
            tx,
            Job,
            f"""SELECT j.* FROM jobs AS j {_OF_ITEM}
                WHERE j.library_id = :library_id AND j.state IN :states AND {condition}
                ORDER BY j.updated_at DESC, j.id LIMIT :limit""",
            states=[*states],
            limit=limit,
            **values,
        )

    @reads_inline
    def get(self, tx: Tx, scope: Scope, job_id: str) -> Job:
        return rows.require(
            tx,
            Job,
            f"""SELECT j.* FROM jobs AS j {_OF_ITEM}
                WHERE {scope_sql.visible(scope)} AND j.library_id = :library_id AND j.id = :id""",
            id=job_id,
            **scope_sql.within(scope),
        )

    @writes
    def prune(self, tx: Tx, before: datetime) -> None:
        """Delete jobs done before then."""
        tx.run("DELETE FROM jobs WHERE state = 'done' AND updated_at < :before", before=before)

    @reads
    def has_activity(self, tx: Tx, since: datetime) -> bool:
        """Return whether a worker has taken or finished a job since then."""
        return any(
            tx.one(
                f"""SELECT 1 FROM jobs WHERE state = '{state}' AND updated_at >= :since LIMIT 1""",
                since=since,
            )
            for state in (JobState.DONE, JobState.RUNNING)
        )

    @reads
    def has_new_jobs(self, tx: Tx, kind: str, since: datetime) -> bool:
        """Return whether jobs of this kind were queued since then that no worker has taken."""
        return (
            tx.one(
                """SELECT 1 FROM jobs WHERE state = 'queued' AND run_after >= :since
                   AND run_after <= :now AND kind = :kind LIMIT 1""",
                since=since,
                now=now(),
                kind=kind,
            )
            is not None
        )

    @reads
    def running_share(self, tx: Tx) -> float:
        """Return the sum of the running jobs' progress, each from 0 to 1."""
        return float(
            tx.scalar("SELECT coalesce(sum(progress), 0) FROM jobs WHERE state = 'running'")
        )

    @reads
    def counts(self, tx: Tx) -> dict[str, int]:
        return dict(tx.tuples("SELECT state, count(*) FROM jobs GROUP BY state"))


def _enqueue(tx: Tx, kind: str, items: Sequence[tuple[Any, ...]]) -> int:
    insert_jobs(tx, [Job(new_id(), library_id, item_id, kind) for library_id, item_id in items])
    return len(items)


def _ready(tx: Tx, kind: str, at: datetime, limit: int, *, lock: bool = False) -> list[str]:
    """Return the ids of jobs to run now.

    A job whose worker was lost comes alone: if it is the cause, it harms no others.
    """
    end = " FOR UPDATE OF j SKIP LOCKED" if lock and tx.engine == "postgres" else ""
    fair, first = (_RUNNING, "coalesce(busy.running, 0), ") if kind in _FAIR else ("", "")

    def find(ready: str, most: int) -> list[str]:
        return tx.column(
            f"""SELECT j.id FROM jobs AS j {fair} WHERE j.kind = :kind AND {ready}
                ORDER BY {first}j.run_after LIMIT :limit{end}""",
            kind=kind,
            limit=most,
            now=at,
            ahead=at + AHEAD,
        )

    for lost in _LOST:
        if found := find(lost, 1):
            return found
    due: list[str] = []
    for ready in _DUE:
        due += find(ready, limit - len(due))
    return due


def _give_up_crashing(tx: Tx, kind: str, at: datetime) -> None:
    for lost in _LOST:
        for job_id in tx.column(
            f"SELECT j.id FROM jobs AS j WHERE j.kind = :kind AND {lost} AND j.attempts >= :most",
            kind=kind,
            most=CRASHES,
            now=at,
            ahead=at + AHEAD,
        ):
            tx.run(
                """UPDATE jobs SET state = 'failed', error = :error, leased_by = NULL,
                   leased_until = NULL, updated_at = :at WHERE id = :id""",
                error=CRASHED,
                at=at,
                id=job_id,
            )
            _fail_item(tx, job_id, CRASHED)


def _fail_item(tx: Tx, job_id: str, error: str) -> None:
    """Show on the job's item that reading or transcribing it has failed for good."""
    for kind, column in _STATUS.items():
        for library_id, item_id in tx.tuples(
            f"""UPDATE items SET {column} = 'failed', status_reason = :error
                WHERE {column} IN ('queued', 'running') AND (library_id, id) IN
                (SELECT library_id, item_id FROM jobs WHERE id = :id AND kind = :kind)
                RETURNING library_id, id""",
            error=error,
            id=job_id,
            kind=kind,
        ):
            log.record(tx, EventType.FAILED, library_id, [item_id], None)
