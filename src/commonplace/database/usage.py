"""What each library holds, its trash included: counts that are kept with every write.

The row of a library stays locked until the commit, so that not even writers on several servers
exceed a quota together.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from itertools import groupby
from operator import attrgetter

from commonplace.database.transaction import Tx
from commonplace.errors import LibraryFull
from commonplace.model.people import MEGABYTE, Usage


@dataclass(frozen=True, slots=True)
class _Change:
    library_id: str
    items: int
    sections: int
    size: int
    accepted: bool


def record(
    tx: Tx,
    library_id: str,
    *,
    items: int = 0,
    sections: int = 0,
    size: int = 0,
    accepted: bool = False,
) -> None:
    """Count what was written (or deleted: below 0). The transaction fails with LibraryFull if the
    library then exceeds a quota and holds more than before, unless it was `accepted` earlier."""
    if items or sections or size:
        tx.defer(_settle, _Change(library_id, items, sections, size, accepted))


def recount(tx: Tx) -> None:
    """Count all libraries anew, before the commit. No quota refuses what is there."""
    tx.defer(_settle, None)


def _settle(tx: Tx, changes: Sequence[_Change | None]) -> None:
    known = [change for change in changes if change]
    if len(known) < len(changes):
        tx.run("DELETE FROM usage")
        tx.run(_RECOUNT)
        return
    library = attrgetter("library_id")
    for library_id, group in groupby(sorted(known, key=library), library):
        _settle_library(tx, library_id, list(group))


def _settle_library(tx: Tx, library_id: str, changes: Sequence[_Change]) -> None:
    added = _sum(changes)
    if not any(astuple(added)):
        return
    [after] = tx.all(
        """INSERT INTO usage (library_id, items, sections, size)
           VALUES (:library_id, :items, :sections, :size)
           ON CONFLICT (library_id) DO UPDATE SET items = usage.items + excluded.items,
               sections = usage.sections + excluded.sections, size = usage.size + excluded.size
           RETURNING items, sections, size""",
        library_id=library_id,
        items=added.items,
        sections=added.sections,
        size=added.size,
    )
    asked = _sum([change for change in changes if not change.accepted])
    for name, unit in (("items", 1), ("sections", 1), ("size", MEGABYTE)):
        cap, now, more = getattr(tx.quota, name), after[name], getattr(asked, name)
        if cap and more > 0 and now > cap:
            raise LibraryFull(
                "megabytes" if unit > 1 else name,
                cap // unit,
                round((now - getattr(added, name)) / unit, 3 if unit > 1 else None),
            )


def _sum(changes: Sequence[_Change]) -> Usage:
    return Usage(
        sum(change.items for change in changes),
        sum(change.sections for change in changes),
        sum(change.size for change in changes),
    )


_RECOUNT = """
    INSERT INTO usage (library_id, items, sections, size)
    SELECT l.id,
           (SELECT count(*) FROM items WHERE library_id = l.id)
           + (SELECT count(*) FROM trash WHERE library_id = l.id),
           (SELECT count(*) FROM sections WHERE library_id = l.id)
           + (SELECT count(*) FROM trash_rows WHERE library_id = l.id AND source = 'sections'),
           (SELECT coalesce(sum(octet_length(text)), 0) FROM contents WHERE library_id = l.id)
           + (SELECT coalesce(sum(size), 0) FROM uploads
              WHERE library_id = l.id AND has_file = 1)
           + (SELECT coalesce(sum(size), 0) FROM source_files WHERE library_id = l.id)
    FROM libraries AS l"""
