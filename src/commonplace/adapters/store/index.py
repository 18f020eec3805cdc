"""Sections made searchable: written with their terms, found through what each process keeps of a library in memory."""

import json
import threading
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

from commonplace.adapters.store import changes, filters, rows
from commonplace.adapters.store.database import Tx
from commonplace.adapters.store.halves import FORMATS
from commonplace.adapters.store.shelf import Shelf
from commonplace.adapters.store.terms import packed
from commonplace.model import Item, ItemFilter, Scope, Section
from commonplace.ports import Matches, Question

SHELVES_KEPT = 64  # libraries that stay in memory

_SECTION = "library_id, item_id, position, title, heading, text, extra, word_count, key_points, locator"


class SectionIndex:
    """Methods with `tx` run inside the caller's transaction."""

    def __init__(self) -> None:
        self._shelves: dict[str, Shelf] = {}
        self._guard = threading.Lock()

    def insert(self, tx: Tx, item: Item, sections: Sequence[Section], stamp: str) -> None:
        """Write section rows (and the vectors they carry), searchable by keyword once committed."""
        tx.insert("sections", _SECTION, [
            (item.library_id, item.id, s.position, item.title, s.heading, s.text, s.extra, s.word_count,
             json.dumps(s.key_points, ensure_ascii=False), json.dumps(s.locator)) for s in sections])
        ids = {row["position"]: row["id"] for row in tx.all(
            "SELECT id, position FROM sections WHERE library_id = :library_id AND item_id = :item_id",
            library_id=item.library_id, item_id=item.id)}
        put_terms(tx, item.library_id, item.id, item.title, [(ids[s.position], s) for s in sections])
        form = FORMATS[tx.engine]
        tx.insert("vectors", f"library_id, item_id, section_id, stamp, {form.name}", [
            (item.library_id, item.id, ids[s.position], stamp, form.value(s.vector)) for s in sections if s.vector is not None])
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
        view, current = self._shelf(scope.library_id).view(tx, None if question.vector is None else question.stamp)
        return view.matches(tx, question, filters.pool(tx, view, scope, where or ItemFilter(), current))

    def _shelf(self, library_id: str) -> Shelf:
        """From memory or anew; what was used longest ago is let go of."""
        with self._guard:
            shelf = self._shelves.pop(library_id, None) or Shelf(library_id)
            self._shelves[library_id] = shelf
            while len(self._shelves) > SHELVES_KEPT:
                del self._shelves[next(iter(self._shelves))]
            return shelf


def put_terms(tx: Tx, library_id: str, item_id: str, title: str, sections: Sequence[tuple[int, Section]]) -> None:
    given = [(section_id, *packed(title, section)) for section_id, section in sections]
    tx.insert("section_terms", "library_id, item_id, section_id, length, terms, counts",
              [(library_id, item_id, section_id, length, terms, counts) for section_id, terms, counts, _, length in given])
    tx.insert("sequences", "section_id, sequence", [(section_id, sequence) for section_id, _, _, sequence, _ in given])


def read_words_anew(tx: Tx) -> None:
    """For databases that kept words in another way before."""
    of_section = itemgetter("library_id", "item_id", "title")
    for found in tx.lots("SELECT * FROM sections ORDER BY library_id, item_id, position", 1_000):
        for (library_id, item_id, title), group in groupby(found, of_section):
            put_terms(tx, library_id, item_id, title, [(row["id"], rows.section(row)) for row in group])


def _put_vectors(tx: Tx, stamp: str, vectors: Sequence[tuple[int, bytes]]) -> None:
    form = FORMATS[tx.engine]
    tx.many(form.put, [{"id": section_id, "stamp": stamp, "vector": form.value(vector)} for section_id, vector in vectors])
