"""Sections: reading them, searching them, giving them vectors."""

from collections.abc import Callable, Sequence
from itertools import groupby
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from commonplace.database import scope_sql
from commonplace.database.transaction import Tx
from commonplace.database.unit_of_work import reads, writes
from commonplace.model import Item, ItemFilter, Passage, Scope, Scored, Section, Words
from commonplace.ports import Matches, Question, Vector
from commonplace.search_index.index import IndexedTable
from commonplace.search_index.vector_codec import FORMATS
from commonplace.store import rows

_CHUNK = 1000
# CROSS JOIN and || '': SQLite then starts from the few sections, never from all that the library has.
_PASSAGE = """SELECT s.id, s.item_id, i.public_id, i.entity_type, i.title, i.url, s.position,
              s.heading, s.text, s.word_count, s.key_points, s.locator, i.status, i.visibility,
              i.category, i.tags, i.metadata, i.created_at, i.origin, {added_by}
              FROM sections AS s
              CROSS JOIN items AS i"""
_ADDED_BY = (
    "(SELECT t.name FROM tokens AS t WHERE t.library_id = i.library_id AND t.id = i.created_by)"
)
_OF_ITEM = "i.library_id = s.library_id || '' AND i.id = s.item_id"


class Sections(IndexedTable):
    async def of_item(self, item: Item) -> list[Section]:
        return (await self.of_items([item])).get(item.id, [])

    async def of_items(self, items: Sequence[Item]) -> dict[str, list[Section]]:
        """By the ids of the items, which are of one library; those that have none are left out."""

        def work(tx: Tx) -> dict[str, list[Section]]:
            found = tx.all(
                """SELECT * FROM sections
                   WHERE library_id = :library_id AND item_id IN :ids
                   ORDER BY item_id, position""",
                library_id=items[0].library_id,
                ids=[item.id for item in items],
            )
            return {
                item_id: list(map(rows.section, group))
                for item_id, group in groupby(found, itemgetter("item_id"))
            }

        return await self._db.read(work) if items else {}

    @reads
    def of_content(self, tx: Tx, content_id: str, title: str, stamp: str) -> list[Section]:
        """With vectors of this stamp, of some item that has the content under this title, and no notes; none if there is none."""

        # What was noted on an item lies in its passages too, and is not the content's.
        owner = tx.one(
            """SELECT i.library_id, i.id
               FROM items AS i
               WHERE i.content_id = :content_id AND i.title = :title AND i.in_kb = 1
               AND instr(i.metadata, '"notes"') = 0 AND NOT EXISTS ( SELECT 1
               FROM sections AS s LEFT JOIN vectors AS v ON v.library_id = s.library_id
               AND v.item_id = s.item_id AND v.section_id = s.id AND v.stamp = :stamp
               WHERE s.library_id = i.library_id AND s.item_id = i.id AND v.section_id IS NULL)
               LIMIT 1""",
            content_id=content_id,
            title=title,
            stamp=stamp,
        )
        if owner is None:
            return []
        vectors = self._index.vectors(tx, owner["library_id"], [owner["id"]])
        return [
            rows.section(row, vectors[row["id"]][1])
            for row in tx.all(
                """SELECT * FROM sections
                   WHERE library_id = :library_id AND item_id = :item_id
                   ORDER BY position""",
                library_id=owner["library_id"],
                item_id=owner["id"],
            )
        ]

    async def keyword(
        self, scope: Scope, words: Words, limit: int, where: ItemFilter | None = None
    ) -> list[Scored]:
        """Best first; scores are above 0 and comparable within one answer only. `where`: only of these items."""
        found = await self.matches(scope, Question(words, None, "", limit), where)
        return _best_first(found.ids, found.keyword)[:limit]

    async def nearest(
        self, scope: Scope, vector: Vector, stamp: str, limit: int, where: ItemFilter | None = None
    ) -> list[Scored]:
        """Cosines, best first."""
        found = await self.matches(scope, Question(None, vector, stamp, limit), where)
        return _best_first(found.ids, found.cosines)[:limit]

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
        """The same for several vectors at once, as of one moment."""
        found = [
            self._index.matches(tx, scope, Question(None, vector, stamp, limit), where)
            for vector in vectors
        ]
        return [_best_first(near.ids, near.cosines)[:limit] for near in found]

    @reads
    def matches(
        self, tx: Tx, scope: Scope, question: Question, where: ItemFilter | None = None
    ) -> Matches:
        """What both kinds of search find, and what each says of the other's. In no order."""
        return self._index.matches(tx, scope, question, where)

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
        """The first `limit` passages of those that `choose` puts in order, as of one moment; what is gone by now is left out."""

        return _best(tx, scope, choose(self._index.matches(tx, scope, question, where)), limit)

    @reads
    def passages(self, tx: Tx, scope: Scope, section_ids: Sequence[int]) -> list[Passage]:
        """In any order; what is out of scope or gone by now is left out."""
        return _passages(tx, scope, section_ids)

    @reads
    def first_passages(
        self, tx: Tx, scope: Scope, item_ids: Sequence[str], where: ItemFilter | None = None
    ) -> list[Passage]:
        """The first passage of each of the items, in any order."""
        (condition, values), (asked, wanted) = (
            scope_sql.visible(scope),
            scope_sql.matching(where or ItemFilter()),
        )
        found = tx.tuples(
            f"""{_passage(scope)}
                WHERE s.library_id = :library_id AND s.item_id IN :ids AND s.position = 0
                AND {_OF_ITEM} AND {condition} AND {asked}""",
            ids=list(item_ids),
            **values,
            **wanted,
        )
        return [rows.passage(row) for row in found]

    @reads
    def first_vectors(
        self, tx: Tx, scope: Scope, item_ids: Sequence[str], stamp: str
    ) -> tuple[list[str], NDArray[np.float32]]:
        """Of the first passage of each of the items that has a vector of this stamp: the item's id, and a row."""
        condition, values = scope_sql.visible(scope)

        form = FORMATS[tx.engine]
        found = tx.all(
            f"""SELECT s.item_id, {form.column} AS opening
                FROM sections AS s
                JOIN items AS i ON i.library_id = s.library_id AND i.id = s.item_id
                JOIN vectors AS v ON v.library_id = s.library_id AND v.item_id = s.item_id
                AND v.section_id = s.id
                WHERE s.library_id = :library_id AND s.item_id IN :ids AND s.position = 0
                AND v.stamp = :stamp AND {condition}
                ORDER BY s.item_id""",
            ids=list(item_ids),
            stamp=stamp,
            **values,
        )
        matrix = (
            form.matrix([row["opening"] for row in found])
            if found
            else np.zeros((0, 1), np.float16)
        )
        return [row["item_id"] for row in found], matrix.astype(np.float32)

    @reads
    def without_vectors(
        self, tx: Tx, item_ids: Sequence[str], stamp: str, limit: int = 100_000
    ) -> list[tuple[str, str, int, Section]]:
        """(item_id, title, section_id, section) without a vector of this stamp, in order of item and position."""

        found: list[tuple[str, str, int, Section]] = []
        for start in range(0, len(item_ids), _CHUNK):
            found += [
                (row["item_id"], row["title"], row["id"], rows.section(row))
                for row in tx.all(
                    """SELECT s.* FROM items AS i
                       JOIN sections AS s ON s.library_id = i.library_id AND s.item_id = i.id
                       LEFT JOIN vectors AS v ON v.library_id = s.library_id
                       AND v.item_id = s.item_id AND v.section_id = s.id AND v.stamp = :stamp
                       WHERE i.id IN :ids AND v.section_id IS NULL
                       ORDER BY s.item_id, s.position LIMIT :limit""",
                    ids=list(item_ids[start : start + _CHUNK]),
                    stamp=stamp,
                    limit=limit - len(found),
                )
            ]
        return found

    @writes
    def set_vectors(self, tx: Tx, stamp: str, vectors: Sequence[tuple[int, bytes]]) -> None:
        """float16 bytes by section id; a section that is gone by now is passed over."""
        self._index.set_vectors(tx, stamp, vectors)

    @reads
    def coverage(self, tx: Tx, scope: Scope, stamp: str) -> tuple[int, int]:
        """(sections with a vector of this stamp, sections in all)."""
        condition, values = scope_sql.visible(scope)
        row = tx.one(
            f"""SELECT count(v.section_id) AS done, count(*) AS total
                FROM sections AS s
                JOIN items AS i ON i.library_id = s.library_id AND i.id = s.item_id
                LEFT JOIN vectors AS v ON v.library_id = s.library_id AND v.item_id = s.item_id
                AND v.section_id = s.id AND v.stamp = :stamp
                WHERE {condition}""",
            stamp=stamp,
            **values,
        )
        return (row["done"], row["total"]) if row else (0, 0)

    @reads
    def has_other_stamp(self, tx: Tx, stamp: str, scope: Scope | None = None) -> bool:
        """Whether any vector, or any of what the scope sees, was made by another embedder."""
        condition, values = scope_sql.visible(scope) if scope else ("", {})
        seen = (
            f"AND EXISTS (SELECT 1 FROM items AS i WHERE i.id = v.item_id AND {condition})"
            if scope
            else ""
        )
        return (
            tx.one(
                f"SELECT 1 FROM vectors AS v WHERE v.stamp <> :stamp {seen} LIMIT 1",
                stamp=stamp,
                **values,
            )
            is not None
        )


def _best(
    tx: Tx, scope: Scope, chosen: Sequence[Scored], limit: int
) -> list[tuple[float, Passage]]:
    """As many of the chosen as are asked for and there: another process may have just deleted some."""
    found: list[tuple[float, Passage]] = []
    while chosen and len(found) < limit:
        lot, chosen = chosen[: limit - len(found)], chosen[limit - len(found) :]
        loaded = {
            p.section_id: p for p in _passages(tx, scope, [section_id for section_id, _ in lot])
        }
        found += [(score, loaded[section_id]) for section_id, score in lot if section_id in loaded]
    return found


def _passage(scope: Scope) -> str:
    """A token for some folders, or for the KB, is not told the names of other tokens."""
    return _PASSAGE.replace(
        "{added_by}", _ADDED_BY if scope.folders is None and not scope.kb_only else "NULL"
    )


def _passages(tx: Tx, scope: Scope, section_ids: Sequence[int]) -> list[Passage]:
    condition, values = scope_sql.visible(scope)
    found = tx.tuples(
        f"{_passage(scope)} WHERE s.id IN :ids AND {_OF_ITEM} AND {condition}",
        ids=list(section_ids),
        **values,
    )
    return [rows.passage(row) for row in found]


def _best_first(ids: NDArray[np.int64], scores: NDArray[np.float32]) -> list[Scored]:
    order = np.lexsort((ids, -scores))
    return list(map(Scored, ids[order].tolist(), scores[order].tolist()))
