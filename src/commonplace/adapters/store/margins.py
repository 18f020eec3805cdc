"""Notes in the margins of items."""

from collections.abc import Sequence

from commonplace.adapters.store.database import Tx
from commonplace.model import ANNOTATION, Kind


def with_notes(tx: Tx, library_id: str, item_ids: Sequence[str]) -> list[str]:
    """The items and the notes in their margins, which quote them: where the one lies lies the other, and they go together."""
    found, new = list(item_ids), list(item_ids)
    while new:
        new = [row["from_id"] for row in tx.all(
            """SELECT r.from_id FROM relations AS r CROSS JOIN items AS i WHERE i.library_id = r.library_id AND i.id = r.from_id
               AND r.library_id = :library_id AND r.kind = :kind AND r.to_id IN :ids AND i.category = :category""",
            library_id=library_id, kind=Kind.ANNOTATES, ids=new, category=ANNOTATION) if row["from_id"] not in found]
        found += new
    return found
