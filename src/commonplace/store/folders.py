"""Folders: names, item counts, and the effects of deleting one."""

from typing import Any

from commonplace.database import Tx, reads, writes
from commonplace.errors import NameTaken, NotFound
from commonplace.model import EventType, Folder, FolderImpact, Scope, now
from commonplace.search_index.index import IndexedTable
from commonplace.store import items, rows
from commonplace.store.events import log

_FOLDERS = """SELECT d.library_id, d.id, d.name, d.created_at,
                     (SELECT count(*) FROM folder_items AS fi {of_kb}
                      WHERE fi.library_id = d.library_id AND fi.folder_id = d.id) AS item_count
              FROM folders AS d WHERE d.library_id = :library_id"""
_OF_KB = "JOIN items AS i ON i.library_id = fi.library_id AND i.id = fi.item_id AND i.in_kb = 1"
_ITEMS = "FROM folder_items AS fi WHERE fi.library_id = :library_id AND fi.folder_id = :folder_id"
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
        """Create a folder. NameTaken: the library has one of that name, in any case."""
        _refuse_taken(tx, folder.library_id, folder.name)
        tx.run(
            """INSERT INTO folders (library_id, id, name, name_key, created_at)
               VALUES (:library_id, :id, :name, :name_key, :at)""",
            library_id=folder.library_id,
            id=folder.id,
            name=folder.name,
            name_key=folder.name.casefold(),
            at=folder.created_at,
        )

    @reads
    def list_folders(self, tx: Tx, scope: Scope) -> list[Folder]:
        return _in_scope(tx, scope)

    @writes
    def rename(self, tx: Tx, scope: Scope, folder_id: str, name: str) -> Folder:
        _require(tx, scope, folder_id)
        _refuse_taken(tx, scope.library_id, name, but=folder_id)
        tx.run(
            """UPDATE folders SET name = :name, name_key = :name_key
               WHERE library_id = :library_id AND id = :id""",
            library_id=scope.library_id,
            id=folder_id,
            name=name,
            name_key=name.casefold(),
        )
        return _require(tx, scope, folder_id)

    @reads
    def folder_impact(self, tx: Tx, scope: Scope, folder_id: str) -> FolderImpact:
        """Count what deleting the folder affects."""
        _require(tx, scope, folder_id)
        return FolderImpact(
            *tx.tuples(
                f"""SELECT (SELECT count(*) {_ITEMS}), (SELECT count(*) {_ALONE}),
                    (SELECT count(*) FROM tokens WHERE {_SEES_ONLY})""",
                library_id=scope.library_id,
                folder_id=folder_id,
            )[0]
        )

    @writes
    def delete(self, tx: Tx, scope: Scope, folder_id: str, *, cascade_items: bool) -> None:
        """Delete a folder and revoke tokens that see nothing else.

        With `cascade_items`, items that lie in no other folder are deleted too.
        """
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
            items.delete_items(tx, self._index, scope.library_id, alone, scope.actor)
            held -= set(alone)
        # A token for this folder alone would never see anything again: it is revoked instead.
        tx.run(f"UPDATE tokens SET revoked_at = :at WHERE {_SEES_ONLY}", at=now(), **key)
        tx.run("DELETE FROM folders WHERE library_id = :library_id AND id = :folder_id", **key)
        for item_id in sorted(held):
            self._index.refile(tx, scope.library_id, item_id)
        log.record(tx, EventType.CHANGED, scope.library_id, sorted(held), scope.actor)


def _in_scope(tx: Tx, scope: Scope) -> list[Folder]:
    sql = _FOLDERS.format(of_kb=_OF_KB if scope.kb_only else "")
    values: dict[str, Any] = {"library_id": scope.library_id}
    if scope.folders is not None:
        sql, values["scope_folders"] = f"{sql} AND d.id IN :scope_folders", sorted(scope.folders)
    return rows.every(tx, Folder, f"{sql} ORDER BY d.name_key", **values)


def _require(tx: Tx, scope: Scope, folder_id: str) -> Folder:
    for folder in _in_scope(tx, scope):
        if folder.id == folder_id:
            return folder
    raise NotFound("Folder not found")


def _refuse_taken(tx: Tx, library_id: str, name: str, but: str = "") -> None:
    if tx.one(
        """SELECT 1 FROM folders
           WHERE library_id = :library_id AND name_key = :name_key AND id <> :but""",
        library_id=library_id,
        name_key=name.casefold(),
        but=but,
    ):
        raise NameTaken(
            f"There is already a folder named {name!r} (upper and lower case count as the same)."
        )
