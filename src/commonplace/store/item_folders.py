"""Which folders items lie in."""

from collections.abc import Collection, Sequence

from commonplace.database.transaction import Tx
from commonplace.errors import NotFound
from commonplace.model import Scope


def folders_of(tx: Tx, scope: Scope, item_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Which folders the items lie in, as far as the scope goes."""
    found: dict[str, tuple[str, ...]] = {}
    # Put in order here: for the sake of an order SQLite would read the filings of the whole library.
    filed = tx.all(
        """SELECT item_id, folder_id
           FROM folder_items
           WHERE library_id = :library_id AND item_id IN :ids""",
        library_id=scope.library_id,
        ids=list(item_ids),
    )
    for row in sorted(filed, key=lambda row: str(row["folder_id"])):
        if scope.folders is None or row["folder_id"] in scope.folders:
            found[row["item_id"]] = (*found.get(row["item_id"], ()), row["folder_id"])
    return found


def require_folders(tx: Tx, library_id: str, folder_ids: Collection[str]) -> None:
    known = {
        row["id"]
        for row in tx.all(
            "SELECT id FROM folders WHERE library_id = :library_id AND id IN :ids",
            library_id=library_id,
            ids=sorted(folder_ids),
        )
    }
    if missing := sorted(set(folder_ids) - known):
        raise NotFound("Folder not found", folder_ids=missing)


def put_in_folder(tx: Tx, library_id: str, item_id: str, folder_id: str) -> int:
    return tx.run(
        """INSERT INTO folder_items (library_id, folder_id, item_id) SELECT library_id, id,
           :item_id FROM folders
           WHERE library_id = :library_id AND id = :folder_id
           ON CONFLICT DO NOTHING""",
        library_id=library_id,
        item_id=item_id,
        folder_id=folder_id,
    )
