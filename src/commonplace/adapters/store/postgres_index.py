"""Search on Postgres: tsvectors with the scope among their words, pgvector exactly within a scope."""

import json
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commonplace.adapters.store import filters
from commonplace.adapters.store.postgres import PostgresTx
from commonplace.adapters.store.postgres_words import Statistics, folder_lexeme, library_lexeme, rank
from commonplace.adapters.store.signs import sign_bits
from commonplace.adapters.store.terms import plain
from commonplace.model import Item, ItemFilter, Scope, Scored, Section, Words
from commonplace.ports import Vector

EXACT_UP_TO = 8_000  # rows that are cheaper to compare than to find by their sign bits
RESCORED = 1_500      # best by sign bits that are compared exactly: recall@10 stays above .99 on real vectors

_COSINES = """SELECT v.section_id, -(v.embedding <#> :vector::halfvec) AS score FROM vectors AS v
              WHERE v.library_id = :library_id AND v.stamp = :stamp"""
_IN_FOLDERS = """AND v.item_id IN (SELECT item_id FROM folder_items
                               WHERE library_id = :library_id AND folder_id IN :folders)"""


class PostgresIndex:
    def __init__(self) -> None:
        self._remembered: Statistics | None = None

    def insert(self, tx: PostgresTx, item: Item, sections: Sequence[Section], stamp: str) -> None:
        if not sections:
            return
        written = {row["position"]: row["id"] for row in tx.all(
            """INSERT INTO sections (library_id, item_id, title, position, heading, text, extra, word_count, key_points,
                                     locator)
               SELECT :library_id, :item_id, :title, s.* FROM unnest(
                 :positions::int[], :headings::text[], :texts::text[], :extras::text[], :word_counts::int[],
                 :key_points::text[], :locators::text[]) AS s RETURNING id, position""",
            library_id=item.library_id, item_id=item.id, title=item.title,
            positions=[s.position for s in sections], headings=[s.heading for s in sections],
            texts=[s.text for s in sections], extras=[s.extra for s in sections],
            word_counts=[s.word_count for s in sections],
            key_points=[json.dumps(s.key_points, ensure_ascii=False) for s in sections],
            locators=[json.dumps(s.locator) for s in sections])}
        _put_words(tx, item.library_id, item.id, item.title,
                   [(written[s.position], s.heading, s.text, s.extra) for s in sections])
        self.set_vectors(tx, stamp, [(written[s.position], s.vector) for s in sections if s.vector is not None])

    def remove(self, tx: PostgresTx, library_id: str, item_id: str) -> None:
        tx.run("DELETE FROM sections WHERE library_id = :library_id AND item_id = :item_id",
               library_id=library_id, item_id=item_id)

    def refile(self, tx: PostgresTx, library_id: str, item_id: str) -> None:
        tx.run("""UPDATE section_words AS w SET scope = :scope, words = ts_delete(words, w.scope) || array_to_tsvector(:scope)
                  FROM sections AS s WHERE s.id = w.section_id AND s.library_id = :library_id AND s.item_id = :item_id""",
               scope=_scope_of(tx, library_id, item_id), library_id=library_id, item_id=item_id)

    def set_vectors(self, tx: PostgresTx, stamp: str, vectors: Sequence[tuple[int, bytes]]) -> None:
        if not vectors:
            return
        ids = [section_id for section_id, _ in vectors]
        given = [np.frombuffer(vector, np.float16) for _, vector in vectors]
        libraries = tx.all("SELECT DISTINCT library_id FROM sections WHERE id IN :ids", ids=ids)
        for row in libraries:
            _shelf_to_fill(tx, row["library_id"], stamp)
        tx.run("""INSERT INTO vectors (section_id, library_id, item_id, stamp, embedding)
                  SELECT s.id, s.library_id, s.item_id, :stamp, given.embedding::halfvec
                  FROM unnest(:ids::bigint[], :embeddings::text[]) AS given (id, embedding)
                  JOIN sections AS s ON s.id = given.id FOR KEY SHARE OF s
                  ON CONFLICT (section_id) DO UPDATE SET stamp = excluded.stamp, embedding = excluded.embedding""",
               stamp=stamp, ids=ids, embeddings=[_literal(vector) for vector in given])
        tx.run("""INSERT INTO signs (section_id, item, shelf, code)
                  SELECT v.section_id, hashtextextended(v.item_id, 0), h.id, given.code::varbit
                  FROM unnest(:ids::bigint[], :codes::text[]) AS given (id, code)
                  JOIN vectors AS v ON v.section_id = given.id
                  JOIN shelves AS h ON h.library_id = v.library_id AND h.stamp = :stamp
                  ON CONFLICT (section_id) DO UPDATE SET shelf = excluded.shelf, code = excluded.code""",
               stamp=stamp, ids=ids, codes=[_code(vector) for vector in given])

    def vectors(self, tx: PostgresTx, library_id: str, item_ids: Sequence[str]) -> dict[int, tuple[str, bytes]]:
        found = tx.all("""SELECT section_id, stamp, halfvec_send(embedding) AS sent FROM vectors
                          WHERE library_id = :library_id AND item_id IN :ids""", library_id=library_id, ids=list(item_ids))
        # On the wire: two 16-bit numbers, then the elements with their high byte first.
        return {row["section_id"]: (row["stamp"], np.frombuffer(row["sent"], ">f2", offset=4).astype("<f2").tobytes())
                for row in found}

    def keyword(self, tx: PostgresTx, scope: Scope, words: Words, limit: int, where: ItemFilter | None) -> list[Scored]:
        phrases = [phrase for phrase in dict.fromkeys(plain(" ".join(p)) for p in words.phrases) if phrase]
        return rank(tx, self._statistics(tx), scope, phrases, limit, *_kept(tx, scope, where))

    def nearest(self, tx: PostgresTx, scope: Scope, vector: Vector, stamp: str, limit: int,
                also: Sequence[int], where: ItemFilter | None) -> list[Scored]:
        kept, items = _kept(tx, scope, where)
        within = "" if scope.folders is None else _IN_FOLDERS
        within += f" AND {kept}".format("v.item_id") if kept else ""
        exact = kept or self._statistics(tx).size(tx, scope) <= EXACT_UP_TO
        candidates = "" if exact else _by_signs(bool(within))
        found = tx.all(
            f"""WITH best AS ({_COSINES} {within} {candidates} ORDER BY (v.embedding <#> :vector::halfvec) + 0 LIMIT :limit)
                SELECT section_id, score FROM best UNION {_COSINES} {within} AND v.section_id IN :also
                ORDER BY score DESC, section_id""",
            library_id=scope.library_id, stamp=stamp, vector=_literal(vector), code=_code(vector), limit=limit, also=list(also),
            folders=sorted(scope.folders or ()), rescored=max(RESCORED, limit), **items)
        return [Scored(row["section_id"], row["score"]) for row in found]

    def _statistics(self, tx: PostgresTx) -> Statistics:
        known = self._remembered
        if known is None or known.stale:
            known = self._remembered = Statistics(tx)
        return known


def _kept(tx: PostgresTx, scope: Scope, where: ItemFilter | None) -> tuple[str, dict[str, list[str]]]:
    """A condition on items, `{}` standing for their id, and its values; empty when all are wanted."""
    if where is None:
        return "", {}
    if not filters.only_excludes(where):
        return "{} IN :kept", {"kept": filters.wanted(tx, scope, where)}
    unwanted = filters.excluded(tx, scope, where)
    return ("NOT {} IN :kept", {"kept": unwanted}) if unwanted else ("", {})


def _by_signs(scoped: bool) -> str:
    """Only those whose sign bits are the nearest. An array, so that the scan comes first and the lookups follow."""
    inside = """AND g.item IN (SELECT hashtextextended(item_id, 0) FROM folder_items
                               WHERE library_id = :library_id AND folder_id IN :folders)"""
    return f"""AND v.section_id = ANY(ARRAY(
                 SELECT g.section_id FROM signs AS g
                 WHERE g.shelf = (SELECT id FROM shelves WHERE library_id = :library_id AND stamp = :stamp)
                   {inside if scoped else ""}
                 ORDER BY g.code <~> (:code)::varbit LIMIT :rescored))"""


def _put_words(tx: PostgresTx, library_id: str, item_id: str, title: str,
               sections: Sequence[tuple[int, str, str, str]]) -> None:
    title = plain(title)
    headings, texts, extras = ([plain(text) for text in column] for column in list(zip(*sections, strict=True))[1:])
    lengths = [title.count(" ") + h.count(" ") + t.count(" ") + e.count(" ") + 4
               for h, t, e in zip(headings, texts, extras, strict=True)]
    tx.run("""INSERT INTO section_words (section_id, length, scope, words)
              SELECT s.id, s.length, :scope,
                     setweight(to_tsvector('words', :title), 'A') || setweight(to_tsvector('words', s.heading), 'B')
                     || setweight(to_tsvector('words', s.text), 'C') || setweight(to_tsvector('words', s.extra), 'D')
                     || array_to_tsvector(:scope)
              FROM unnest(:ids::bigint[], :lengths::int[], :headings::text[], :texts::text[], :extras::text[])
                AS s (id, length, heading, text, extra)
              ON CONFLICT (section_id) DO UPDATE SET length = excluded.length, scope = excluded.scope, words = excluded.words""",
           ids=[s[0] for s in sections], lengths=lengths, headings=headings, texts=texts, extras=extras, title=title,
           scope=_scope_of(tx, library_id, item_id))


def _scope_of(tx: PostgresTx, library_id: str, item_id: str) -> list[str]:
    # The lock: of two that file one item at the same time, the second sees the first's folder.
    tx.one("SELECT 1 FROM items WHERE library_id = :library_id AND id = :item_id FOR NO KEY UPDATE",
           library_id=library_id, item_id=item_id)
    folders = tx.all("SELECT folder_id FROM folder_items WHERE library_id = :library_id AND item_id = :item_id",
                     library_id=library_id, item_id=item_id)
    return [library_lexeme(library_id), *(folder_lexeme(library_id, row["folder_id"]) for row in folders)]


def _shelf_to_fill(tx: PostgresTx, library_id: str, stamp: str) -> None:
    if not tx.one("SELECT 1 FROM shelves WHERE library_id = :library_id AND stamp = :stamp",
                  library_id=library_id, stamp=stamp):
        tx.run("INSERT INTO shelves (library_id, stamp) VALUES (:library_id, :stamp) ON CONFLICT DO NOTHING",
               library_id=library_id, stamp=stamp)


def _literal(vector: NDArray[np.floating]) -> str:
    return "[" + ",".join(map(str, vector.tolist())) + "]"


def _code(vector: NDArray[np.floating]) -> str:
    return "".join("1" if bit else "0" for bit in sign_bits(vector.reshape(1, -1))[0].tolist())
