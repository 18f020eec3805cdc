"""The event log: rows written in the transaction of the change, numbered in the order of commits.

The number is taken last, from a row that stays locked until the commit. So whoever has read up to
a number has missed nothing, on Postgres too, and a rollback leaves no gap.
"""

import secrets
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import attrgetter

from commonplace.database import Table, Tx, reads, scope_sql, writes
from commonplace.database.columns import micros
from commonplace.model import EventPage, EventType, Item, LibraryEvent, Scope, now
from commonplace.store import item_folders, rows
from commonplace.store.queues import job_queues

LEFT = "item.left"  # an item left some scopes, whose callers see it as deleted
MOVED = "item.moved"  # shown as changed to those who see all folders
_COLUMNS = "library_id, seq, type, at, item_id, actor, folders, in_kb"
_SHOWN = {LEFT: EventType.DELETED, MOVED: EventType.CHANGED}
_WORK = ("task", "epic")
_READY = "ready"


@dataclass(frozen=True, slots=True)
class _Entry:
    library_id: str
    type: str
    item_id: str
    actor: str | None
    folders: tuple[str, ...] | None = None
    in_kb: bool | None = None


def record(tx: Tx, kind: str, library_id: str, item_ids: Iterable[str], actor: str | None) -> None:
    for item_id in item_ids:
        tx.defer(_write, _Entry(library_id, kind, item_id, actor))


def record_added(tx: Tx, items: Iterable[Item], actor: str | None) -> None:
    for item in items:
        record(tx, EventType.ADDED, item.library_id, [item.id], actor)
        if item.state == _READY:
            record(tx, EventType.READY, item.library_id, [item.id], actor)


def record_updated(tx: Tx, before: Item, after: Item, actor: str | None) -> None:
    """Record what a change of fields means."""
    if before.state != _READY and after.state == _READY:
        kind = EventType.READY
    else:
        kind = EventType.TASK if after.entity_type in _WORK else EventType.CHANGED
    record(tx, kind, after.library_id, [after.id], actor)
    if before.in_kb and not after.in_kb:
        _record_gone(tx, LEFT, after.library_id, [after.id], actor, in_kb=True)


def record_deleted(
    tx: Tx,
    library_id: str,
    items: Iterable[tuple[str, bool, Iterable[str]]],
    actor: str | None,
) -> None:
    """Record that items are deleted: of each its id, whether it was in the knowledge base, and its
    folders."""
    for item_id, in_kb, folders in items:
        held = tuple(sorted(folders))
        tx.defer(_write, _Entry(library_id, EventType.DELETED, item_id, actor, held, in_kb))


def record_unfiled(
    tx: Tx,
    library_id: str,
    item_id: str,
    folder_ids: Iterable[str],
    actor: str | None,
    *,
    kind: str = EventType.CHANGED,
) -> None:
    _record_gone(tx, LEFT, library_id, [item_id], actor, folders=tuple(sorted(folder_ids)))
    record(tx, kind, library_id, [item_id], actor)


def _record_gone(
    tx: Tx,
    kind: str,
    library_id: str,
    item_ids: Collection[str],
    actor: str | None,
    *,
    folders: tuple[str, ...] | None = None,
    in_kb: bool | None = None,
) -> None:
    key = {"library_id": library_id, "ids": list(item_ids)}
    found = dict(
        tx.tuples(
            "SELECT id, in_kb FROM items WHERE library_id = :library_id AND id IN :ids", **key
        )
    )
    held = item_folders.folders_of(tx, Scope(library_id), key["ids"]) if folders is None else {}
    for item_id, present in found.items():
        entry = _Entry(
            library_id,
            kind,
            item_id,
            actor,
            held.get(item_id, ()) if folders is None else folders,
            bool(present) if in_kb is None else in_kb,
        )
        tx.defer(_write, entry)


def _write(tx: Tx, entries: list[_Entry]) -> None:
    at, library = now(), attrgetter("library_id")
    for library_id, group in groupby(sorted(dict.fromkeys(entries), key=library), key=library):
        own = list(group)
        if tx.one(_HAS_WEBHOOKS, library_id=library_id):
            job_queues.put(tx, [(library_id, job_queues.NOTIFY, micros(at))])
        last = tx.all(
            """INSERT INTO event_counters (library_id, last, key)
               VALUES (:library_id, :count, :key)
               ON CONFLICT (library_id) DO UPDATE SET last = event_counters.last + :count
               RETURNING last""",
            library_id=library_id,
            count=len(own),
            key=secrets.token_hex(16),
        )[0]["last"]
        tx.insert(
            "event_log",
            _COLUMNS,
            [
                (
                    library_id,
                    seq,
                    str(each.type),
                    rows.column(at),
                    each.item_id,
                    each.actor,
                    None if each.folders is None else rows.column(each.folders),
                    None if each.in_kb is None else int(each.in_kb),
                )
                for seq, each in enumerate(own, last - len(own) + 1)
            ],
        )


_HAS_WEBHOOKS = "SELECT 1 FROM webhooks WHERE library_id = :library_id LIMIT 1"
_OPEN = """SELECT count(*) || ':' || coalesce(max(updated_at), 0) || ':'
                  || coalesce(sum(progress), 0)
           FROM (SELECT updated_at, progress FROM jobs WHERE library_id = :library_id
                 AND state IN ('queued', 'running') LIMIT 1000) AS j"""


class Events(Table):
    @reads
    def list_after(
        self, tx: Tx, scope: Scope, after: int | None, limit: int, types: Collection[str] = ()
    ) -> EventPage:
        """Return the events that a scope sees, and where to continue. `after` None: from now on."""
        counter = tx.one(
            "SELECT last, key FROM event_counters WHERE library_id = :library_id",
            library_id=scope.library_id,
        ) or {"last": 0, "key": ""}
        last = counter["last"]
        # A number from a time that a restored backup does not know: better twice than never.
        begin = last if after is None else after if after <= last else 0
        condition, values = _visible(tx, scope)
        found = tx.all(
            f"""SELECT e.seq, e.type, e.at, e.item_id, e.actor FROM event_log AS e
                WHERE e.library_id = :library_id AND e.seq > :begin AND {condition}
                {"AND e.type IN :types" if types else ""} ORDER BY e.seq LIMIT :limit""",
            begin=begin,
            limit=limit,
            types=[*types, *(own for own, shown in _SHOWN.items() if shown in types)],
            **values,
        )
        return EventPage(
            [_event(row, scope) for row in found],
            found[-1]["seq"] if len(found) == limit else last,
            counter["key"],
        )

    @reads
    def latest(self, tx: Tx, library_ids: Collection[str]) -> dict[str, tuple[int, str]]:
        """Return the number of each library's last event, and a mark that differs when its open
        jobs have changed; of very many, only the first are looked at."""
        last = dict(
            tx.tuples(
                "SELECT library_id, last FROM event_counters WHERE library_id IN :ids",
                ids=sorted(library_ids),
            )
        )
        return {
            library_id: (last.get(library_id, 0), str(tx.scalar(_OPEN, library_id=library_id)))
            for library_id in library_ids
        }

    @reads
    def key(self, tx: Tx, library_id: str) -> str:
        """Return the key that encrypts the library's numbers; "" before its first event."""
        found = tx.scalar(
            "SELECT key FROM event_counters WHERE library_id = :library_id", library_id=library_id
        )
        return str(found or "")

    @writes
    def prune(self, tx: Tx, before: datetime) -> None:
        tx.run("DELETE FROM event_log WHERE at < :before", before=before)


def _visible(tx: Tx, scope: Scope) -> tuple[str, dict[str, object]]:
    """Return the condition on `event_log AS e` for a scope, and its values.

    An item that is gone stays visible up to the event with which it left the scope.
    """
    if scope.whole_library:
        return f"e.type <> '{LEFT}'", {"library_id": scope.library_id}
    there = f"""EXISTS (SELECT 1 FROM items AS i
                WHERE i.id = e.item_id AND {scope_sql.visible(scope)})"""
    condition = f"""
        CASE WHEN {there} THEN e.folders IS NULL
        WHEN e.folders IS NOT NULL THEN {scope_sql.was_visible(tx.engine, scope, "e")}
        ELSE EXISTS (SELECT 1 FROM event_log AS g WHERE g.library_id = e.library_id
             AND g.item_id = e.item_id AND g.seq > e.seq AND g.folders IS NOT NULL
             AND {scope_sql.was_visible(tx.engine, scope, "g")}) END
        AND (e.type <> '{EventType.CANDIDATE}' OR e.actor = :actor)
        {f"AND e.type <> '{MOVED}'" * (scope.folders is not None)}"""
    return condition, scope_sql.within(scope) | {"actor": scope.actor}


def _event(row: dict[str, object], scope: Scope) -> LibraryEvent:
    """Others' ids are shown to callers of the whole library only."""
    kind = _SHOWN.get(str(row["type"]), row["type"])
    mine = scope.whole_library or row["actor"] == scope.actor
    return rows.value(LibraryEvent, row | {"type": kind}, actor=row["actor"] if mine else None)
