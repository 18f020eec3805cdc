"""Sections: read them, search them, and store their vectors."""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commonplace.database import Tx, reads, scope_sql, writes
from commonplace.database.columns import from_micros
from commonplace.model import (
    Content,
    Dated,
    Item,
    ItemFilter,
    Passage,
    Scope,
    Scored,
    Section,
    Words,
)
from commonplace.ports import Matches, Profile, Question, Vector
from commonplace.search_index.index import IndexedTable
from commonplace.store import rows, sources

_CHUNK = 1000
PROFILED, WORDED = 16, 4  # first sections of an item whose vectors, and words, its profile has
COMPARED = 8  # sections compared for each item that is wanted
# CROSS JOIN and || '': SQLite then starts from the few sections, not from all of the library.
_PASSAGE = """SELECT s.id, s.item_id, i.public_id, i.entity_type, i.title, i.url, s.position,
                     s.heading, s.text, s.word_count, s.key_points, s.locator, i.status,
                     i.visibility, i.category, i.tags, i.auto_tags, i.metadata, i.created_at,
                     i.origin, {added_by},
                     i.valid_until, i.review_by
              FROM sections AS s CROSS JOIN items AS i
              WHERE s.library_id = :library_id AND i.library_id = s.library_id || ''
              AND i.id = s.item_id"""
_ADDED_BY = (
    "(SELECT t.name FROM tokens AS t WHERE t.library_id = i.library_id AND t.id = i.created_by)"
)
_VECTORS = """JOIN vectors AS v ON v.library_id = s.library_id AND v.item_id = s.item_id
              AND v.section_id = s.id AND v.stamp = :stamp"""


class Lacking(NamedTuple):
    """A section without a vector."""

    library_id: str
    item_id: str
    title: str
    section_id: int
    section: Section


class Sections(IndexedTable):
    async def of_item(self, item: Item) -> list[Section]:
        return (await self.of_items([item])).get(item.id, [])

    @reads
    def of_items(self, tx: Tx, items: Sequence[Item]) -> dict[str, list[Section]]:
        """Return the sections of items of one library, by item id; items without any are left
        out."""
        if not items:
            return {}
        return {
            item_id: list(map(rows.section, group))
            for item_id, group in groupby(
                tx.all(
                    """SELECT * FROM sections WHERE library_id = :library_id AND item_id IN :ids
                       ORDER BY item_id, position""",
                    library_id=items[0].library_id,
                    ids=[item.id for item in items],
                ),
                itemgetter("item_id"),
            )
        }

    @reads
    def of_content(
        self, tx: Tx, library_id: str, content: Content, title: str, stamp: str
    ) -> list[Section]:
        """Return sections with vectors of this stamp, of an item with this content and title, in
        the library or, if the source is public, in one of those that have it.

        Items with notes are passed over: their notes are in their sections too.
        """
        others = sources.copies(tx, content.key, content.id) if content.shared else []
        owner = tx.one(
            f"""SELECT i.library_id, i.id FROM items AS i
                WHERE i.library_id IN :libraries AND i.content_id = :content_id
                AND i.title = :title AND i.in_kb = 1
                AND instr(i.metadata, '"notes"') = 0 AND NOT EXISTS (
                    SELECT 1 FROM sections AS s LEFT {_VECTORS}
                    WHERE s.library_id = i.library_id AND s.item_id = i.id
                    AND v.section_id IS NULL)
                LIMIT 1""",
            libraries=[library_id, *others],
            content_id=content.id,
            title=title,
            stamp=stamp,
        )
        if owner is None:
            return []
        vectors = self._index.vectors(tx, owner["library_id"], [owner["id"]])
        return [
            rows.section(row, vectors[row["id"]][1])
            for row in tx.all(
                """SELECT * FROM sections WHERE library_id = :library_id AND item_id = :id
                   ORDER BY position""",
                **owner,
            )
        ]

    async def keyword(
        self, scope: Scope, words: Words, limit: int, where: ItemFilter | None = None
    ) -> list[Scored]:
        """Return the best sections by words. Scores are above 0 and compare within one answer."""
        found = await self._matches(scope, Question(words, None, "", limit), where)
        return _best_first(found.ids, found.keyword)[:limit]

    async def nearest(
        self, scope: Scope, vector: Vector, stamp: str, limit: int, where: ItemFilter | None = None
    ) -> list[Scored]:
        """Return the best sections by cosine similarity."""
        found = await self._matches(scope, Question(None, vector, stamp, limit), where)
        return _by_cosine(found)[:limit]

    @reads
    def nearest_to_each(
        self,
        tx: Tx,
        scope: Scope,
        vectors: Sequence[Vector],
        stamp: str,
        limit: int,
        where: ItemFilter | None = None,
    ) -> list[list[Scored]]:
        """Return the nearest sections of several vectors, from one snapshot."""
        found = (
            self._index.matches(tx, scope, Question(None, vector, stamp, limit), where)
            for vector in vectors
        )
        return [_by_cosine(near)[:limit] for near in found]

    @reads
    def matches(
        self, tx: Tx, scope: Scope, question: Question, where: ItemFilter | None = None
    ) -> Matches:
        """Return the best sections of both kinds of search, in no order, each with both scores."""
        found = self._index.matches(tx, scope, question, where)
        return self._index.with_vectors(found)

    @reads
    def _matches(
        self, tx: Tx, scope: Scope, question: Question, where: ItemFilter | None
    ) -> Matches:
        """Return matches without vectors."""
        return self._index.matches(tx, scope, question, where)

    @reads
    def frequencies(
        self, tx: Tx, scope: Scope, terms: Collection[int]
    ) -> tuple[dict[int, int], int]:
        """Return how many sections that the scope may search have each term, and how many there
        are."""
        return self._index.frequencies(tx, scope, terms)

    @reads
    def search(
        self,
        tx: Tx,
        scope: Scope,
        question: Question,
        choose: Callable[[Matches], list[Scored]],
        limit: int,
        where: ItemFilter | None = None,
    ) -> list[tuple[float, Passage]]:
        """Return the first `limit` passages in the order of `choose`, from one snapshot."""
        chosen = choose(self._index.matches(tx, scope, question, where))
        found: list[tuple[float, Passage]] = []
        while chosen and len(found) < limit:  # another process may have just deleted some
            missing = limit - len(found)
            next_best, chosen = chosen[:missing], chosen[missing:]
            loaded = {p.section_id: p for p in _passages(tx, scope, [id for id, _ in next_best])}
            found += [(score, loaded[id]) for id, score in next_best if id in loaded]
        return found

    @reads
    def passages(self, tx: Tx, scope: Scope, section_ids: Sequence[int]) -> list[Passage]:
        """Return passages in any order; those out of scope or deleted are left out."""
        return _passages(tx, scope, section_ids)

    @reads
    def dates(self, tx: Tx, scope: Scope, section_ids: Sequence[int]) -> list[Dated]:
        """Return the dates of sections in any order; those out of scope or deleted are left out."""
        return [
            Dated(
                section_id,
                title,
                from_micros(added),
                None if published is None else from_micros(published),
            )
            for section_id, title, added, published in tx.tuples(
                _by_id(
                    tx,
                    f"""SELECT s.id, i.title, i.created_at, i.published_at
                        FROM sections AS s CROSS JOIN items AS i
                        WHERE s.library_id = :library_id AND i.library_id = s.library_id || ''
                        AND i.id = s.item_id AND s.id IN :ids AND {scope_sql.visible(scope)}""",
                ),
                ids=list(section_ids),
                **scope_sql.within(scope),
            )
        ]

    @reads
    def first_passages(
        self, tx: Tx, scope: Scope, item_ids: Sequence[str], where: ItemFilter | None = None
    ) -> list[Passage]:
        """Return the first passage of each item, in any order."""
        matching, values = scope_sql.matching(where or ItemFilter())
        return [
            rows.passage(row)
            for row in tx.tuples(
                f"""{_passage(scope)} AND s.item_id IN :ids
                    AND s.position = 0 AND {scope_sql.visible(scope)} AND {matching}""",
                ids=list(item_ids),
                **scope_sql.within(scope),
                **values,
            )
        ]

    @reads
    def first_vectors(
        self, tx: Tx, scope: Scope, item_ids: Sequence[str], stamp: str
    ) -> tuple[list[str], NDArray[np.float32]]:
        """Return the ids of items whose first passage has a vector of this stamp, and a matrix
        with a row for each."""
        found = tx.tuples(
            f"""SELECT s.item_id, {self._index.vector_column} FROM sections AS s
                JOIN items AS i ON i.library_id = s.library_id AND i.id = s.item_id
                {_VECTORS}
                WHERE s.library_id = :library_id AND s.item_id IN :ids AND s.position = 0
                AND {scope_sql.visible(scope)} ORDER BY s.item_id""",
            ids=list(item_ids),
            stamp=stamp,
            **scope_sql.within(scope),
        )
        if not found:
            return [], np.zeros((0, 1), np.float32)
        matrix = self._index.decode_vectors([vector for _, vector in found])
        return [item_id for item_id, _ in found], matrix.astype(np.float32)

    @reads
    def nearest_items(
        self,
        tx: Tx,
        scope: Scope,
        vectors: Sequence[Vector],
        stamp: str,
        limit: int,
        where: ItemFilter | None = None,
    ) -> list[str]:
        """Return the items whose best sections are nearest to any of the vectors, best first."""
        cosines: dict[int, float] = {}
        for vector in vectors:
            question = Question(None, vector, stamp, COMPARED * limit)
            for found in _by_cosine(self._index.matches(tx, scope, question, where)):
                cosines[found.section_id] = max(found.score, cosines.get(found.section_id, -1.0))
        best: dict[str, float] = {}
        for section_id, item_id in tx.tuples(
            _by_id(
                tx,
                """SELECT s.id, s.item_id FROM sections AS s
                   WHERE s.library_id = :library_id AND s.id IN :ids""",
            ),
            library_id=scope.library_id,
            ids=list(cosines),
        ):
            best[item_id] = max(cosines[section_id], best.get(item_id, -1.0))
        return sorted(best, key=lambda item_id: (-best[item_id], item_id))[:limit]

    @reads
    def profiles(self, tx: Tx, scope: Scope, item_ids: Sequence[str], stamp: str) -> list[Profile]:
        """Return the profiles of items that have vectors of this stamp, by id."""
        index = self._index
        found = tx.tuples(
            f"""SELECT i.id, i.public_id, i.title, i.entity_type, s.position, {index.terms_column},
                       {index.vector_column}
                FROM sections AS s
                JOIN items AS i ON i.library_id = s.library_id AND i.id = s.item_id
                {index.terms_join}
                {_VECTORS}
                WHERE s.library_id = :library_id AND s.item_id IN :ids AND s.position < :sections
                AND {scope_sql.visible(scope)} ORDER BY i.id, s.position""",
            ids=list(item_ids),
            stamp=stamp,
            sections=PROFILED,
            **scope_sql.within(scope),
        )
        profiles = list[Profile]()
        for _, group in groupby(found, itemgetter(0)):
            own = list(group)
            item_id, public_id, title, entity_type, *_ = own[0]
            vectors = index.decode_vectors([row[6] for row in own]).astype(np.float32)
            mean = vectors.mean(axis=0)
            terms = index.decode_terms([row[5] for row in own if row[4] < WORDED])
            profiles.append(
                Profile(
                    item_id,
                    public_id,
                    title,
                    entity_type,
                    vectors[0],
                    mean / max(float(np.linalg.norm(mean)), 1e-9),
                    np.unique(terms),
                )
            )
        return profiles

    @reads
    def without_vectors(
        self, tx: Tx, items: Mapping[str, Sequence[str]], stamp: str, limit: int = 100_000
    ) -> list[Lacking]:
        """Return the sections without a vector of this stamp of each library's items, by item and
        position."""
        found: list[Lacking] = []
        for library_id, item_ids in items.items():
            for start in range(0, len(item_ids), _CHUNK):
                found += [
                    Lacking(library_id, row["item_id"], row["title"], row["id"], rows.section(row))
                    for row in tx.all(
                        f"""SELECT s.* FROM items AS i
                            JOIN sections AS s ON s.library_id = i.library_id AND s.item_id = i.id
                            LEFT {_VECTORS}
                            WHERE i.library_id = :library_id AND i.id IN :ids
                            AND v.section_id IS NULL
                            ORDER BY s.item_id, s.position LIMIT :limit""",
                        library_id=library_id,
                        ids=list(item_ids[start : start + _CHUNK]),
                        stamp=stamp,
                        limit=limit - len(found),
                    )
                ]
        return found

    @writes
    def set_vectors(
        self, tx: Tx, stamp: str, vectors: Mapping[str, Sequence[tuple[int, bytes]]]
    ) -> None:
        """Store each library's float16 vectors by section id; deleted sections are passed over."""
        for library_id in sorted(vectors):
            self._index.set_vectors(tx, library_id, stamp, vectors[library_id])

    async def maintain(self, library_id: str, stamp: str) -> None:
        """Make or drop the indexes that the size of a library asks for."""
        await self._index.maintain(self._db, library_id, stamp)

    @reads
    def coverage(self, tx: Tx, scope: Scope, stamp: str) -> tuple[int, int]:
        """Return how many sections have a vector of this stamp, and how many there are."""
        [(done, total)] = tx.tuples(
            f"""SELECT count(v.section_id), count(*) FROM sections AS s
                JOIN items AS i ON i.library_id = s.library_id AND i.id = s.item_id
                LEFT {_VECTORS} WHERE {scope_sql.visible(scope)}""",
            stamp=stamp,
            **scope_sql.within(scope),
        )
        return done, total

    @reads
    def has_other_stamp(self, tx: Tx, stamp: str, scope: Scope) -> bool:
        """Return whether another embedder made any vector that the scope sees."""
        if not self._index.other_stamp(tx, scope.library_id, stamp):
            return False
        found = tx.one(
            f"""SELECT 1 FROM vectors AS v WHERE v.library_id = :library_id AND v.stamp <> :stamp
                AND EXISTS (SELECT 1 FROM items AS i WHERE i.id = v.item_id
                            AND {scope_sql.visible(scope)}) LIMIT 1""",
            stamp=stamp,
            **scope_sql.within(scope),
        )
        return found is not None


def _passage(scope: Scope) -> str:
    """Only a scope that sees the whole library sees the names of other tokens."""
    sees_tokens = scope.folders is None and not scope.kb_only
    return _PASSAGE.replace("{added_by}", _ADDED_BY if sees_tokens else "NULL")


def _by_id(tx: Tx, sql: str) -> str:
    """Have SQLite find sections by their ids, not among all of their library: its planner takes an
    index of libraries for selective."""
    return sql.replace("s.library_id =", "+s.library_id =") if tx.engine == "sqlite" else sql


def _passages(tx: Tx, scope: Scope, section_ids: Sequence[int]) -> list[Passage]:
    return [
        rows.passage(row)
        for row in tx.tuples(
            _by_id(tx, f"{_passage(scope)} AND s.id IN :ids AND {scope_sql.visible(scope)}"),
            ids=list(section_ids),
            **scope_sql.within(scope),
        )
    ]


def _by_cosine(found: Matches) -> list[Scored]:
    return _best_first(found.ids, found.cosines)


def _best_first(ids: NDArray[np.int64], scores: NDArray[np.float32]) -> list[Scored]:
    order = np.lexsort((ids, -scores))
    return list(map(Scored, ids[order].tolist(), scores[order].tolist()))
