"""What each library holds, its trash included: counts that are kept with every write.

The row of a library stays locked until the commit, so that not even writers on several servers
exceed a quota together.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, TypeVar

from commonplace.database.routing import Route
from commonplace.database.transaction import Tx
from commonplace.errors import LibraryFull
from commonplace.model.ids import now
from commonplace.model.people import MEGABYTE, Usage

T = TypeVar("T")


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


def counted(work: Callable[..., T], route: Route | None) -> Callable[..., T]:
    """Return `work`, which then also counts as a write to the library of the route."""
    if route is None:
        return work

    def run(tx: Tx, /, *args: Any, **kwargs: Any) -> T:
        result = work(tx, *args, **kwargs)
        tx.defer(_settle, _Change(route.library_id, 0, 0, 0, False))
        return result

    return run


def writes(tx: Tx, library_id: str) -> int | None:
    """Return a number that grows with the library's writes and events: a worker's writes have
    events only. None: there is no such library."""
    found: int | None = tx.scalar(
        """SELECT u.writes + coalesce(
               (SELECT c.last FROM event_counters AS c WHERE c.library_id = u.library_id), 0)
           FROM usage AS u WHERE u.library_id = :id""",
        id=library_id,
    )
    return found


def recount(tx: Tx) -> None:
    """Count all libraries anew, before the commit. No quota refuses what is there. Writes count on
    from a number that no replica has."""
    tx.defer(_settle, None)


def _settle(tx: Tx, changes: Sequence[_Change | None]) -> None:
    known = [change for change in changes if change]
    if len(known) < len(changes):
        tx.run("DELETE FROM usage")
        tx.run(_RECOUNT, at=now())
        return
    library = attrgetter("library_id")
    for library_id, group in groupby(sorted(known, key=library), library):
        _settle_library(tx, library_id, list(group))


def _settle_library(tx: Tx, library_id: str, changes: Sequence[_Change]) -> None:
    added = _sum(changes)
    after = tx.one(
        """UPDATE usage SET items = items + :items, sections = sections + :sections,
               size = size + :size, writes = writes + 1
           WHERE library_id = :library_id RETURNING items, sections, size""",
        library_id=library_id,
        items=added.items,
        sections=added.sections,
        size=added.size,
    )
    if after is None:
        return  # the library was deleted
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
    INSERT INTO usage (writes, library_id, items, sections, size)
    SELECT :at, l.id,
           (SELECT count(*) FROM items WHERE library_id = l.id)
           + (SELECT count(*) FROM trash WHERE library_id = l.id),
           (SELECT count(*) FROM sections WHERE library_id = l.id)
           + (SELECT count(*) FROM trash_rows WHERE library_id = l.id AND source = 'sections'),
           (SELECT coalesce(sum(octet_length(text)), 0) FROM contents WHERE library_id = l.id)
           + (SELECT coalesce(sum(size), 0) FROM uploads
              WHERE library_id = l.id AND has_file = 1)
           + (SELECT coalesce(sum(size), 0) FROM source_files WHERE library_id = l.id)
    FROM libraries AS l"""
