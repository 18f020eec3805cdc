"""Folders: names, nesting, item counts, and the effects of deleting one."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, count

from commonplace.database import Tx, reads, scope_sql, writes
from commonplace.errors import Conflict, Invalid, NameTaken
from commonplace.model import (
    ACTIVE,
    DEEPEST,
    Did,
    EventType,
    Folder,
    FolderImpact,
    ItemFilter,
    Json,
    Scope,
    find_by_id,
    folder_key,
    folder_list,
    now,
)
from commonplace.search_index.index import IndexedTable
from commonplace.store import rows
from commonplace.store.events import log
from commonplace.store.people.people import lock_library, revoke_tokens
from commonplace.store.queues import job_queues
from commonplace.store.trash import moves
from commonplace.store.undo import journal

# Notes go with the items that they are on, and are not counted.
_ITEMS = """FROM folder_items AS fi
    JOIN items AS i ON i.library_id = fi.library_id AND i.id = fi.item_id
    WHERE fi.library_id = :library_id AND fi.folder_id = :folder_id"""
_COUNTED = "i.annotates IS NULL"
# Items that lie in no other folder.
_ALONE = f"""{_ITEMS} AND NOT EXISTS (
    SELECT 1 FROM folder_items AS other WHERE other.library_id = fi.library_id
    AND other.item_id = fi.item_id AND other.folder_id <> fi.folder_id)"""
# Tokens that see this folder and nothing else.
_SEES_ONLY = """library_id = :library_id AND whole_library = 0 AND revoked_at IS NULL AND id IN
    (SELECT token_id FROM token_folders WHERE library_id = :library_id AND folder_id = :folder_id)
    AND NOT EXISTS (
        SELECT 1 FROM token_folders AS other WHERE other.library_id = tokens.library_id
        AND other.token_id = tokens.id AND other.folder_id <> :folder_id)"""


# What goes with a folder, and comes back with it.
_OF_FOLDER = {
    "folders": "id = :folder_id",
    "folder_items": "folder_id = :folder_id",
    "token_folders": "folder_id = :folder_id",
    "feeds": "folder_id = :folder_id",
    "feed_entries": """feed_id IN (SELECT id FROM feeds
                       WHERE library_id = :library_id AND folder_id = :folder_id)""",
    "crawls": "folder_id = :folder_id",
    "crawl_pages": """crawl_id IN (SELECT id FROM crawls
                      WHERE library_id = :library_id AND folder_id = :folder_id)""",
    "webhooks": f"token_id IN (SELECT id FROM tokens WHERE {_SEES_ONLY})",
}
_NEEDS = {
    "folder_items": "items WHERE library_id = :library_id AND id = :item_id",
    "token_folders": "tokens WHERE library_id = :library_id AND id = :token_id",
    "feeds": "members WHERE library_id = :library_id AND person_id = :person_id",
    "feed_entries": "feeds WHERE library_id = :library_id AND id = :feed_id",
    "crawls": "members WHERE library_id = :library_id AND person_id = :person_id",
    "crawl_pages": "crawls WHERE library_id = :library_id AND id = :crawl_id",
    "webhooks": """members AS m JOIN tokens AS t ON t.library_id = m.library_id
                   WHERE m.library_id = :library_id AND m.person_id = :person_id
                   AND t.id = :token_id""",
}


class Folders(IndexedTable):
    @writes
    def create(self, tx: Tx, scope: Scope, folder: Folder) -> None:
        """Create a folder. NameTaken: there is one of that name, in any case, beside it."""
        lock_library(tx, folder.library_id)
        known = _all(tx, folder.library_id)
        _require_place([*known, folder], folder)
        tx.run(
            """INSERT INTO folders (library_id, id, parent_id, name, name_key, created_at)
               VALUES (:library_id, :id, :parent_id, :name, :name_key, :at)""",
            library_id=folder.library_id,
            id=folder.id,
            parent_id=folder.parent_id,
            name=folder.name,
            name_key=folder_key(folder.name),
            at=folder.created_at,
        )
        journal.note(tx, scope, Did.FOLDER, after=_told(folder))

    @reads
    def list_folders(self, tx: Tx, scope: Scope, counted: ItemFilter = ACTIVE) -> list[Folder]:
        """Return the folders in scope. `counted`: the items that `item_count` counts."""
        folders = _in_scope(tx, scope)
        counts = tx.recall(_counts, scope, counted) if folders else {}
        return [replace(each, item_count=counts.get(each.id, 0)) for each in folders]

    @writes
    def change(self, tx: Tx, scope: Scope, folder_id: str, changes: Json) -> Folder:
        """Change the name or the parent of a folder."""
        lock_library(tx, scope.library_id)
        before = _require(tx, scope, folder_id)
        changed = replace(before, **changes)
        known = [each for each in _all(tx, scope.library_id) if each.id != folder_id]
        _require_place([*known, changed], changed)
        _write(tx, changed)
        if changed != before:
            journal.note(tx, scope, Did.FOLDER, before=_told(before), after=_told(changed))
        return replace(changed, item_count=_counts(tx, scope, ACTIVE).get(folder_id, 0))

    @reads
    def folder_impact(self, tx: Tx, scope: Scope, folder_id: str) -> FolderImpact:
        """Count what deleting the folder affects."""
        _require(tx, scope, folder_id)
        return FolderImpact(
            *tx.tuples(
                f"""SELECT (SELECT count(*) {_ITEMS} AND {_COUNTED}),
                    (SELECT count(*) {_ALONE} AND {_COUNTED}),
                    (SELECT count(*) FROM tokens WHERE {_SEES_ONLY})""",
                library_id=scope.library_id,
                folder_id=folder_id,
            )[0]
        )

    @writes
    def delete(
        self,
        tx: Tx,
        scope: Scope,
        folder_id: str,
        *,
        cascade_items: bool,
        permanent: bool = False,
    ) -> None:
        """Delete a folder and revoke tokens that see nothing else.

        Folders in it move up to where it lay. With `cascade_items`, items that lie in no other
        folder are moved to the trash, or deleted for good if `permanent`.
        """
        lock_library(tx, scope.library_id)
        _require(tx, scope, folder_id)
        key = {"library_id": scope.library_id, "folder_id": folder_id}
        if tx.engine == "postgres":
            # SQLite has one writer. Here, lock out whoever creates a token for this folder or
            # deletes the other folder of one: it would be left with none.
            tx.one(
                """SELECT 1 FROM folders WHERE library_id = :library_id AND id = :folder_id
                   FOR UPDATE""",
                **key,
            )
            tx.all(
                """SELECT 1 FROM tokens WHERE library_id = :library_id AND id IN
                   (SELECT token_id FROM token_folders
                    WHERE library_id = :library_id AND folder_id = :folder_id)
                   ORDER BY id FOR NO KEY UPDATE""",
                **key,
            )
        held = set(tx.column(f"SELECT fi.item_id {_ITEMS}", **key))
        if cascade_items:
            alone = tx.column(f"SELECT fi.item_id {_ALONE}", **key)
            moves.delete_items(tx, self._index, scope, alone, permanent=permanent)
            held -= set(alone)
        kept = _rows_of(tx, scope.library_id, folder_id)
        # A token for this folder alone would never see anything again: it is revoked instead.
        revoke_tokens(tx, scope.library_id, _SEES_ONLY, folder_id=folder_id)
        kept["revoked"] = tx.tuples(
            "SELECT id, revoked_at FROM tokens WHERE library_id = :library_id AND id IN :ids",
            library_id=scope.library_id,
            ids=kept["revoked"],
        )
        moved = _move_up(tx, scope.library_id, folder_id)
        journal.note(tx, scope, Did.FOLDER_DELETED, before=kept, after={"folders": moved})
        tx.run("DELETE FROM folders WHERE library_id = :library_id AND id = :folder_id", **key)
        self._index.drop_folder(tx, scope.library_id, folder_id, sorted(held))
        log.record(tx, EventType.CHANGED, scope.library_id, sorted(held), scope.actor)

    @writes
    def put_back(self, tx: Tx, scope: Scope, before: Json | None, after: Json) -> None:
        """Undo that a folder was created, or changed. Conflict: it was changed since, or is not
        empty."""
        lock_library(tx, scope.library_id)
        folder = _require(tx, scope, after["id"])
        if _told(folder) != after:
            raise Conflict(f"The folder “{folder.name}” was changed since.")
        if before is not None:
            known = [each for each in _all(tx, scope.library_id) if each.id != folder.id]
            earlier = replace(folder, name=before["name"], parent_id=before["parent_id"])
            _require_place([*known, earlier], earlier)
            _write(tx, earlier)
            return
        key = {"library_id": scope.library_id, "folder_id": folder.id}
        if tx.one(
            """SELECT 1 FROM folder_items WHERE library_id = :library_id AND folder_id = :folder_id
               UNION ALL SELECT 1 FROM folders WHERE library_id = :library_id
               AND parent_id = :folder_id
               UNION ALL SELECT 1 FROM token_folders WHERE library_id = :library_id
               AND folder_id = :folder_id LIMIT 1""",
            **key,
        ):
            raise Conflict(f"The folder “{folder.name}” is in use by now.")
        tx.run("DELETE FROM folders WHERE library_id = :library_id AND id = :folder_id", **key)

    @writes
    def put_back_deleted(self, tx: Tx, scope: Scope, before: Json, after: Json) -> None:
        """Undo that a folder was deleted: it gets its items and folders again, and tokens and feeds
        their scope, as far as these still exist."""
        library_id = scope.library_id
        lock_library(tx, library_id)
        [row] = before["folders"]
        folders = {each.id: each for each in _all(tx, library_id)}
        if row["id"] in folders:
            raise Conflict(f"The folder “{row['name']}” is there again.")
        folder = Folder(row["id"], library_id, row["name"], now(), row["parent_id"])
        if folder.parent_id not in folders:
            folder = replace(folder, parent_id=None)
        free = _free_name([*folders.values()], folder)
        row |= {"parent_id": folder.parent_id, "name": free, "name_key": folder_key(free)}
        for table in _OF_FOLDER:
            for each in before[table]:
                _put_row(tx, table, each)
        for kind in (job_queues.FEED, job_queues.CRAWL):
            job_queues.note(tx, library_id, kind, now())
        for child in after["folders"]:
            present = folders.get(child["id"])
            if present is not None and _told(present) == child["after"]:
                _write(tx, replace(present, parent_id=folder.id, name=child["before"]["name"]))
        for token_id, revoked_at in before["revoked"]:  # not those that were revoked again
            tx.run(
                """UPDATE tokens SET revoked_at = NULL
                   WHERE library_id = :library_id AND id = :id AND revoked_at = :at""",
                library_id=library_id,
                id=token_id,
                at=revoked_at,
            )
        filed = tx.column(
            """SELECT item_id FROM folder_items
               WHERE library_id = :library_id AND folder_id = :folder_id""",
            library_id=library_id,
            folder_id=folder.id,
        )
        for item_id in filed:
            self._index.refile(tx, library_id, item_id, added=[folder.id])
        log.record(tx, EventType.CHANGED, library_id, filed, scope.actor)


def _told(folder: Folder) -> Json:
    return {"id": folder.id, "name": folder.name, "parent_id": folder.parent_id}


def _rows_of(tx: Tx, library_id: str, folder_id: str) -> Json:
    """Return what goes with a folder, as rows, and the tokens that are revoked with it."""
    key = {"library_id": library_id, "folder_id": folder_id}
    kept: Json = {
        table: [
            dict(row)
            for row in tx.all(
                f"SELECT * FROM {table} WHERE library_id = :library_id AND {condition}", **key
            )
        ]
        for table, condition in _OF_FOLDER.items()
    }
    return kept | {"revoked": tx.column(f"SELECT id FROM tokens WHERE {_SEES_ONLY}", **key)}


def _put_row(tx: Tx, table: str, row: Json) -> None:
    """Write a row again, unless what it is about is gone."""
    if table in _NEEDS and not tx.one(f"SELECT 1 FROM {_NEEDS[table]}", **row):
        return
    tx.run(
        f"""INSERT INTO {table} ({", ".join(row)}) VALUES ({", ".join(f":{c}" for c in row)})
            ON CONFLICT DO NOTHING""",
        **row,
    )


def _in_scope(tx: Tx, scope: Scope) -> list[Folder]:
    folders = _all(tx, scope.library_id)
    if scope.folders is None:
        return folders
    # Nothing tells that a folder out of scope exists.
    return [
        each if each.parent_id in scope.folders else replace(each, parent_id=None)
        for each in folders
        if each.id in scope.folders
    ]


def _counts(tx: Tx, scope: Scope, counted: ItemFilter) -> dict[str, int]:
    """Return how many of the counted items in scope each folder has: all that are filed but those
    that do not count, which are fewer. For those that count, SQLite would read every row."""
    matching, values = scope_sql.matching(counted)
    inside = "" if scope.folders is None else "AND f.folder_id IN :scope_folders"
    filed = f"""SELECT f.folder_id, count(*) FROM folder_items AS f
                WHERE f.library_id = :library_id {inside}"""
    counts = dict(tx.tuples(f"{filed} GROUP BY f.folder_id", **scope_sql.within(scope)))
    others = tx.tuples(
        f"""{filed} AND f.item_id IN (
                SELECT i.id FROM items AS i WHERE i.library_id = :library_id
                AND ({scope_sql.visible(scope)} AND {matching}) IS NOT TRUE)
            GROUP BY f.folder_id""",
        **scope_sql.within(scope),
        **values,
    )
    for folder_id, number in others:
        counts[folder_id] -= number
    return counts


def _all(tx: Tx, library_id: str) -> list[Folder]:
    """Return all folders of a library, not counted."""
    return rows.every(
        tx,
        Folder,
        """SELECT library_id, id, parent_id, name, created_at, 0 AS item_count FROM folders
           WHERE library_id = :library_id ORDER BY name_key""",
        library_id=library_id,
    )


def _require(tx: Tx, scope: Scope, folder_id: str) -> Folder:
    return find_by_id(_in_scope(tx, scope), folder_id, "Folder")


def _require_place(folders: Sequence[Folder], folder: Folder) -> None:
    """Refuse a tree in which a folder has a taken name or a wrong parent. The caller holds the
    library's lock."""
    if folder.parent_id is not None:
        find_by_id(folders, folder.parent_id, "Parent folder")
    nodes = folder_list(folders)
    if len(nodes) < len(folders):  # a cycle hangs from no folder at the top
        raise Invalid("A folder cannot be moved into itself or a folder below it.")
    if any(len(node.names) > DEEPEST for node in nodes):
        raise Invalid(f"Folders can be nested at most {DEEPEST} deep.")
    if folder_key(folder.name) in _names_beside(folders, folder):
        raise NameTaken(
            f"There is already a folder named {folder.name!r} (upper and lower case count as the "
            "same).",
            field="name",
        )


def _names_beside(folders: Sequence[Folder], folder: Folder) -> set[str]:
    return {
        folder_key(each.name)
        for each in folders
        if each.parent_id == folder.parent_id and each.id != folder.id
    }


def _move_up(tx: Tx, library_id: str, folder_id: str) -> list[Json]:
    """Move the folders in a folder to where it lies. A name that is taken there gets a number.
    Return what they were, and are."""
    changed = list[Json]()
    folders = {each.id: each for each in _all(tx, library_id)}
    leaving = folders.pop(folder_id)
    for child in [each for each in folders.values() if each.parent_id == folder_id]:
        moved = replace(child, parent_id=leaving.parent_id)
        moved = replace(moved, name=_free_name([*folders.values()], moved))
        folders[child.id] = moved
        _write(tx, moved)
        changed.append({"id": child.id, "before": _told(child), "after": _told(moved)})
    return changed


def _free_name(folders: Sequence[Folder], folder: Folder) -> str:
    """Return the folder's name, with a number if it is taken where the folder lies."""
    taken = _names_beside(folders, folder)
    names = chain([folder.name], (f"{folder.name} {number}" for number in count(2)))
    return next(name for name in names if folder_key(name) not in taken)


def _write(tx: Tx, folder: Folder) -> None:
    tx.run(
        """UPDATE folders SET parent_id = :parent_id, name = :name, name_key = :name_key
           WHERE library_id = :library_id AND id = :id""",
        library_id=folder.library_id,
        id=folder.id,
        parent_id=folder.parent_id,
        name=folder.name,
        name_key=folder_key(folder.name),
    )
