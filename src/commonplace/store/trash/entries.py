"""What is in the trash, as far as a caller saw it when it was deleted."""

from datetime import datetime
from typing import Any

from commonplace.database import Table, Tx, reads, scope_sql, writes
from commonplace.errors import NotFound
from commonplace.model import ItemRef, Scope, Trashed
from commonplace.store import rows
from commonplace.store.trash.moves import purge

AT_ONCE = 100  # entries that one transaction deletes for good


class Trash(Table):
    """Entries that are older than `since` have expired, and are not there for any caller."""

    @reads
    def list_page(
        self, tx: Tx, scope: Scope, since: datetime, *, limit: int, offset: int
    ) -> tuple[list[Trashed], int]:
        """Return what was in scope when it was deleted, newest first, and the total."""
        found = _entries(
            tx,
            scope,
            since,
            "ORDER BY e.deleted_at DESC, e.item_id DESC LIMIT :limit OFFSET :offset",
            limit=limit,
            offset=offset,
        )
        total = tx.scalar(
            f"SELECT count(*) FROM ({_visible(tx, scope)}) AS e WHERE e.deleted_at >= :since",
            since=since,
            **scope_sql.within(scope),
        )
        return found, int(total)

    @writes
    def delete(self, tx: Tx, scope: Scope, ref: ItemRef, since: datetime) -> Trashed:
        """Delete an entry, and its notes, for good."""
        entry = find_entry(tx, scope, ref, since)
        purge(tx, scope.library_id, [entry.id])
        return entry

    @writes
    def delete_some(self, tx: Tx, library_id: str) -> int:
        """Delete entries of a library for good; return how many, 0 if there are none left."""
        found = tx.column(
            """SELECT item_id FROM trash WHERE library_id = :library_id AND deleted_with IS NULL
               LIMIT :most""",
            library_id=library_id,
            most=AT_ONCE,
        )
        purge(tx, library_id, found)
        return len(found)

    @writes
    def expire(self, tx: Tx, before: datetime) -> int:
        """Delete entries of all libraries from before a time for good; return how many."""
        tx.run("DELETE FROM trash_folders WHERE deleted_at < :before", before=before)
        found = tx.tuples(
            """SELECT library_id, item_id FROM trash
               WHERE deleted_at < :before AND deleted_with IS NULL LIMIT :most""",
            before=before,
            most=AT_ONCE,
        )
        for library_id, item_id in found:
            purge(tx, library_id, [item_id])
        return len(found)


def find_entry(tx: Tx, scope: Scope, ref: ItemRef, since: datetime) -> Trashed:
    """Return what was in scope when it was deleted. NotFound: it is not in the trash."""
    column, name = ("item_id", ref.id) if ref.id is not None else ("public_id", ref.public_id)
    found = _entries(tx, scope, since, f"AND e.{column} = :name", name=name)
    if not found or ref.entity_type not in (None, found[0].entity_type):
        raise NotFound(f"{ref.missing[:-1]} in the trash.")
    return found[0]


def is_whole(tx: Tx, entry: Trashed) -> bool:
    """Return whether an item is in the trash for everybody, not only for some tokens."""
    return (
        tx.one(
            "SELECT 1 FROM trash WHERE library_id = :library_id AND item_id = :item_id",
            library_id=entry.library_id,
            item_id=entry.id,
        )
        is not None
    )


def _entries(tx: Tx, scope: Scope, since: datetime, rest: str, **values: Any) -> list[Trashed]:
    """Only a scope that sees the whole library sees who else has deleted something."""
    told = "TRUE" if scope.whole_library else "e.deleted_by = :actor"
    return rows.every(
        tx,
        Trashed,
        f"""SELECT e.item_id AS id, :library_id AS library_id, e.public_id, e.entity_type,
                   e.title, e.deleted_at, CASE WHEN {told} THEN coalesce(
                       (SELECT t.name FROM tokens AS t
                        WHERE t.library_id = :library_id AND t.id = e.deleted_by),
                       (SELECT p.name FROM people AS p WHERE p.id = e.deleted_by))
                   END AS deleted_by
            FROM ({_visible(tx, scope)}) AS e WHERE e.deleted_at >= :since {rest}""",
        since=since,
        actor=scope.actor,
        **scope_sql.within(scope),
        **values,
    )


def _visible(tx: Tx, scope: Scope) -> str:
    columns = "entity_type, {0}.title, {0}.deleted_at, {0}.deleted_by"
    sql = f"""SELECT t.item_id, t.public_id, t.{columns.format("t")} FROM trash AS t
              WHERE t.library_id = :library_id AND t.deleted_with IS NULL
              AND {scope_sql.was_visible(tx.engine, scope, "t")}"""
    if scope.folders is None:
        return sql
    of_scope = "{0}.folder_id IN :scope_folders" + " AND {0}.in_kb = 1" * scope.kb_only
    return f"""{sql} UNION ALL
        SELECT f.item_id, i.public_id, f.{columns.format("f")} FROM trash_folders AS f
        JOIN items AS i ON i.library_id = f.library_id AND i.id = f.item_id
        WHERE f.library_id = :library_id AND {of_scope.format("f")}
        AND NOT ({scope_sql.visible(scope)}) AND NOT EXISTS (
            SELECT 1 FROM trash_folders AS n WHERE n.library_id = f.library_id
            AND n.item_id = f.item_id AND {of_scope.format("n")}
            AND (n.deleted_at > f.deleted_at
                 OR (n.deleted_at = f.deleted_at AND n.folder_id > f.folder_id)))"""
