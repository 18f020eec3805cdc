"""What both engines' search indexes do: keep sections searchable, and search them.

On SQLite the index is in memory, on Postgres in tables. Methods with `tx` run inside the caller's
transaction.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from commonplace.database import Database, Table, Tx, as_json, usage
from commonplace.model import Item, ItemFilter, Scope, Section
from commonplace.ports import Matches, Question

_LOT = 1_000  # sections that are written at once
_SECTION = (
    "library_id, item_id, position, title, heading, text, extra, word_count, key_points, locator"
)
_INSERT_ONE = f"""INSERT INTO sections ({_SECTION})
                  VALUES ({", ".join(f":{name}" for name in _SECTION.split(", "))}) RETURNING id"""

Written = tuple[Item, int, Section]  # with the section's id


class SectionIndex(ABC):
    vector_column: str  # of `vectors AS v`, for decode_vectors
    terms_column: str  # of the table that terms_join joins to `sections AS s`, for decode_terms
    terms_join: str

    def insert(self, tx: Tx, cut: Sequence[tuple[Item, Sequence[Section]]], stamp: str) -> None:
        """Insert the sections, and the vectors they carry, of items of one library."""
        for item, sections in cut:
            usage.record(tx, item.library_id, sections=len(sections))
        each = ((item, section) for item, sections in cut for section in sections)
        while lot := list(islice(each, _LOT)):
            self._insert_terms(tx, _insert(tx, lot), stamp)

    def replace(self, tx: Tx, item: Item, sections: Sequence[Section], stamp: str) -> None:
        """Give an item other sections."""
        self.remove(tx, item.library_id, item.id)
        self.insert(tx, [(item, sections)], stamp)

    @abstractmethod
    def remove(self, tx: Tx, library_id: str, item_id: str) -> None:
        """Delete the sections of an item, before the item itself if that is deleted too."""

    @abstractmethod
    def refile(
        self,
        tx: Tx,
        library_id: str,
        item_id: str,
        *,
        added: Collection[str] = (),
        left: Collection[str] = (),
    ) -> None:
        """Record the folders that the item was put into and taken out of."""

    @abstractmethod
    def drop_folder(self, tx: Tx, library_id: str, folder_id: str, item_ids: Sequence[str]) -> None:
        """Record that a folder with these items was deleted."""

    @abstractmethod
    def set_vectors(
        self, tx: Tx, library_id: str, stamp: str, vectors: Sequence[tuple[int, bytes]]
    ) -> None:
        """Store a library's float16 vectors by section id; deleted sections are passed over."""

    def vectors(
        self, tx: Tx, library_id: str, item_ids: Sequence[str]
    ) -> dict[int, tuple[str, bytes]]:
        """Return stamp and float16 bytes by section id."""
        return {
            row["section_id"]: (row["stamp"], self.decode_vectors([row["vector"]]).tobytes())
            for row in tx.all(
                f"""SELECT v.section_id, v.stamp, {self.vector_column} AS vector
                    FROM vectors AS v WHERE v.library_id = :library_id AND v.item_id IN :ids""",
                library_id=library_id,
                ids=list(item_ids),
            )
        }

    @abstractmethod
    def matches(
        self, tx: Tx, scope: Scope, question: Question, where: ItemFilter | None
    ) -> Matches:
        """Return the best sections of both kinds of search, in no order, each with both scores."""

    def with_vectors(self, found: Matches) -> Matches:
        """Return matches whose vectors can be read after the transaction, too."""
        return found

    @abstractmethod
    def frequencies(
        self, tx: Tx, scope: Scope, terms: Collection[int]
    ) -> tuple[dict[int, int], int]:
        """Return how many sections that the scope may search have each term, and how many there
        are."""

    @abstractmethod
    def decode_vectors(self, read: Sequence[bytes]) -> NDArray[np.float16]:
        """Return a matrix of vectors of one length."""

    @abstractmethod
    def decode_terms(self, read: Sequence[bytes]) -> NDArray[np.uint32]:
        """Return all terms, some twice."""

    @abstractmethod
    def changes(self, tx: Tx, library_id: str) -> int | None:
        """Return a number that changes with the library's sections, vectors and folders."""

    @abstractmethod
    def other_stamp(self, tx: Tx, library_id: str, stamp: str) -> bool:
        """Return whether another embedder made any vector of a library."""

    @abstractmethod
    async def maintain(self, db: Database, library_id: str, stamp: str) -> None:
        """Make or drop what the size of a library asks for. `stamp`: of the embedder in use."""

    @abstractmethod
    def clear(self, tx: Tx) -> None:
        """Forget all libraries, whose items are deleted."""

    @abstractmethod
    def drop_library(self, tx: Tx, library_id: str) -> None:
        """Delete what the index's tables keep of a library that has no items."""

    @abstractmethod
    def forget(self, library_id: str) -> None:
        """Drop all that is kept outside of the database of a deleted library."""

    @abstractmethod
    def _insert_terms(self, tx: Tx, written: Sequence[Written], stamp: str) -> None: ...


class IndexedTable(Table):
    """A part of the store whose writes keep the search index up to date."""

    def __init__(self, db: Database, index: SectionIndex) -> None:
        super().__init__(db)
        self._index = index


def _insert(tx: Tx, lot: Sequence[tuple[Item, Section]]) -> list[Written]:
    values = [
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
    ]
    if len(lot) == 1:
        named = dict(zip(_SECTION.split(", "), values[0], strict=True))
        return [(lot[0][0], tx.scalar(_INSERT_ONE, **named), lot[0][1])]
    tx.insert("sections", _SECTION, values)
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
    return [(item, ids[item.id, s.position], s) for item, s in lot]
