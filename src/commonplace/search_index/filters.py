"""Which items a filter lets a search find, worked out before anything is ranked."""

from collections.abc import Hashable
from dataclasses import replace
from functools import lru_cache

from commonplace.database import scope_sql
from commonplace.database.transaction import Tx
from commonplace.model import WRONG, ItemFilter, Scope
from commonplace.search_index.snapshot import Pool, Snapshot

POOLS_KEPT, POOL_BYTES = (
    256,
    64_000_000,
)  # scopes that are remembered until the library changes, and what they may take


SEARCHABLE = ItemFilter(
    not_statuses=(WRONG,)
)  # what a search finds in a scope if nothing else is asked for


def pools(
    tx: Tx, snapshot: Snapshot, scope: Scope, where: ItemFilter, current: bool
) -> tuple[Pool, Pool]:
    """What may be found, and what words are counted in: all that the scope finds, whatever the filter asks for.

    `current`: what the transaction sees is what the snapshot shows, so that others may be told the same.
    """
    counted = _scoped(tx, snapshot, scope, SEARCHABLE, current)
    if where == SEARCHABLE:
        return counted, counted
    if _only_leaves_out(where):
        return _scoped(tx, snapshot, scope, where, current), counted
    (condition, values), (asked, more) = scope_sql.visible(scope), scope_sql.matching(where)
    found = tx.all(f"SELECT i.id FROM items AS i WHERE {condition} AND {asked}", **values, **more)
    return snapshot.pool([row["id"] for row in found]), counted


def _scoped(tx: Tx, snapshot: Snapshot, scope: Scope, where: ItemFilter, current: bool) -> Pool:
    if (kept := snapshot.pools.get(_key(scope, where))) is not None:
        return kept
    # Few items have a status or type that is left out, so they are named instead of all others.
    made = snapshot.pool(
        _filed(tx, scope),
        [
            *_with(tx, scope, "status", where.not_statuses),
            *_with(tx, scope, "entity_type", where.not_entity_types),
        ],
    )
    if current:
        if (
            len(snapshot.pools) >= POOLS_KEPT
            or made.nbytes + sum(each.nbytes for each in list(snapshot.pools.values())) > POOL_BYTES
        ):
            snapshot.pools.clear()
        snapshot.pools[_key(scope, where)] = made
    return made


def _key(scope: Scope, where: ItemFilter) -> Hashable:
    return scope.folders, where.not_statuses, where.not_entity_types


@lru_cache(maxsize=256)
def _only_leaves_out(where: ItemFilter) -> bool:
    return replace(where, not_statuses=(), not_entity_types=()) == ItemFilter()


def _filed(tx: Tx, scope: Scope) -> list[str] | None:
    """What lies in the scope's folders; None: everything is in scope."""
    # Some of them twice: for the sake of DISTINCT's order SQLite would read the filings of the whole library.
    return (
        None
        if scope.folders is None
        else [
            item_id
            for (item_id,) in tx.tuples(
                """SELECT item_id FROM folder_items
                   WHERE library_id = :library_id AND folder_id IN :folders""",
                library_id=scope.library_id,
                folders=sorted(scope.folders),
            )
        ]
    )


def _with(tx: Tx, scope: Scope, column: str, values: tuple[str, ...]) -> list[str]:
    return (
        [
            row["id"]
            for row in tx.all(
                f"SELECT id FROM items WHERE library_id = :library_id AND {column} IN :values",
                library_id=scope.library_id,
                values=sorted(values),
            )
        ]
        if values
        else []
    )
