"""The index of Postgres: tables beside `sections`, written in the same transactions."""

from collections.abc import Callable, Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from commonplace.database import Database, Tx, usage
from commonplace.model import Item, ItemFilter, Scope, Section
from commonplace.ports import Matches, Question
from commonplace.search_index.index import SectionIndex, Written
from commonplace.search_index.postgres import counts, encoding, large_libraries, plans
from commonplace.search_index.postgres.counts import Change
from commonplace.text.stems import pack_terms


class PostgresIndex(SectionIndex):
    vector_column = "halfvec_send(v.embedding)"
    terms_column = "sparsevec_send(w.weights)"
    terms_join = """JOIN section_words AS w ON w.library_id = s.library_id
                    AND w.item_id = s.item_id::uuid AND w.section_id = s.id"""

    def __init__(self, enqueue: Callable[[Tx, str], None]) -> None:
        """`enqueue` queues the job that makes and drops the indexes of a large library."""
        self._enqueue = enqueue

    def insert(self, tx: Tx, cut: Sequence[tuple[Item, Sequence[Section]]], stamp: str) -> None:
        super().insert(tx, cut, stamp)
        self._note(tx, [Change(item.library_id, item.id) for item, sections in cut if not sections])

    def replace(self, tx: Tx, item: Item, sections: Sequence[Section], stamp: str) -> None:
        self._delete(tx, item.library_id, item.id)
        self.insert(tx, [(item, sections)], stamp)

    def remove(self, tx: Tx, library_id: str, item_id: str) -> None:
        key = {"library_id": library_id, "item_id": item_id}
        # Nobody can file it any more, so that its folders are those that lose its sections.
        tx.one(
            "SELECT 1 FROM items WHERE library_id = :library_id AND id = :item_id FOR UPDATE", **key
        )
        folders = tx.column(
            """SELECT folder_id FROM folder_items
               WHERE library_id = :library_id AND item_id = :item_id""",
            **key,
        )
        self._delete(tx, library_id, item_id, tuple(folders))

    def refile(
        self,
        tx: Tx,
        library_id: str,
        item_id: str,
        *,
        added: Collection[str] = (),
        left: Collection[str] = (),
    ) -> None:
        change = Change(library_id, item_id, filed=frozenset(added), left=frozenset(left))
        self._note(tx, [change])

    def drop_folder(self, tx: Tx, library_id: str, folder_id: str, item_ids: Sequence[str]) -> None:
        self._note(tx, [Change(library_id, dropped=folder_id)])

    def set_vectors(
        self, tx: Tx, library_id: str, stamp: str, vectors: Sequence[tuple[int, bytes]]
    ) -> None:
        items = dict(
            tx.tuples(
                """SELECT id, item_id FROM sections WHERE library_id = :library_id AND id IN :ids
                   ORDER BY id FOR KEY SHARE""",
                library_id=library_id,
                ids=[section_id for section_id, _ in vectors],
            )
        )
        tx.many(
            """INSERT INTO vectors (library_id, item_id, section_id, stamp, embedding)
               VALUES (:library_id, :item_id, :id, :stamp, :vector)
               ON CONFLICT (library_id, item_id, section_id) DO UPDATE
               SET stamp = excluded.stamp, embedding = excluded.embedding""",
            [
                {
                    "library_id": library_id,
                    "item_id": items[section_id],
                    "id": section_id,
                    "stamp": stamp,
                    "vector": encoding.halfvec(vector),
                }
                for section_id, vector in vectors
                if section_id in items
            ],
        )
        if items:
            self._note(tx, [Change(library_id, stamp=stamp)])

    def matches(
        self, tx: Tx, scope: Scope, question: Question, where: ItemFilter | None
    ) -> Matches:
        return plans.matches(tx, scope, question, where or ItemFilter())

    def with_vectors(self, found: Matches) -> Matches:
        known = np.flatnonzero(~np.isnan(found.cosines))
        if found.vectors is None or not len(known):
            return found
        loaded = found.vectors(known)
        return found._replace(vectors=lambda chosen: loaded[known.searchsorted(chosen)])

    def frequencies(
        self, tx: Tx, scope: Scope, terms: Collection[int]
    ) -> tuple[dict[int, int], int]:
        return plans.frequencies(tx, scope, terms)

    def decode_vectors(self, read: Sequence[bytes]) -> NDArray[np.float16]:
        return encoding.halves(read)

    def decode_terms(self, read: Sequence[bytes]) -> NDArray[np.uint32]:
        each = [encoding.terms(weights) for weights in read]
        return np.concatenate(each).astype(np.uint32) if each else np.empty(0, np.uint32)

    def changes(self, tx: Tx, library_id: str) -> int | None:
        found: int | None = tx.scalar(
            """SELECT changes FROM scope_sizes
               WHERE library_id = :library_id AND folder_id = :whole""",
            library_id=library_id,
            whole=counts.WHOLE,
        )
        return found

    def other_stamp(self, tx: Tx, library_id: str, stamp: str) -> bool:
        # Two ranges of an index: of a million vectors with this stamp, none is read.
        ranges = (
            f"""(SELECT 1 FROM vectors
                 WHERE library_id = :library_id AND stamp {side} :stamp LIMIT 1)"""
            for side in "<>"
        )
        found = tx.one(" UNION ALL ".join(ranges), library_id=library_id, stamp=stamp)
        return found is not None

    async def maintain(self, db: Database, library_id: str, stamp: str) -> None:
        await large_libraries.maintain(db, library_id, stamp)

    def clear(self, tx: Tx) -> None:
        for table in ("scope_sizes", "term_counts"):
            tx.run(f"DELETE FROM {table}")

    def drop_library(self, tx: Tx, library_id: str) -> None:
        for table in ("scope_sizes", "term_counts"):
            tx.run(f"DELETE FROM {table} WHERE library_id = :id", id=library_id)

    def forget(self, library_id: str) -> None:
        """Nothing is kept."""

    def _insert_terms(self, tx: Tx, written: Sequence[Written], stamp: str) -> None:
        library_id = written[0][0].library_id
        keyed = bool(
            tx.scalar(
                """SELECT keyed FROM scope_sizes
                   WHERE library_id = :library_id AND folder_id = :whole""",
                library_id=library_id,
                whole=counts.WHOLE,
            )
        )
        words, sequences, vectors = [], [], []
        added: dict[str, list[counts.Terms]] = {}
        for item, section_id, section in written:
            terms, counted, sequence, length = pack_terms(item.title, section)
            weights, numbers = encoding.section_weights(terms, counted, length)
            keys = encoding.keys(library_id, numbers.tolist()) if keyed else None
            words.append((library_id, encoding.uuid(item.id), section_id, weights, keys))
            sequences.append((library_id, item.id, section_id, sequence))
            added.setdefault(item.id, []).append(numbers)
            if section.vector is not None:
                vector = encoding.halfvec(section.vector)
                vectors.append((library_id, item.id, section_id, stamp, vector))
        of_section = "library_id, item_id, section_id"
        tx.insert("section_words", f"{of_section}, weights, keys", words)
        tx.insert("sequences", f"{of_section}, sequence", sequences)
        tx.insert("vectors", f"{of_section}, stamp, embedding", vectors)
        self._note(
            tx,
            [
                Change(
                    library_id,
                    item_id,
                    added=tuple(terms),
                    keyed=keyed,
                    stamp=stamp if vectors else "",
                )
                for item_id, terms in added.items()
            ],
        )

    def _delete(self, tx: Tx, library_id: str, item_id: str, folders: tuple[str, ...] = ()) -> None:
        """Delete the sections of an item; `folders` that it is in, if it is deleted too."""
        key = {"library_id": library_id, "item_id": item_id}
        # First: a vector that is set meanwhile waits for the section, and is deleted below.
        gone = tx.run(
            "DELETE FROM sections WHERE library_id = :library_id AND item_id = :item_id", **key
        )
        usage.record(tx, library_id, sections=-gone)
        for table in ("sequences", "vectors"):
            tx.run(
                f"DELETE FROM {table} WHERE library_id = :library_id AND item_id = :item_id", **key
            )
        removed = tx.column(
            """DELETE FROM section_words WHERE library_id = :library_id AND item_id = :item_id
               RETURNING CASE WHEN (SELECT s.counted FROM scope_sizes AS s
                                    WHERE s.library_id = :library_id AND s.folder_id = :whole)
                         THEN sparsevec_send(weights) END""",
            whole=counts.WHOLE,
            **key,
        )
        known = [encoding.terms(weights) for weights in removed if weights is not None]
        terms = np.concatenate(known) if known and len(known) == len(removed) else None
        self._note(
            tx,
            [Change(library_id, item_id, removed=len(removed), removed_terms=terms, had=folders)],
        )

    def _note(self, tx: Tx, changes: Sequence[Change]) -> None:
        for change in changes:
            tx.defer(self._settle, change)

    def _settle(self, tx: Tx, changes: list[Change]) -> None:
        counts.settle(tx, changes, self._enqueue)
