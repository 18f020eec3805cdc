"""The job queue: rows written with the item they are about, leased, retried.

Running a job twice is harmless.
"""

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any

from commonplace.database import Table, Tx, reads, reads_inline, scope_sql, writes
from commonplace.database.columns import micros
from commonplace.model import INDEX, INGEST, Item, Job, JobState, Json, Scope, new_id, now
from commonplace.store import rows
from commonplace.store.queues import job_leases, job_queues

COUNTED = 1_000  # open jobs; a few more say little, and counting 100,000 slows each search down
_SWEPT = 10_000  # items looked at in one turn
_LOOKED = 8  # libraries, for what is only a hint
_COLUMNS = [field.name for field in fields(Job)]
_THESE = "library_id IN :libraries AND id IN :ids AND leased_by = :worker"
_HELD = "library_id = :library_id AND id = :id AND leased_by = :worker"
_NEXT_LIBRARY = "SELECT id FROM libraries WHERE id > :after ORDER BY id LIMIT 1"
_OF_ITEM = "JOIN items AS i ON i.library_id = j.library_id AND i.id = j.item_id"
_OF_VECTOR = "v.library_id = s.library_id AND v.item_id = s.item_id AND v.section_id = s.id"
_EMBEDS = "j.library_id = s.library_id AND j.item_id = s.item_id AND j.kind = 'embed'"
# Some items of a library in the order of their key, and whether they have sections without vectors.
_LOOK = f"""WITH seen AS (
        SELECT library_id, id FROM items WHERE library_id = :library_id AND id > :item_id
        ORDER BY id LIMIT :most)
    SELECT seen.library_id, seen.id, EXISTS (
        SELECT 1 FROM sections AS s WHERE s.library_id = :library_id AND s.item_id = seen.id
        AND NOT EXISTS (SELECT 1 FROM vectors AS v WHERE {_OF_VECTOR})
        AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE {_EMBEDS} AND j.state <> 'done'))
    FROM seen ORDER BY seen.id"""


def insert_jobs(tx: Tx, jobs: Sequence[Job]) -> None:
    tx.insert(
        "jobs",
        ", ".join(_COLUMNS),
        [tuple(rows.column(getattr(job, name)) for name in _COLUMNS) for job in jobs],
    )
    for job in jobs:
        job_queues.note(tx, job.library_id, job.kind, job.run_after)


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
            found: list[tuple[Any, ...]] = []
            library_id, item_id = after
            for _ in range(most):
                found += tx.tuples(
                    _LOOK, library_id=library_id, item_id=item_id, most=most - len(found)
                )
                library_id, item_id = tx.scalar(_NEXT_LIBRARY, after=library_id), ""
                if len(found) == most or library_id is None:
                    break
            return found

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
        libraries = job_queues.waiting(tx, kind, _LOOKED)
        return len(libraries) == _LOOKED or any(
            tx.one(
                """SELECT 1 FROM jobs WHERE library_id = :library_id AND kind = :kind
                   AND state IN ('queued', 'running') LIMIT 1""",
                library_id=library_id,
                kind=kind,
            )
            for library_id in libraries
        )

    async def lease(self, worker: str, kind: str, *, limit: int, seconds: int) -> list[Job]:
        """Lease jobs of the kind that nobody holds, for `seconds`. Libraries take turns.

        A job whose worker was lost comes alone: if it is the cause, it harms no others.
        """
        # Looked for without a write lock: idle workers must not block writers.
        libraries = await self._db.read(job_queues.due, kind, now())
        return await self._lease(worker, kind, libraries, limit, seconds) if libraries else []

    @writes
    def _lease(
        self, tx: Tx, worker: str, kind: str, libraries: Sequence[str], limit: int, seconds: int
    ) -> list[Job]:
        at, taken = now(), list[Job]()
        for library_id in job_queues.lock_due(tx, libraries, kind, at):
            own, lost = job_leases.take(
                tx, library_id, kind, worker, limit - len(taken), at, seconds, not taken
            )
            taken += own
            if lost or len(taken) >= limit:
                break
        return taken

    @writes
    def extend(self, tx: Tx, worker: str, jobs: Sequence[Job], seconds: int) -> None:
        tx.run(
            f"UPDATE jobs SET leased_until = :until WHERE {_THESE} AND state = 'running'",
            until=now() + timedelta(seconds=seconds),
            worker=worker,
            **_keys(jobs),
        )

    @writes
    def finish(self, tx: Tx, worker: str, jobs: Sequence[Job]) -> None:
        tx.run(
            f"""UPDATE jobs SET state = 'done', progress = 1, error = NULL, leased_by = NULL,
                leased_until = NULL, updated_at = :at WHERE {_THESE}""",
            at=now(),
            worker=worker,
            **_keys(jobs),
        )
        for job in jobs:
            if job.kind == INDEX:  # the next one of the library waits for it
                job_queues.note(tx, job.library_id, INDEX, now())

    @writes
    def fail(
        self,
        tx: Tx,
        worker: str,
        job: Job,
        error: str,
        retry_at: datetime | None,
        *,
        counted: bool = True,
    ) -> None:
        """Queue the job again at `retry_at`, or fail it for good.

        `counted`: it counts as one of the attempts that a job has.
        """
        held = tx.run(
            f"""UPDATE jobs SET state = :state, error = :error, attempts = attempts - :uncounted,
                leased_by = NULL, run_after = coalesce(:run_after, run_after),
                leased_until = NULL, updated_at = :at WHERE {_HELD}""",
            state=JobState.QUEUED if retry_at else JobState.FAILED,
            error=error,
            run_after=retry_at,
            at=now(),
            library_id=job.library_id,
            id=job.id,
            worker=worker,
            uncounted=0 if counted else 1,
        )
        if held and not retry_at:
            job_leases.fail_item(tx, job.library_id, job.item_id, job.kind, error)
        elif held and retry_at:
            job_queues.note(tx, job.library_id, job.kind, retry_at)
            if job.kind == INGEST:  # an unread item says why it still waits
                tx.run(
                    """UPDATE items SET status_reason = :error WHERE library_id = :library_id
                       AND id = :item_id AND ingest_status = 'queued'""",
                    error=error,
                    library_id=job.library_id,
                    item_id=job.item_id,
                )

    @writes
    def set_payload(self, tx: Tx, worker: str, job: Job, payload: Json) -> None:
        """Store what the next attempt needs to know."""
        tx.run(
            f"UPDATE jobs SET payload = :payload WHERE {_HELD}",
            payload=rows.column(payload),
            library_id=job.library_id,
            id=job.id,
            worker=worker,
        )

    @writes
    def set_progress(self, tx: Tx, worker: str, job: Job, share: float) -> None:
        tx.run(
            f"UPDATE jobs SET progress = :share WHERE {_HELD}",
            share=share,
            library_id=job.library_id,
            id=job.id,
            worker=worker,
        )

    @reads
    def of_library(self, tx: Tx, library_id: str, kind: str, limit: int) -> list[Job]:
        """Return the latest jobs of a kind that are of no item."""
        return rows.every(
            tx,
            Job,
            """SELECT * FROM jobs WHERE library_id = :library_id AND kind = :kind
               AND item_id IS NULL ORDER BY created_at DESC, id DESC LIMIT :limit""",
            library_id=library_id,
            kind=kind,
            limit=limit,
        )

    @writes
    def postpone(self, tx: Tx, worker: str, job: Job, until: datetime) -> None:
        """Queue the job again without counting the attempt."""
        if tx.run(
            f"""UPDATE jobs SET state = 'queued', attempts = attempts - 1, run_after = :until,
                leased_by = NULL, leased_until = NULL, updated_at = :at WHERE {_HELD}""",
            until=until,
            at=now(),
            library_id=job.library_id,
            id=job.id,
            worker=worker,
        ):
            job_queues.note(tx, job.library_id, job.kind, until)

    @writes
    def retry(self, tx: Tx, scope: Scope, item_id: str) -> list[Job]:
        """Queue the item's failed jobs again."""
        key = {"library_id": scope.library_id, "item_id": item_id}
        failed = rows.every(
            tx,
            Job,
            """UPDATE jobs SET state = 'queued', attempts = 0, error = NULL, progress = 0,
               created_at = :at, run_after = :at, updated_at = :at
               WHERE library_id = :library_id AND item_id = :item_id AND state = 'failed'
               RETURNING *""",
            at=now(),
            **key,
        )
        if not failed:
            return []
        for job in failed:
            job_queues.note(tx, job.library_id, job.kind, job.run_after)
        for column in job_leases.STATUS.values():
            tx.run(
                f"""UPDATE items SET {column} = 'queued', status_reason = NULL
                    WHERE library_id = :library_id AND id = :item_id AND {column} = 'failed'""",
                **key,
            )
        return failed

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
    def has_activity(self, tx: Tx, library_id: str, since: datetime) -> bool:
        """Return whether a worker has taken or finished a job of the library since then."""
        return any(
            at >= micros(since)
            for (at,) in tx.tuples(
                """SELECT updated_at FROM (
                       SELECT state, updated_at FROM jobs WHERE library_id = :library_id
                       ORDER BY id DESC LIMIT :most) AS j
                   WHERE j.state IN ('running', 'done')""",
                library_id=library_id,
                most=COUNTED,
            )
        )

    @reads
    def has_new_jobs(self, tx: Tx, kind: str, since: datetime) -> bool:
        """Return whether jobs of this kind were queued since then that no worker has taken."""
        return any(
            tx.one(
                """SELECT 1 FROM jobs WHERE library_id = :library_id AND kind = :kind
                   AND state = 'queued' AND run_after >= :since AND run_after <= :now LIMIT 1""",
                library_id=library_id,
                since=since,
                now=now(),
                kind=kind,
            )
            for library_id in job_queues.waiting(tx, kind, _LOOKED)
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


def _keys(jobs: Sequence[Job]) -> dict[str, list[str]]:
    return {"libraries": sorted({job.library_id for job in jobs}), "ids": [job.id for job in jobs]}
