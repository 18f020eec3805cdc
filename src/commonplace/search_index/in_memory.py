"""The index of SQLite: each library's words and vectors in memory, following the rows."""

import threading
from collections.abc import Collection, Sequence

import numpy as np

from commonplace.database import Database, Tx, usage
from commonplace.model import Item, ItemFilter, Scope, Section
from commonplace.ports import Matches, Question
from commonplace.search_index import change_log, checkpoint, filters, library_index
from commonplace.search_index.index import SectionIndex, Written
from commonplace.search_index.vectors import HalfMatrix, halves
from commonplace.text.stems import pack_terms

LIBRARIES_KEPT = 64  # libraries that stay in memory


class InMemoryIndex(SectionIndex):
    vector_column = "v.vector"
    terms_column = "w.terms"
    terms_join = """JOIN section_terms AS w ON w.library_id = s.library_id
                    AND w.item_id = s.item_id AND w.section_id = s.id"""

    def __init__(self, checkpoints: checkpoint.Checkpoints) -> None:
        self._checkpoints = checkpoints
        self._libraries: dict[str, library_index.LibraryIndex] = {}
        self._guard = threading.Lock()

    def insert(self, tx: Tx, cut: Sequence[tuple[Item, Sequence[Section]]], stamp: str) -> None:
        super().insert(tx, cut, stamp)
        change_log.note(tx, [(item.library_id, item.id) for item, _ in cut])

    def remove(self, tx: Tx, library_id: str, item_id: str) -> None:
        removed = tx.run(
            "DELETE FROM sections WHERE library_id = :library_id AND item_id = :item_id",
            library_id=library_id,
            item_id=item_id,
        )
        usage.record(tx, library_id, sections=-removed)
        change_log.note(tx, [(library_id, item_id)])

    def refile(
        self,
        tx: Tx,
        library_id: str,
        item_id: str,
        *,
        added: Collection[str] = (),
        left: Collection[str] = (),
    ) -> None:
        change_log.note(tx, [(library_id, item_id)])

    def drop_folder(self, tx: Tx, library_id: str, folder_id: str, item_ids: Sequence[str]) -> None:
        if item_ids:
            change_log.note(tx, [(library_id, item_id) for item_id in item_ids])

    def set_vectors(
        self, tx: Tx, library_id: str, stamp: str, vectors: Sequence[tuple[int, bytes]]
    ) -> None:
        tx.many(
            """INSERT INTO vectors (library_id, item_id, section_id, stamp, vector)
               SELECT library_id, item_id, id, :stamp, :vector FROM sections
               WHERE id = :id AND library_id = :library_id
               ON CONFLICT (library_id, item_id, section_id) DO UPDATE
               SET stamp = excluded.stamp, vector = excluded.vector""",
            [
                {"library_id": library_id, "id": section_id, "stamp": stamp, "vector": vector}
                for section_id, vector in vectors
            ],
        )
        given = tx.column(
            """SELECT DISTINCT item_id FROM sections
               WHERE id IN :ids AND library_id = :library_id""",
            library_id=library_id,
            ids=[section_id for section_id, _ in vectors],
        )
        if given:
            change_log.note(tx, [(library_id, item_id) for item_id in given])

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

    def changes(self, tx: Tx, library_id: str) -> int | None:
        found: int | None = tx.scalar(
            "SELECT max(seq) FROM changes WHERE library_id = :library_id", library_id=library_id
        )
        return found

    def other_stamp(self, tx: Tx, library_id: str, stamp: str) -> bool:
        return (
            tx.one(
                "SELECT 1 FROM vectors WHERE library_id = :library_id AND stamp <> :stamp LIMIT 1",
                library_id=library_id,
                stamp=stamp,
            )
            is not None
        )

    async def maintain(self, db: Database, library_id: str, stamp: str) -> None:
        """Libraries of all sizes are searched alike."""

    def clear(self, tx: Tx) -> None:
        tx.run("DELETE FROM checkpoints")

    def decode_vectors(self, read: Sequence[bytes]) -> HalfMatrix:
        return halves(read)

    def decode_terms(self, read: Sequence[bytes]) -> np.ndarray:
        return np.frombuffer(b"".join(read), np.uint32)

    def libraries(self) -> list[library_index.LibraryIndex]:
        with self._guard:
            return list(self._libraries.values())

    def drop_library(self, tx: Tx, library_id: str) -> None:
        change_log.drop_library(tx, library_id)

    def forget(self, library_id: str) -> None:
        with self._guard:
            self._libraries.pop(library_id, None)
        self._checkpoints.forget(library_id)

    def _insert_terms(self, tx: Tx, written: Sequence[Written], stamp: str) -> None:
        given = [
            (item.library_id, item.id, section_id, *pack_terms(item.title, section))
            for item, section_id, section in written
        ]
        tx.insert(
            "section_terms",
            "library_id, item_id, section_id, length, terms, counts",
            [
                (*of_section, length, terms, counts)
                for *of_section, terms, counts, _, length in given
            ],
        )
        tx.insert(
            "sequences",
            "section_id, sequence",
            [(section_id, sequence) for _, _, section_id, _, _, sequence, _ in given],
        )
        tx.insert(
            "vectors",
            "library_id, item_id, section_id, stamp, vector",
            [
                (item.library_id, item.id, section_id, stamp, section.vector)
                for item, section_id, section in written
                if section.vector is not None
            ],
        )

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
