"""Sections made searchable: written with their terms, found through what each process keeps of a library in memory."""

import json
import threading
from collections.abc import Callable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from commonplace.adapters.store import changes, filters, rows
from commonplace.adapters.store.database import Tx
from commonplace.adapters.store.follower import NOTHING, Ranking, Rows, item_key
from commonplace.adapters.store.halves import FORMATS
from commonplace.adapters.store.shelf import Shelf
from commonplace.adapters.store.terms import packed
from commonplace.adapters.store.wordshelf import WordShelf
from commonplace.model import Item, ItemFilter, Scope, Scored, Section, Words
from commonplace.ports import Matches, Question, Vector

SHELVES_KEPT = 64  # libraries that stay in memory

_SECTION = """INSERT INTO sections (library_id, item_id, position, title, heading, text, extra, word_count, key_points, locator)
              VALUES (:library_id, :item_id, :position, :title, :heading, :text, :extra, :word_count, :key_points, :locator)"""

K = TypeVar("K")
S = TypeVar("S", Shelf, WordShelf)


class SectionIndex:
    """Methods with `tx` run inside the caller's transaction."""

    def __init__(self) -> None:
        self._vectors: dict[tuple[str, str], Shelf] = {}
        self._words: dict[str, WordShelf] = {}
        self._guard = threading.Lock()

    def insert(self, tx: Tx, item: Item, sections: Sequence[Section], stamp: str) -> None:
        """Write section rows (and the vectors they carry), searchable by keyword once committed."""
        of_item = {"library_id": item.library_id, "item_id": item.id}
        tx.many(_SECTION, [
            {**of_item, "title": item.title, "position": s.position, "heading": s.heading, "text": s.text, "extra": s.extra,
             "word_count": s.word_count, "key_points": json.dumps(s.key_points, ensure_ascii=False),
             "locator": json.dumps(s.locator)} for s in sections])
        ids = {row["position"]: row["id"] for row in tx.all(
            "SELECT id, position FROM sections WHERE library_id = :library_id AND item_id = :item_id", **of_item)}
        put_terms(tx, item.library_id, item.id, item.title, [(ids[s.position], s) for s in sections])
        _put_vectors(tx, stamp, [(ids[s.position], s.vector) for s in sections if s.vector is not None])
        changes.note(tx, item.library_id, item.id)

    def remove(self, tx: Tx, library_id: str, item_id: str) -> None:
        tx.run("DELETE FROM sections WHERE library_id = :library_id AND item_id = :item_id",
               library_id=library_id, item_id=item_id)
        changes.note(tx, library_id, item_id)

    def refile(self, tx: Tx, library_id: str, item_id: str) -> None:
        """The item's folders changed."""
        changes.note(tx, library_id, item_id)

    def set_vectors(self, tx: Tx, stamp: str, vectors: Sequence[tuple[int, bytes]]) -> None:
        _put_vectors(tx, stamp, vectors)
        for row in tx.all("SELECT DISTINCT library_id, item_id FROM sections WHERE id IN :ids",
                          ids=[section_id for section_id, _ in vectors]):
            changes.note(tx, row["library_id"], row["item_id"])

    def vectors(self, tx: Tx, library_id: str, item_ids: Sequence[str]) -> dict[int, tuple[str, bytes]]:
        """Stamp and float16 bytes by section id."""
        form = FORMATS[tx.engine]
        found = tx.all(f"""SELECT section_id, stamp, {form.column} AS vector FROM vectors
                           WHERE library_id = :library_id AND item_id IN :ids""", library_id=library_id, ids=list(item_ids))
        return {row["section_id"]: (row["stamp"], form.matrix([row["vector"]]).tobytes()) for row in found}

    def matches(self, tx: Tx, scope: Scope, question: Question, where: ItemFilter | None) -> Matches:
        choice = filters.choice(tx, scope, where)
        ids, scores = self._by_words(tx, scope, question.words, question.limit, choice) if question.words else NOTHING
        if question.vector is None:
            return Matches(ids, scores, np.full(len(ids), np.nan, np.float32))
        near, cosines = self._by_meaning(tx, scope, question.vector, question.stamp, question.limit, ids, choice)
        every = np.union1d(ids, near)
        found = Matches(every, np.zeros(len(every), np.float32), np.full(len(every), np.nan, np.float32))
        found.keyword[np.searchsorted(every, ids)] = scores
        found.cosines[np.searchsorted(every, near)] = cosines
        return found

    def keyword(self, tx: Tx, scope: Scope, words: Words, limit: int, where: ItemFilter | None) -> list[Scored]:
        return _listed(self._by_words(tx, scope, words, limit, filters.choice(tx, scope, where)))

    def nearest(self, tx: Tx, scope: Scope, vector: Vector, stamp: str, limit: int, also: Sequence[int],
                where: ItemFilter | None) -> list[Scored]:
        return _listed(self._by_meaning(tx, scope, vector, stamp, limit, np.array(also, np.int64),
                                        filters.choice(tx, scope, where)))

    def _by_words(self, tx: Tx, scope: Scope, words: Words, limit: int, choice: filters.Choice) -> Ranking:
        shelf = self._kept(self._words, scope.library_id, lambda: WordShelf(scope.library_id))
        with shelf.guard:
            shelf.catch_up(tx)
            return shelf.search(tx, words, limit, _within(tx, shelf, scope, choice))

    def _by_meaning(self, tx: Tx, scope: Scope, vector: Vector, stamp: str, limit: int, also: NDArray[np.int64],
                    choice: filters.Choice) -> Ranking:
        shelf = self._kept(self._vectors, (scope.library_id, stamp),
                           lambda: Shelf(scope.library_id, stamp, len(vector), FORMATS[tx.engine]))
        with shelf.guard:
            shelf.catch_up(tx)
            return shelf.nearest(vector, limit, also, _within(tx, shelf, scope, choice))

    def _kept(self, shelves: dict[K, S], key: K, make: Callable[[], S]) -> S:
        """From memory or anew; what was used longest ago is let go of."""
        with self._guard:
            shelf = shelves.pop(key, None) or make()
            shelves[key] = shelf
            while len(shelves) > SHELVES_KEPT:
                del shelves[next(iter(shelves))]
            return shelf


def put_terms(tx: Tx, library_id: str, item_id: str, title: str, sections: Sequence[tuple[int, Section]]) -> None:
    given = [(section_id, *packed(title, section)) for section_id, section in sections]
    tx.many("""INSERT INTO section_terms (library_id, item_id, section_id, length, terms, counts)
               VALUES (:library_id, :item_id, :section_id, :length, :terms, :counts)""",
            [{"library_id": library_id, "item_id": item_id, "section_id": section_id, "length": length, "terms": terms,
              "counts": counts} for section_id, terms, counts, _, length in given])
    tx.many("INSERT INTO sequences (section_id, sequence) VALUES (:section_id, :sequence)",
            [{"section_id": section_id, "sequence": sequence} for section_id, _, _, sequence, _ in given])


def read_words_anew(tx: Tx) -> None:
    """For databases that kept words in another way before."""
    of_section = itemgetter("library_id", "item_id", "title")
    for found in tx.lots("SELECT * FROM sections ORDER BY library_id, item_id, position", 1_000):
        for (library_id, item_id, title), group in groupby(found, of_section):
            put_terms(tx, library_id, item_id, title, [(row["id"], rows.section(row)) for row in group])


def _put_vectors(tx: Tx, stamp: str, vectors: Sequence[tuple[int, bytes]]) -> None:
    form = FORMATS[tx.engine]
    tx.many(form.put, [{"id": section_id, "stamp": stamp, "vector": form.value(vector)} for section_id, vector in vectors])


def _within(tx: Tx, shelf: Shelf | WordShelf, scope: Scope, choice: filters.Choice) -> Rows | None:
    """The rows that may be found, in order; None: all."""
    if choice.only is not None:
        return shelf.rows_of(_keys(choice.only))
    inside = shelf.within(scope.folders, lambda: _keys(filters.filed(tx, scope)))
    return shelf.without(inside, _keys(choice.but)) if choice.but else inside


def _keys(item_ids: Sequence[str]) -> NDArray[np.int64]:
    return np.array([item_key(item_id) for item_id in item_ids], np.int64)


def _listed(ranking: Ranking) -> list[Scored]:
    return list(map(Scored, ranking[0].tolist(), ranking[1].tolist()))
