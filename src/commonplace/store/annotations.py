"""Notes in the margins of items."""

from collections.abc import Sequence

from commonplace.database.transaction import Tx


def with_notes(tx: Tx, library_id: str, item_ids: Sequence[str]) -> list[str]:
    """The items and the notes in their margins, which quote them: where the one lies lies the other, and they go together."""
    found, new = list(item_ids), list(item_ids)
    while new:
        new = [
            row["id"]
            for row in tx.all(
                "SELECT id FROM items WHERE library_id = :library_id AND annotates IN :ids",
                library_id=library_id,
                ids=new,
            )
            if row["id"] not in found
        ]
        found += new
    return found
