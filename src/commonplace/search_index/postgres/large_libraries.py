"""The keys and the HNSW index of each large library: made and dropped by a job.

Searches use them when they are complete, and compare all rows until then. Each library has an index
of its own: in a shared one, a search would have to look through the vectors of all.
"""

import zlib
from typing import Any
from uuid import UUID

from commonplace.database import Database, Tx
from commonplace.errors import StorageFailed
from commonplace.search_index.postgres import counts, statements
from commonplace.search_index.postgres.counts import WHOLE, add_keys

_LOT = 500  # sections that get keys in one transaction
_MOST_DIMENSIONS = 4_000  # of an HNSW index
_NAME = "nearest_"

_FIRST = "00000000-0000-0000-0000-000000000000"  # before all items


async def maintain(db: Database, library_id: str, stamp: str) -> None:
    """Make what a library of this size needs for vectors of this stamp, and drop the rest."""
    sections, keyed, nearest = await db.read(_state, library_id)
    if sections >= (counts.NO_LONGER_LARGE if keyed else counts.LARGE):
        if keyed < 2:
            await _set(db, library_id, keyed=1)  # from now on, writers write keys
            while not await db.write(_complete_keys, library_id):
                await _give_keys(db, library_id)
        if nearest != stamp:
            await _take_turn(db)
            await _index_vectors(db, library_id, stamp)
    elif keyed or nearest:
        await _take_turn(db)
        await _set(db, library_id, keyed=0, nearest=None)
        await _drop_indexes(db, library_id, keep="")
        await _remove_keys(db, library_id)


def _state(tx: Tx, library_id: str) -> tuple[int, int, str | None]:
    found = tx.tuples(
        """SELECT sections, keyed, nearest FROM scope_sizes
           WHERE library_id = :library_id AND folder_id = :whole""",
        library_id=library_id,
        whole=WHOLE,
    )
    return found[0] if found else (0, 0, None)


async def _set(db: Database, library_id: str, **values: Any) -> None:
    await db.write(_set_row, library_id, values)


def _set_row(tx: Tx, library_id: str, values: dict[str, Any]) -> None:
    tx.run(
        f"""UPDATE scope_sizes SET {", ".join(f"{name} = :{name}" for name in values)}
            WHERE library_id = :library_id AND folder_id = :whole""",
        library_id=library_id,
        whole=WHOLE,
        **values,
    )


# -- keys


async def _give_keys(db: Database, library_id: str) -> None:
    after: tuple[str, int] | None = (_FIRST, 0)
    while after:
        after = await db.write(_give_lot_keys, library_id, *after)


def _give_lot_keys(
    tx: Tx, library_id: str, item_id: str, section_id: int
) -> tuple[str, int] | None:
    """Give keys to the next sections; return the last of them."""
    lot = _lot(tx, library_id, item_id, section_id)
    if not lot:
        return None
    add_keys(
        tx,
        library_id,
        "w.item_id = ANY(:items::uuid[]) AND w.section_id = ANY(:sections) AND w.keys IS NULL",
        items=sorted({item_id for item_id, _ in lot}),
        sections=[section_id for _, section_id in lot],
    )
    return lot[-1]


def _complete_keys(tx: Tx, library_id: str) -> bool:
    """Mark the keys as complete, if no section is without."""
    row = {"library_id": library_id, "whole": WHOLE}
    # A writer that began before there were keys has ended, or gives its sections some.
    tx.one(
        """SELECT 1 FROM scope_sizes WHERE library_id = :library_id AND folder_id = :whole
           FOR UPDATE""",
        **row,
    )
    if tx.one(
        "SELECT 1 FROM section_words WHERE library_id = :library_id AND keys IS NULL LIMIT 1", **row
    ):
        return False
    _set_row(tx, library_id, {"keyed": 2})
    return True


async def _remove_keys(db: Database, library_id: str) -> None:
    after: tuple[str, int] | None = (_FIRST, 0)
    while after:
        after = await db.write(_remove_lot_keys, library_id, *after)


def _remove_lot_keys(
    tx: Tx, library_id: str, item_id: str, section_id: int
) -> tuple[str, int] | None:
    lot = _lot(tx, library_id, item_id, section_id)
    if not lot:
        return None
    tx.run(
        """UPDATE section_words SET keys = NULL WHERE library_id = :library_id
           AND item_id = ANY(:items::uuid[]) AND section_id = ANY(:sections)
           AND keys IS NOT NULL""",
        library_id=library_id,
        items=sorted({item_id for item_id, _ in lot}),
        sections=[section_id for _, section_id in lot],
    )
    return lot[-1]


def _lot(tx: Tx, library_id: str, item_id: str, section_id: int) -> list[tuple[str, int]]:
    return [
        (item_id, section_id)
        for item_id, section_id in tx.tuples(
            """SELECT item_id::text, section_id FROM section_words WHERE library_id = :library_id
               AND (item_id, section_id) > (:item_id::uuid, :section_id)
               ORDER BY library_id, item_id, section_id LIMIT :lot""",
            library_id=library_id,
            item_id=item_id,
            section_id=section_id,
            lot=_LOT,
        )
    ]


# -- the HNSW index


async def _take_turn(db: Database) -> None:
    """Fail, for another time, while an index is made or dropped for any library.

    Postgres makes one index of a table at a time. One that waits for its turn would be waited for
    in the end by the one that is made, which Postgres then gives up after all its work.
    """
    if await db.read(_is_building):
        raise StorageFailed("An index of another library is made just now. Try again later.")


def _is_building(tx: Tx) -> bool:
    ours, _ = _schemas(tx)
    return bool(
        tx.scalar(
            """SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE state = 'active'
               AND datname = current_database() AND query LIKE :definition)""",
            definition=f"% INDEX CONCURRENTLY %{ours}.%",
        )
    )


async def _index_vectors(db: Database, library_id: str, stamp: str) -> None:
    count, dimensions = await db.read(_vectors, library_id, stamp)
    await _set(db, library_id, nearest=None)
    name = f"{_prefix(library_id)}{zlib.crc32(stamp.encode()):08x}"
    await _drop_indexes(db, library_id, keep=name)
    if count < counts.NO_LONGER_LARGE or dimensions > _MOST_DIMENSIONS:
        return
    if not await db.read(_is_there, name):
        condition = statements.hnsw_condition(library_id, stamp)
        ours, pgvectors = await db.read(_schemas)
        await db.define(
            f"""CREATE INDEX CONCURRENTLY {name} ON {ours}.vectors USING hnsw (
                    (embedding::{pgvectors}.halfvec({dimensions})) {pgvectors}.halfvec_ip_ops)
                WITH (m = 24, ef_construction = 128) WHERE {condition}"""
        )
    await _set(db, library_id, nearest=stamp)


def _vectors(tx: Tx, library_id: str, stamp: str) -> tuple[int, int]:
    [found] = tx.tuples(
        """SELECT (SELECT count(*) FROM vectors WHERE library_id = :library_id AND stamp = :stamp),
                  coalesce((SELECT vector_dims(embedding) FROM vectors
                            WHERE library_id = :library_id AND stamp = :stamp LIMIT 1), 0)""",
        library_id=library_id,
        stamp=stamp,
    )
    return found[0], found[1]


async def _drop_indexes(db: Database, library_id: str, *, keep: str) -> None:
    """Drop a library's indexes, those that were not finished, and those of deleted libraries."""
    if names := await db.read(_unused, _prefix(library_id), keep):
        ours, _ = await db.read(_schemas)
        for name in names:
            await db.define(f"DROP INDEX CONCURRENTLY IF EXISTS {ours}.{name}")


def _schemas(tx: Tx) -> tuple[str, str]:
    """Return the schema of our tables, and pgvector's. Definitions have no search path."""
    [found] = tx.tuples(
        """SELECT quote_ident(current_schema()), quote_ident(n.nspname) FROM pg_extension AS e
           JOIN pg_namespace AS n ON n.oid = e.extnamespace WHERE e.extname = 'vector'"""
    )
    return found[0], found[1]


def _unused(tx: Tx, prefix: str, keep: str) -> list[str]:
    found = tx.tuples(
        """SELECT c.relname::text, substr(c.relname, :start, 32)::uuid::text,
                  c.relname ^@ :prefix AND (c.relname <> :keep OR NOT i.indisvalid)
           FROM pg_class AS c JOIN pg_index AS i ON i.indexrelid = c.oid
           WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'i'
           AND c.relname ^@ :every""",
        every=_NAME,
        prefix=prefix,
        keep=keep,
        start=len(_NAME) + 1,
    )
    there = set(
        tx.column(
            "SELECT library_id FROM scope_sizes WHERE library_id IN :ids AND folder_id = :whole",
            ids=[library_id for _, library_id, _ in found],
            whole=WHOLE,
        )
    )
    return [name for name, library_id, ours in found if ours or library_id not in there]


def _is_there(tx: Tx, name: str) -> bool:
    return (
        tx.one(
            """SELECT 1 FROM pg_class WHERE relname = :name
               AND relnamespace = current_schema()::regnamespace""",
            name=name,
        )
        is not None
    )


def _prefix(library_id: str) -> str:
    return f"{_NAME}{UUID(library_id).hex}_"
