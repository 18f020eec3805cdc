"""Sections made searchable: rows with their terms, and one index per library in memory."""

import threading
from collections.abc import Collection, Sequence
from itertools import islice

from commonplace.database import Database, Table, Tx, as_json
from commonplace.model import Item, ItemFilter, Scope, Section
from commonplace.ports import Matches, Question
from commonplace.search_index import change_log, checkpoint, filters, library_index
from commonplace.search_index.vectors import FORMATS
from commonplace.text.stems import pack_terms

LIBRARIES_KEPT = 64  # libraries that stay in memory
_LOT = 1_000  # sections that are written at once

_SECTION = (
    "library_id, item_id, position, title, heading, text, extra, word_count, key_points, locator"
)


class SectionIndex:
    """Methods with `tx` run inside the caller's transaction."""

    def __init__(self, checkpoints: checkpoint.Checkpoints) -> None:
        self._checkpoints = checkpoints
        self._libraries: dict[str, library_index.LibraryIndex] = {}
        self._guard = threading.Lock()

    def insert(self, tx: Tx, cut: Sequence[tuple[Item, Sequence[Section]]], stamp: str) -> None:
        """Insert the sections, and the vectors they carry, of items of one library."""
        each = ((item, section) for item, sections in cut for section in sections)
        while lot := list(islice(each, _LOT)):
            _insert(tx, lot, stamp)
        change_log.note(tx, [(item.library_id, item.id) for item, _ in cut])

    def remove(self, tx: Tx, library_id: str, item_id: str) -> None:
        tx.run(
            "DELETE FROM sections WHERE library_id = :library_id AND item_id = :item_id",
            library_id=library_id,
            item_id=item_id,
        )
        change_log.note(tx, [(library_id, item_id)])

    def refile(self, tx: Tx, library_id: str, item_id: str) -> None:
        """Record that the item's folders have changed."""
        change_log.note(tx, [(library_id, item_id)])

    def set_vectors(self, tx: Tx, stamp: str, vectors: Sequence[tuple[int, bytes]]) -> None:
        form = FORMATS[tx.engine]
        tx.many(
            form.put,
            [
                {"id": section_id, "stamp": stamp, "vector": form.value(vector)}
                for section_id, vector in vectors
            ],
        )
        given = tx.all(
            "SELECT DISTINCT library_id, item_id FROM sections WHERE id IN :ids",
            ids=[section_id for section_id, _ in vectors],
        )
        if given:
            change_log.note(tx, [(row["library_id"], row["item_id"]) for row in given])

    def vectors(
        self, tx: Tx, library_id: str, item_ids: Sequence[str]
    ) -> dict[int, tuple[str, bytes]]:
        """Return stamp and float16 bytes by section id."""
        form = FORMATS[tx.engine]
        return {
            row["section_id"]: (row["stamp"], form.matrix([row["vector"]]).tobytes())
            for row in tx.all(
                f"""SELECT section_id, stamp, {form.column} AS vector
                    FROM vectors
                    WHERE library_id = :library_id AND item_id IN :ids""",
                library_id=library_id,
                ids=list(item_ids),
            )
        }

    def matches(
        self, tx: Tx, scope: Scope, question: Question, where: ItemFilter | None
    ) -> Matches:
        snapshot, current = self._library(scope.library_id).snapshot(
            tx, None if question.vector is None else question.stamp
        )
        return snapshot.matches(
            tx, question, *filters.pools(tx, snapshot, scope, where or ItemFilter(), current)
        )

    def frequencies(
        self, tx: Tx, scope: Scope, terms: Collection[int]
    ) -> tuple[dict[int, int], int]:
        snapshot, current = self._library(scope.library_id).snapshot(tx, None)
        _, counted = filters.pools(tx, snapshot, scope, filters.SEARCHABLE, current)
        return snapshot.frequencies(terms, counted)

    def libraries(self) -> list[library_index.LibraryIndex]:
        with self._guard:
            return list(self._libraries.values())

    def forget(self, library_id: str) -> None:
        """Drop all that is kept of a deleted library."""
        with self._guard:
            self._libraries.pop(library_id, None)
        self._checkpoints.forget(library_id)

    def _library(self, library_id: str) -> library_index.LibraryIndex:
        """Return the index from memory, or a new one; drops those used longest ago."""
        with self._guard:
            library = self._libraries.pop(library_id, None) or library_index.LibraryIndex(
                library_id, self._checkpoints
            )
            self._libraries[library_id] = library
            while len(self._libraries) > LIBRARIES_KEPT:
                del self._libraries[next(iter(self._libraries))]
            return library


class IndexedTable(Table):
    """A part of the store whose writes keep the search index up to date."""

    def __init__(self, db: Database, index: SectionIndex) -> None:
        super().__init__(db)
        self._index = index


def _insert(tx: Tx, lot: Sequence[tuple[Item, Section]], stamp: str) -> None:
    tx.insert(
        "sections",
        _SECTION,
        [
            (
                item.library_id,
                item.id,
                s.position,
                item.title,
                s.heading,
                s.text,
                s.extra,
                s.word_count,
                as_json(s.key_points),
                as_json(s.locator),
            )
            for item, s in lot
        ],
    )
    positions = [s.position for _, s in lot]
    ids = {
        (row["item_id"], row["position"]): row["id"]
        for row in tx.all(
            """SELECT id, item_id, position
               FROM sections
               WHERE library_id = :library_id AND item_id IN :ids
               AND position BETWEEN :low AND :high""",
            library_id=lot[0][0].library_id,
            low=min(positions),
            high=max(positions),
            ids=list({item.id for item, _ in lot}),
        )
    }
    written = [(item, ids[item.id, s.position], s) for item, s in lot]
    given = [
        (item.library_id, item.id, section_id, *pack_terms(item.title, s))
        for item, section_id, s in written
    ]
    tx.insert(
        "section_terms",
        "library_id, item_id, section_id, length, terms, counts",
        [(*of_section, length, terms, counts) for *of_section, terms, counts, _, length in given],
    )
    tx.insert(
        "sequences",
        "section_id, sequence",
        [(section_id, sequence) for _, _, section_id, _, _, sequence, _ in given],
    )
    form = FORMATS[tx.engine]
    tx.insert(
        "vectors",
        f"library_id, item_id, section_id, stamp, {form.name}",
        [
            (item.library_id, item.id, section_id, stamp, form.value(s.vector))
            for item, section_id, s in written
            if s.vector is not None
        ],
    )
