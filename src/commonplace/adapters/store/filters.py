"""Which items a filter lets a search find, worked out before anything is ranked."""

from dataclasses import dataclass, replace

from commonplace.adapters.store import rows
from commonplace.adapters.store.database import Tx
from commonplace.model import ItemFilter, Scope


@dataclass(frozen=True, slots=True)
class Choice:
    only: list[str] | None = None   # these items, which are in scope; None: all that are
    but: tuple[str, ...] = ()       # without these


def choice(tx: Tx, scope: Scope, where: ItemFilter | None) -> Choice:
    if where is None:
        return Choice()
    if replace(where, not_statuses=(), not_entity_types=()) == ItemFilter():
        # Few items have a status or type that is left out, so they are named instead of all others.
        return Choice(but=tx.recall(_with, scope.library_id, where.not_statuses, where.not_entity_types))
    (condition, values), (asked, more) = rows.visible(scope), rows.matching(where)
    return Choice([row["id"] for row in tx.all(f"SELECT i.id FROM items AS i WHERE {condition} AND {asked}", **values, **more)])


def filed(tx: Tx, scope: Scope) -> list[str] | None:
    """What lies in the scope's folders; None: everything is in scope."""
    return None if scope.folders is None else [row["item_id"] for row in tx.all(
        "SELECT DISTINCT item_id FROM folder_items WHERE library_id = :library_id AND folder_id IN :folders",
        library_id=scope.library_id, folders=sorted(scope.folders))]


def _with(tx: Tx, library_id: str, statuses: tuple[str, ...], entity_types: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(row["id"] for column, values in (("status", statuses), ("entity_type", entity_types)) if values
                 for row in tx.all(f"SELECT id FROM items WHERE library_id = :library_id AND {column} IN :values",
                                   library_id=library_id, values=sorted(values)))
