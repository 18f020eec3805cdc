"""Pools: the items that a scope and a filter let a search find, cached per snapshot."""

from dataclasses import replace
from functools import lru_cache

from commonplace.database import Tx, scope_sql
from commonplace.model import WRONG, ItemFilter, Scope
from commonplace.search_index.snapshot import Pool, Snapshot

POOLS_KEPT, POOL_BYTES = 256, 64_000_000  # pools cached for a snapshot, and their size

# Items that a search finds if no filter is given.
SEARCHABLE = ItemFilter(not_statuses=(WRONG,))


def pools(
    tx: Tx, snapshot: Snapshot, scope: Scope, where: ItemFilter, current: bool
) -> tuple[Pool, Pool]:
    """Return the pool to search, and the pool that word frequencies are counted in.

    The second is all that the scope may search, whatever the filter. `current`: the transaction
    sees exactly the snapshot, so that the pools may be cached for others.
    """
    counted = _scoped(tx, snapshot, scope, SEARCHABLE, current)
    if where == SEARCHABLE:
        return counted, counted
    if _only_leaves_out(where):
        return _scoped(tx, snapshot, scope, where, current), counted
    asked, values = scope_sql.matching(where)
    found = tx.column(
        f"SELECT i.id FROM items AS i WHERE {scope_sql.visible(scope)} AND {asked}",
        **scope_sql.within(scope),
        **values,
    )
    return snapshot.pool(found), counted


def _scoped(tx: Tx, snapshot: Snapshot, scope: Scope, where: ItemFilter, current: bool) -> Pool:
    key = scope.folders, where.not_statuses, where.not_entity_types
    if (kept := snapshot.pools.get(key)) is not None:
        return kept
    # Few items have an excluded status or type, so these are listed instead of all others.
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
        snapshot.pools[key] = made
    return made


@lru_cache(maxsize=256)
def _only_leaves_out(where: ItemFilter) -> bool:
    return replace(where, not_statuses=(), not_entity_types=()) == ItemFilter()


def _filed(tx: Tx, scope: Scope) -> list[str] | None:
    """Return the items in the scope's folders, some twice; None if the scope is the library."""
    # Without DISTINCT: for its order SQLite would read the folders of the whole library.
    return (
        None
        if scope.folders is None
        else tx.column(
            """SELECT item_id FROM folder_items
               WHERE library_id = :library_id AND folder_id IN :folders""",
            library_id=scope.library_id,
            folders=sorted(scope.folders),
        )
    )


def _with(tx: Tx, scope: Scope, column: str, values: tuple[str, ...]) -> list[str]:
    return (
        tx.column(
            f"SELECT id FROM items WHERE library_id = :library_id AND {column} IN :values",
            library_id=scope.library_id,
            values=sorted(values),
        )
        if values
        else []
    )
