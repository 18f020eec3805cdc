"""The folders of items, and the notes that share them."""

from collections.abc import Collection, Sequence

from commonplace.database import Tx
from commonplace.errors import NotFound
from commonplace.model import Scope


def folders_of(tx: Tx, scope: Scope, item_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the folders of each item, as far as the scope sees them."""
    found: dict[str, tuple[str, ...]] = {}
    # Sorted here: for an ORDER BY, SQLite would read the folders of the whole library.
    for folder_id, item_id in sorted(
        tx.tuples(
            """SELECT folder_id, item_id FROM folder_items
               WHERE library_id = :library_id AND item_id IN :ids""",
            library_id=scope.library_id,
            ids=list(item_ids),
        )
    ):
        if scope.folders is None or folder_id in scope.folders:
            found[item_id] = (*found.get(item_id, ()), folder_id)
    return found


def require_folders(tx: Tx, library_id: str, folder_ids: Collection[str]) -> None:
    """Raise NotFound unless the library has all of these folders."""
    known = tx.column(
        "SELECT id FROM folders WHERE library_id = :library_id AND id IN :ids",
        library_id=library_id,
        ids=sorted(folder_ids),
    )
    if missing := sorted(set(folder_ids) - set(known)):
        raise NotFound("Folder not found", folder_ids=missing)


def with_notes(
    tx: Tx, library_id: str, item_ids: Sequence[str], *, lock: bool = False
) -> list[str]:
    """Return the items and the notes on them, which move and go with them. `lock`: only those that
    nobody else has deleted, or deletes now."""
    found, new = list(item_ids), list(item_ids)
    while new:
        new = [
            note_id
            for note_id in tx.column(
                "SELECT id FROM items WHERE library_id = :library_id AND annotates IN :ids",
                library_id=library_id,
                ids=new,
            )
            if note_id not in found
        ]
        found += new
    if not lock or tx.engine == "sqlite":
        return found
    there = tx.column(
        """SELECT id FROM items WHERE library_id = :library_id AND id IN :ids
           ORDER BY id FOR UPDATE""",
        library_id=library_id,
        ids=found,
    )
    return [item_id for item_id in found if item_id in there]
