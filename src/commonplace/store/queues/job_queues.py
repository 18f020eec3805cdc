"""Which libraries have work, and when a worker should look at each next.

A row for each library and kind of work. It is never later than the first job is due, or than a lost
worker's lease ends; so workers look at these rows, and at the jobs of one library at a time. On
Postgres the rows are in shards by a hash of the library, which may be on different servers: each
statement names the shards that it wants.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from zlib import crc32

from commonplace.database import Tx
from commonplace.database.columns import micros
from commonplace.model import now

FEED = "feed"  # kinds that are not of jobs: a feed is due
CRAWL = "crawl"  # a crawl is due
NOTIFY = "notify"  # webhooks are behind

AHEAD = timedelta(hours=2)  # no lease or pause is longer
_SHARDS = 16
_AT_ONCE = 32  # libraries that one lease looks at
_DUE = "(next_at <= :now OR next_at > :ahead)"  # ahead: from before the clock was set back
_ROW = "shard = :shard AND kind = :kind AND library_id = :library_id"


def note(tx: Tx, library_id: str, kind: str, at: datetime) -> None:
    """Have workers look at a library's work of this kind from then on."""
    tx.defer(put, (library_id, kind, micros(at)))


def put(tx: Tx, noted: Sequence[tuple[str, str, int]]) -> None:
    first: dict[tuple[str, str], int] = {}
    for library_id, kind, at in noted:
        first[library_id, kind] = min(at, first.get((library_id, kind), at))
    tx.many(
        """INSERT INTO job_queues (shard, kind, library_id, next_at)
           VALUES (:shard, :kind, :library_id, :at)
           ON CONFLICT (shard, kind, library_id) DO UPDATE SET next_at = excluded.next_at
           WHERE job_queues.next_at > excluded.next_at""",
        [
            _key(tx, library_id, kind) | {"at": at}
            for (library_id, kind), at in sorted(first.items())
        ],
    )


def due(tx: Tx, kind: str, at: datetime) -> list[str]:
    """Return libraries whose work of this kind is due, the longest waiting first."""
    return tx.column(
        f"""SELECT library_id FROM job_queues WHERE shard IN :shards AND kind = :kind AND {_DUE}
            ORDER BY next_at LIMIT :most""",
        shards=_shards(tx),
        kind=kind,
        now=at,
        ahead=at + AHEAD,
        most=_AT_ONCE,
    )


def waiting(tx: Tx, kind: str, most: int) -> list[str]:
    """Return libraries that have work of this kind, or had it lately."""
    return tx.column(
        """SELECT library_id FROM job_queues WHERE shard IN :shards AND kind = :kind
           ORDER BY next_at LIMIT :most""",
        shards=_shards(tx),
        kind=kind,
        most=most,
    )


def lock_due(tx: Tx, libraries: Sequence[str], kind: str, at: datetime) -> Iterator[str]:
    """Yield those of the libraries that are due still, each locked: no other worker takes it.

    If others have locked all, the first comes when it is free; there may be more to do.
    """
    free = "" if tx.engine == "sqlite" else " FOR UPDATE SKIP LOCKED"
    found = False
    for library_id in libraries:
        key = _key(tx, library_id, kind)
        row = f"SELECT 1 FROM job_queues WHERE {_ROW} AND {_DUE}{free}"
        if tx.one(row, now=at, ahead=at + AHEAD, **key):
            found = True
            yield library_id
    if free and not found:
        key = _key(tx, libraries[0], kind)
        if tx.one(f"SELECT 1 FROM job_queues WHERE {_ROW} FOR UPDATE", **key):
            yield libraries[0]


def reschedule(
    tx: Tx, library_id: str, kind: str, at: datetime, times: Sequence[int | None]
) -> None:
    """Look again at the first of the times, or no more: nothing is left."""
    key = _key(tx, library_id, kind)
    soonest, ahead = micros(at), micros(at + AHEAD)
    left = [soonest if time > ahead else max(time, soonest) for time in times if time is not None]
    if left:
        tx.run(f"UPDATE job_queues SET next_at = :next WHERE {_ROW}", next=min(left), **key)
    else:
        tx.run(f"DELETE FROM job_queues WHERE {_ROW}", **key)


def rebuild(tx: Tx) -> None:
    """Look at everything soon, after a restore."""
    tx.run("DELETE FROM job_queues")
    for kinds in (
        "SELECT DISTINCT library_id, kind FROM jobs WHERE state IN ('queued', 'running')",
        f"SELECT DISTINCT library_id, '{FEED}' FROM feeds",
        f"""SELECT DISTINCT library_id, '{CRAWL}' FROM crawls
            WHERE state IN ('queued', 'running')""",
        f"SELECT DISTINCT library_id, '{NOTIFY}' FROM webhooks",
    ):
        for library_id, kind in tx.tuples(kinds):
            note(tx, library_id, kind, now())


def _key(tx: Tx, library_id: str, kind: str) -> dict[str, str | int]:
    shard = crc32(library_id.encode()) % len(_shards(tx))
    return {"shard": shard, "kind": kind, "library_id": library_id}


def _shards(tx: Tx) -> list[int]:
    return [0] if tx.engine == "sqlite" else list(range(_SHARDS))
