"""The rows that an item has, and as which the trash keeps it."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from commonplace.database import Tx
from commonplace.model import JobState, Json

# Tables with rows of an item, and the columns that name items, in an order in which the rows can be
# written again. The view of a published disk is not among them: restoring does not publish.
TABLES: dict[str, tuple[str, ...]] = {
    "items": ("id",),
    "folder_items": ("item_id",),
    "versions": ("item_id",),
    "aliases": ("item_id",),
    "jobs": ("item_id",),
    "captures": ("item_id",),
    "candidates": ("source_id", "item_id"),
    "idempotency_keys": ("item_id",),
    "relations": ("from_id", "to_id"),
}


class Row(NamedTuple):
    """A row of an item in the trash; `other_id` is another item that it is about."""

    item_id: str
    source: str
    stored: Json
    other_id: str | None = None


def tables_with(tx: Tx, library_id: str, item_ids: Sequence[str]) -> list[str]:
    """Return the other tables that have rows of items: mostly none."""
    return tx.column(
        " UNION ALL ".join(
            f"""SELECT '{table}' AS source WHERE EXISTS (SELECT 1 FROM {table}
                WHERE library_id = :library_id AND ({_names_one(columns)}))"""
            for table, columns in TABLES.items()
            if table not in ("items", "folder_items")
        ),
        library_id=library_id,
        ids=list(item_ids),
    )


def rows_of(
    tx: Tx, library_id: str, item_ids: Sequence[str], tables: Sequence[str]
) -> Iterator[Row]:
    for table in tables:
        columns = TABLES[table]
        for row in tx.all(
            f"SELECT * FROM {table} WHERE library_id = :library_id AND ({_names_one(columns)})",
            library_id=library_id,
            ids=list(item_ids),
        ):
            named = [row[column] for column in columns if row[column] is not None]
            owner = next(item_id for item_id in named if item_id in item_ids)
            others = [item_id for item_id in named if item_id != owner]
            if stored := _stored(table, dict(row)):
                yield Row(owner, table, stored, others[0] if others else None)


def _names_one(columns: Sequence[str]) -> str:
    return " OR ".join(f"{column} IN :ids" for column in columns)


def _stored(table: str, row: Json) -> Json | None:
    """Return a row as it is to be restored, if it is."""
    if table == "jobs":
        if row["state"] == JobState.DONE:
            return None
        if row["state"] == JobState.RUNNING:
            row |= {"state": JobState.QUEUED.value, "leased_by": None, "leased_until": None}
    elif table == "items" and row["visibility"] == "published":
        row["visibility"] = "private"
    return row


def keep(tx: Tx, library_id: str, kept: Iterable[Row]) -> None:
    values = [
        (
            library_id,
            row.item_id,
            row.other_id,
            row.stored["content_id"] if row.source in ("items", "versions") else None,
            row.source,
            json.dumps(row.stored, ensure_ascii=False),
        )
        for row in kept
    ]
    if values:
        tx.insert("trash_rows", "library_id, item_id, other_id, content_id, source, stored", values)
