"""The change log: which items' sections have changed, so that indexes in memory can catch up.

A reader continues from a mark: the number of the next change. SQLite has one writer, so a lower
number is never committed after a higher one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from commonplace.database import Tx

KEPT = 50_000
_PRUNED_EVERY = 1_000

_UNSEEN = """SELECT h.horizon, h.forgotten, c.seq, c.item_id
             FROM (SELECT coalesce((SELECT max(seq) FROM changes), 0) + 1 AS horizon,
             (SELECT mark FROM forgotten WHERE library_id = :library_id) AS forgotten) AS h
             LEFT JOIN changes AS c ON c.seq >= coalesce(:mark, h.horizon)
             AND c.library_id = :library_id"""
_PRUNE = (
    """INSERT INTO forgotten (library_id, mark)
       SELECT library_id, max(seq) FROM changes WHERE seq < :seq GROUP BY library_id
       ON CONFLICT (library_id) DO UPDATE SET mark = excluded.mark""",
    "DELETE FROM changes WHERE seq < :seq",
)


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    horizon: int  # where to continue
    items: list[str]  # each once
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
        for statement in _PRUNE:
            tx.run(statement, seq=seq - KEPT)


def drop_library(tx: Tx, library_id: str) -> None:
    """Delete what names a library. The numbers go on: no reader may be ahead of the last."""
    note(tx, [("", "")])
    for table in ("changes", "forgotten"):
        tx.run(f"DELETE FROM {table} WHERE library_id = :library_id", library_id=library_id)


def since(tx: Tx, library_id: str, mark: int | None) -> ChangeBatch:
    """Return the changes from the mark on; with None, only where to continue."""
    found = tx.all(_UNSEEN, library_id=library_id, mark=mark)
    horizon, forgotten = found[0]["horizon"], found[0]["forgotten"]
    return ChangeBatch(
        max(horizon, mark or 0),
        list(dict.fromkeys(row["item_id"] for row in found if row["seq"] is not None)),
        complete=mark is not None and (forgotten is None or mark > forgotten),
        behind=mark is not None and horizon < mark,
    )
