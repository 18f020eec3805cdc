"""Search on SQLite: a library's words and vectors are kept in the process, and follow what the database says."""

import json
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from commonplace.adapters.store import filters
from commonplace.adapters.store.follower import Rows, item_key
from commonplace.adapters.store.shelf import Shelf
from commonplace.adapters.store.sqlite import SqliteTx
from commonplace.adapters.store.terms import packed
from commonplace.adapters.store.wordshelf import WordShelf
from commonplace.model import Item, ItemFilter, Scope, Scored, Section, Words
from commonplace.ports import Vector

CHANGES_KEPT = 50_000
SHELVES_KEPT = 64  # libraries that stay in memory

K = TypeVar("K")
S = TypeVar("S", Shelf, WordShelf)


class SqliteIndex:
    def __init__(self) -> None:
        self._vectors: dict[tuple[str, str], Shelf] = {}
        self._words: dict[str, WordShelf] = {}
        self._guard = threading.Lock()

    def insert(self, tx: SqliteTx, item: Item, sections: Sequence[Section], stamp: str) -> None:
        for section in sections:
            terms, counts, sequence, length = packed(item.title, section)
            section_id = tx.insert(
                """INSERT INTO sections (library_id, item_id, position, title, heading, text, extra, word_count,
                                         key_points, locator)
                   VALUES (:library_id, :item_id, :position, :title, :heading, :text, :extra, :word_count,
                           :key_points, :locator)""",
                library_id=item.library_id, item_id=item.id, position=section.position, title=item.title,
                heading=section.heading, text=section.text, extra=section.extra, word_count=section.word_count,
                key_points=json.dumps(section.key_points, ensure_ascii=False), locator=json.dumps(section.locator))
            tx.run("INSERT INTO sequences VALUES (:section_id, :sequence)", section_id=section_id, sequence=sequence)
            tx.run("INSERT INTO section_terms VALUES (:library_id, :item_id, :section_id, :length, :terms, :counts)",
                   library_id=item.library_id, item_id=item.id, section_id=section_id, length=length, terms=terms,
                   counts=counts)
            if section.vector is not None:
                tx.run("INSERT INTO vectors VALUES (:library_id, :item_id, :section_id, :stamp, :vector)",
                       library_id=item.library_id, item_id=item.id, section_id=section_id, stamp=stamp,
                       vector=section.vector)
        _changed(tx, item.library_id, item.id)

    def remove(self, tx: SqliteTx, library_id: str, item_id: str) -> None:
        tx.run("DELETE FROM sections WHERE library_id = :library_id AND item_id = :item_id",
               library_id=library_id, item_id=item_id)
        _changed(tx, library_id, item_id)

    def refile(self, tx: SqliteTx, library_id: str, item_id: str) -> None:
        _changed(tx, library_id, item_id)

    def set_vectors(self, tx: SqliteTx, stamp: str, vectors: Sequence[tuple[int, bytes]]) -> None:
        ids = [section_id for section_id, _ in vectors]
        tx.many("""INSERT OR REPLACE INTO vectors
                   SELECT library_id, item_id, id, :stamp, :vector FROM sections WHERE id = :id""",
                [{"id": section_id, "stamp": stamp, "vector": vector} for section_id, vector in vectors])
        for row in tx.all("SELECT DISTINCT library_id, item_id FROM sections WHERE id IN :ids", ids=ids):
            _changed(tx, row["library_id"], row["item_id"])

    def vectors(self, tx: SqliteTx, library_id: str, item_ids: Sequence[str]) -> dict[int, tuple[str, bytes]]:
        found = tx.all("SELECT section_id, stamp, vector FROM vectors WHERE library_id = :library_id AND item_id IN :ids",
                       library_id=library_id, ids=list(item_ids))
        return {row["section_id"]: (row["stamp"], row["vector"]) for row in found}

    def keyword(self, tx: SqliteTx, scope: Scope, words: Words, limit: int, where: ItemFilter | None) -> list[Scored]:
        shelf = self._kept(self._words, scope.library_id, lambda: WordShelf(scope.library_id))
        with shelf.guard:
            shelf.catch_up(tx)
            return shelf.search(tx, words, limit, _within(tx, shelf, scope, where))

    def nearest(self, tx: SqliteTx, scope: Scope, vector: Vector, stamp: str, limit: int,
                also: Sequence[int], where: ItemFilter | None) -> list[Scored]:
        shelf = self._kept(self._vectors, (scope.library_id, stamp), lambda: Shelf(scope.library_id, stamp, len(vector)))
        with shelf.guard:
            shelf.catch_up(tx)
            return shelf.nearest(vector, limit, also, _within(tx, shelf, scope, where))

    def _kept(self, shelves: dict[K, S], key: K, make: Callable[[], S]) -> S:
        """From memory or anew; what was used longest ago is let go of."""
        with self._guard:
            shelf = shelves.pop(key, None) or make()
            shelves[key] = shelf
            while len(shelves) > SHELVES_KEPT:
                del shelves[next(iter(shelves))]
            return shelf


def _changed(tx: SqliteTx, library_id: str, item_id: str) -> None:
    seq = tx.insert("INSERT INTO changes (library_id, item_id) VALUES (:library_id, :item_id)",
                    library_id=library_id, item_id=item_id)
    if seq % 1000 == 0:
        tx.run("DELETE FROM changes WHERE seq < :oldest", oldest=seq - CHANGES_KEPT)


def _within(tx: SqliteTx, shelf: Shelf | WordShelf, scope: Scope, where: ItemFilter | None) -> Rows | None:
    """The rows that may be found; None: all."""
    if where is not None and not filters.only_excludes(where):
        return shelf.rows_of(_keys(filters.wanted(tx, scope, where)))
    rows = shelf.within(scope.folders, lambda: _items(tx, scope))
    unwanted = filters.excluded(tx, scope, where) if where else []
    return shelf.without(rows, _keys(unwanted)) if unwanted else rows


def _keys(item_ids: Sequence[str]) -> NDArray[np.int64]:
    return np.array([item_key(item_id) for item_id in item_ids], np.int64)


def _items(tx: SqliteTx, scope: Scope) -> list[int]:
    found = tx.all("SELECT DISTINCT item_id FROM folder_items WHERE library_id = :library_id AND folder_id IN :folders",
                   library_id=scope.library_id, folders=sorted(scope.folders or ()))
    return [item_key(row["item_id"]) for row in found]
