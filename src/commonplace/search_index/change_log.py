"""The change log: which items' sections have changed, so that indexes in memory can catch up.

A reader continues from a mark. On SQLite, writes follow each other, and the mark is their number.
On Postgres, a lower number may be committed after a higher one: the mark is a transaction, and
all from the oldest one that may still be running are read again. Transaction numbers belong to a
server: after a move to another one, those of the future are ignored.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from commonplace.database import Tx

KEPT = 50_000
_PRUNED_EVERY = 1_000

_UNSEEN = {
    "sqlite": """SELECT h.horizon, h.forgotten, c.seq, c.seq AS mark, c.item_id
                 FROM (SELECT coalesce((SELECT max(seq) FROM changes), 0) + 1 AS horizon,
                 (SELECT mark FROM forgotten WHERE library_id = :library_id) AS forgotten) AS h
                 LEFT JOIN changes AS c ON c.seq >= coalesce(:mark, h.horizon)
                 AND c.library_id = :library_id""",
    "postgres": """SELECT h.horizon, h.forgotten, c.seq, c.xid AS mark, c.item_id
                   FROM (SELECT s.horizon, s.future, (SELECT mark FROM forgotten
                   WHERE library_id = :library_id AND mark < s.future) AS forgotten FROM
                   (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS horizon,
                   pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS future) AS s) AS h
                   LEFT JOIN changes AS c ON c.library_id = :library_id
                   AND c.xid >= coalesce(:mark, h.horizon) AND c.xid < h.future""",
}
_FORGOTTEN = """INSERT INTO forgotten (library_id, mark)
                SELECT library_id, max({mark}) FROM {gone} GROUP BY library_id
                ON CONFLICT (library_id) DO UPDATE SET mark = excluded.mark"""
_PRUNE = {
    "sqlite": [
        _FORGOTTEN.format(mark="seq", gone="changes WHERE seq < :seq"),
        "DELETE FROM changes WHERE seq < :seq",
    ],
    # Never rows that will be read again, or a gap could go unseen.
    "postgres": [
        """WITH gone AS (
               DELETE FROM changes WHERE xid < least(
                   pg_snapshot_xmin(pg_current_snapshot())::text::bigint,
                   (SELECT xid FROM changes WHERE seq >= :seq ORDER BY seq LIMIT 1))
               RETURNING library_id, xid) """
        + _FORGOTTEN.format(mark="xid", gone="gone")
    ],
}


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    horizon: int  # where to continue
    items: dict[int, str]  # by the change's number
    again: frozenset[int]  # those that the next read will return again
    complete: bool  # False: changes after the mark were pruned
    behind: bool  # the transaction is older than the mark, and may not see all before it


def note(tx: Tx, items: Sequence[tuple[str, str]]) -> None:
    """Record (library id, item id) pairs."""
    *others, (library_id, item_id) = items
    tx.insert("changes", "library_id, item_id", others)
    seq = tx.all(
        "INSERT INTO changes (library_id, item_id) VALUES (:library_id, :item_id) RETURNING seq",
        library_id=library_id,
        item_id=item_id,
    )[0]["seq"]
    if seq % _PRUNED_EVERY < len(items):
        for statement in _PRUNE[tx.engine]:
            tx.run(statement, seq=seq - KEPT)


def since(tx: Tx, library_id: str, mark: int | None) -> ChangeBatch:
    """Return the changes from the mark on; with None, only where to continue."""
    found = tx.all(_UNSEEN[tx.engine], library_id=library_id, mark=mark)
    horizon, forgotten = max(found[0]["horizon"], mark or 0), found[0]["forgotten"]
    seen = [row for row in found if row["seq"] is not None]
    return ChangeBatch(
        horizon,
        {row["seq"]: row["item_id"] for row in seen},
        frozenset(row["seq"] for row in seen if row["mark"] >= horizon),
        complete=mark is not None and (forgotten is None or mark > forgotten),
        behind=mark is not None and found[0]["horizon"] < mark,
    )
