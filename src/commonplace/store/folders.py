"""Folders: names, nesting, item counts, and the effects of deleting one."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, count

from commonplace.database import Tx, reads, scope_sql, writes
from commonplace.errors import Invalid, NameTaken
from commonplace.model import (
    ACTIVE,
    DEEPEST,
    EventType,
    Folder,
    FolderImpact,
    ItemFilter,
    Json,
    Scope,
    find_by_id,
    folder_key,
    folder_list,
)
from commonplace.search_index.index import IndexedTable
from commonplace.store import rows
from commonplace.store.events import log
from commonplace.store.people.people import lock_library, revoke_tokens
from commonplace.store.trash import moves

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


class Folders(IndexedTable):
    @writes
    def create(self, tx: Tx, folder: Folder) -> None:
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
        changed = replace(_require(tx, scope, folder_id), **changes)
        known = [each for each in _all(tx, scope.library_id) if each.id != folder_id]
        _require_place([*known, changed], changed)
        _write(tx, changed)
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
            moves.delete_items(
                tx, self._index, scope.library_id, alone, scope.actor, permanent=permanent
            )
            held -= set(alone)
        # A token for this folder alone would never see anything again: it is revoked instead.
        revoke_tokens(tx, scope.library_id, _SEES_ONLY, folder_id=folder_id)
        _move_up(tx, scope.library_id, folder_id)
        tx.run("DELETE FROM folders WHERE library_id = :library_id AND id = :folder_id", **key)
        self._index.drop_folder(tx, scope.library_id, folder_id, sorted(held))
        log.record(tx, EventType.CHANGED, scope.library_id, sorted(held), scope.actor)


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


def _move_up(tx: Tx, library_id: str, folder_id: str) -> None:
    """Move the folders in a folder to where it lies. A name that is taken there gets a number."""
    folders = {each.id: each for each in _all(tx, library_id)}
    leaving = folders.pop(folder_id)
    for child in [each for each in folders.values() if each.parent_id == folder_id]:
        moved = replace(child, parent_id=leaving.parent_id)
        taken = _names_beside([*folders.values()], moved)
        names = chain([child.name], (f"{child.name} {number}" for number in count(2)))
        free = next(name for name in names if folder_key(name) not in taken)
        folders[child.id] = replace(moved, name=free)
        _write(tx, folders[child.id])


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
