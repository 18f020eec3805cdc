"""Sections with their vectors as rows of JSON values, for backups and the trash."""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from commonplace.database import Tx
from commonplace.search_index.index import SectionIndex
from commonplace.store import rows

_COLUMNS = ("position", "heading", "text", "extra", "word_count", "key_points", "locator")


def section_rows(
    tx: Tx, index: SectionIndex, library_id: str, item_ids: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Yield the sections of items, without their index."""
    vectors = index.vectors(tx, library_id, item_ids)
    for row in tx.all(
        f"SELECT id, item_id, {', '.join(_COLUMNS)} FROM sections"
        " WHERE library_id = :library_id AND item_id IN :ids ORDER BY item_id, position",
        library_id=library_id,
        ids=list(item_ids),
    ):
        stamp, vector = vectors.get(row["id"], (None, b""))
        yield {
            "library_id": library_id,
            "item_id": row["item_id"],
            **{name: row[name] for name in _COLUMNS},
            "stamp": stamp,
            "vector": b64encode(vector).decode(),
        }


def put_section_rows(tx: Tx, index: SectionIndex, found: Iterable[dict[str, Any]]) -> int:
    """Insert sections of items that exist, and index them; return how many."""
    count = 0
    for (library_id, item_id, stamp), group in groupby(
        found, key=lambda s: (s["library_id"], s["item_id"], s["stamp"])
    ):
        item = tx.one(
            f"{rows.SELECT_ITEM} WHERE i.library_id = :library_id AND i.id = :id",
            library_id=library_id,
            id=item_id,
        )
        sections = [rows.section(row, b64decode(row["vector"]) or None) for row in group]
        index.insert(tx, [(rows.item(item), sections)], stamp or "")
        count += len(sections)
    return count


def count_trashed(tx: Tx, library_id: str, item_ids: Sequence[str]) -> int:
    """Count the sections of items in the trash."""
    return int(
        tx.scalar(
            """SELECT count(*) FROM trash_rows WHERE library_id = :library_id
               AND item_id IN :ids AND source = 'sections'""",
            library_id=library_id,
            ids=list(item_ids),
        )
    )
