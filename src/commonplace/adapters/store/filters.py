"""Which items a filter lets a search find, worked out before anything is ranked."""

from dataclasses import replace

from commonplace.adapters.store import rows
from commonplace.adapters.store.database import Tx
from commonplace.model import ItemFilter, Scope


def only_excludes(where: ItemFilter) -> bool:
    """Whether all it says is which statuses and types to leave out: few items have those, so naming them is cheaper."""
    return replace(where, not_statuses=(), not_entity_types=()) == ItemFilter()


def filed(tx: Tx, scope: Scope) -> list[str]:
    """What lies in the scope's folders."""
    return [row["item_id"] for row in tx.all(
        "SELECT DISTINCT item_id FROM folder_items WHERE library_id = :library_id AND folder_id IN :folders",
        library_id=scope.library_id, folders=sorted(scope.folders or ()))]


def wanted(tx: Tx, scope: Scope, where: ItemFilter) -> list[str]:
    (condition, values), (asked, more) = rows.visible(scope), rows.matching(where)
    return [row["id"] for row in tx.all(f"SELECT i.id FROM items AS i WHERE {condition} AND {asked}", **values, **more)]


def excluded(tx: Tx, scope: Scope, where: ItemFilter) -> list[str]:
    ids: list[str] = []
    for column, left_out in (("status", where.not_statuses), ("entity_type", where.not_entity_types)):
        ids += [row["id"] for row in tx.all(
            f"SELECT id FROM items WHERE library_id = :library_id AND {column} IN :values",
            library_id=scope.library_id, values=sorted(left_out))] if left_out else []
    return ids
