"""What relations say of the items at their ends, kept true in the transaction that changes either.

A task is part of one epic at most, and a task or an epic belongs to one project: a new one takes the place of the old. And what
was replaced says so for as long as something that holds itself replaces it, directly or not.
"""

from collections.abc import Collection
from typing import Any

from commonplace.database.transaction import Tx
from commonplace.model import STALE, SUPERSEDED, WRONG, Kind, Relation, now
from commonplace.store import rows

_NOT_HOLDING = (WRONG, STALE)


def lock_library(tx: Tx, library_id: str) -> None:
    """SQLite has one writer at a time; on Postgres those who look at a chain before they write wait for each other."""
    if tx.engine == "postgres":
        tx.one(
            "SELECT id FROM libraries WHERE id = :library_id FOR NO KEY UPDATE",
            library_id=library_id,
        )


def replace_single_relation(tx: Tx, r: Relation) -> None:
    """Scopes do not matter here: also one that the caller does not see gives way, or there would be two."""
    if r.kind not in (Kind.BELONGS_TO, Kind.PART_OF):
        return
    lock = " FOR NO KEY UPDATE" if tx.engine == "postgres" else ""
    item = tx.one(
        f"SELECT entity_type FROM items WHERE library_id = :library_id AND id = :id{lock}",
        library_id=r.library_id,
        id=r.from_id,
    )
    if item is not None and item["entity_type"] in ("task", "epic"):
        tx.run(
            """DELETE FROM relations
               WHERE library_id = :library_id AND from_id = :from_id AND kind = :kind
               AND to_id <> :to_id""",
            library_id=r.library_id,
            from_id=r.from_id,
            kind=r.kind,
            to_id=r.to_id,
        )


def superseded_by(tx: Tx, library_id: str, item_id: str) -> list[str]:
    return [
        row["to_id"]
        for row in tx.all(
            """SELECT to_id FROM relations
               WHERE library_id = :library_id AND from_id = :item_id AND kind = 'SUPERSEDES'""",
            library_id=library_id,
            item_id=item_id,
        )
    ]


def relink_around(tx: Tx, library_id: str, item_id: str) -> list[str]:
    """Before an item goes: what replaced it replaces what it had replaced. Those that it had."""
    replaced = superseded_by(tx, library_id, item_id)
    if replaced:
        tx.run(
            """INSERT INTO relations (library_id, from_id, kind, to_id, weight, explicit,
               created_at) SELECT n.library_id, n.from_id, n.kind, o.to_id, n.weight,
               n.explicit, n.created_at
               FROM relations AS n
               JOIN relations AS o ON o.library_id = n.library_id AND o.from_id = n.to_id
               AND o.kind = n.kind
               WHERE n.library_id = :library_id AND n.to_id = :item_id
               AND n.kind = 'SUPERSEDES' AND n.from_id <> o.to_id
               ON CONFLICT DO NOTHING""",
            library_id=library_id,
            item_id=item_id,
        )
    return replaced


def update_superseded(tx: Tx, library_id: str, item_ids: Collection[str]) -> None:
    """These, and what they replaced in turn, are superseded as long as something above them holds; then they count again.
    What is wrong stays wrong, and tasks and epics have states of their own."""
    if not item_ids:
        return
    lock_library(tx, library_id)
    found = tx.all(
        """
        WITH RECURSIVE below (id) AS (
            SELECT i.id FROM items AS i WHERE i.library_id = :library_id AND i.id IN :ids
            UNION SELECT r.to_id FROM below JOIN relations AS r
                  ON r.library_id = :library_id AND r.from_id = below.id AND r.kind = 'SUPERSEDES'),
        above (id, newer) AS (
            SELECT below.id, r.from_id FROM below JOIN relations AS r
                   ON r.library_id = :library_id AND r.to_id = below.id AND r.kind = 'SUPERSEDES'
            UNION SELECT above.id, r.from_id FROM above JOIN relations AS r
                  ON r.library_id = :library_id AND r.to_id = above.newer AND r.kind = 'SUPERSEDES')
        SELECT i.*, CASE WHEN EXISTS (SELECT 1 FROM above JOIN items AS n ON n.library_id = :library_id AND n.id = above.newer
                                      WHERE above.id = i.id AND NOT n.status IN :not_holding) THEN 1 ELSE 0 END AS replaced
        FROM below JOIN items AS i ON i.library_id = :library_id AND i.id = below.id
        WHERE NOT i.entity_type IN ('task', 'epic')""",
        library_id=library_id,
        ids=sorted(item_ids),
        not_holding=list(_NOT_HOLDING),
    )
    for row in found:
        if row["replaced"] and row["status"] not in (SUPERSEDED, WRONG):
            _change(tx, row, {"status": SUPERSEDED})
        elif not row["replaced"] and row["status"] == SUPERSEDED:
            _change(tx, row, _freed(rows.item(row).metadata))


def _freed(metadata: dict[str, Any]) -> dict[str, Any]:
    """Back to what it was: stale, if somebody said so before it was replaced."""
    told = metadata.get("correction")
    if isinstance(told, dict) and told.get("status") == STALE:
        return {"status": STALE}
    return {
        "status": "",
        "metadata": {name: value for name, value in metadata.items() if name != "correction"},
    }


def _change(tx: Tx, row: Any, changes: dict[str, Any]) -> None:
    changes = changes | {"updated_at": now()}
    tx.run(
        f"""UPDATE items SET {", ".join(f"{c} = :{c}" for c in changes)},
            revision = revision + 1
            WHERE library_id = :library_id AND id = :id""",
        library_id=row["library_id"],
        id=row["id"],
        **{c: rows.column_value(c, value) for c, value in changes.items()},
    )
