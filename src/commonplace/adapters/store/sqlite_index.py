"""Search on SQLite: FTS5 with the scope as words inside the index, vectors in an in-process matrix per library."""

import json
import threading
from collections.abc import Sequence

from commonplace.adapters.store import planning
from commonplace.adapters.store.planning import Term, neighbours_found, plan
from commonplace.adapters.store.shelf import Shelf, item_key
from commonplace.adapters.store.sqlite import SqliteTx
from commonplace.model import Item, Scope, Scored, Section, Words
from commonplace.ports import Vector

COUNTED_BY_RANKING = 10_000
MOST_PHRASES, RARE_PHRASE = 2, 50
CHANGES_KEPT = 50_000
SHELVES_KEPT = 64            # libraries whose matrix stays in memory


class SqliteIndex:
    def __init__(self) -> None:
        self._shelves: dict[tuple[str, str], Shelf] = {}
        self._guard = threading.Lock()
        self._found: dict[str, int] = {}
        self._found_at = 0

    def insert(self, tx: SqliteTx, item: Item, sections: Sequence[Section], stamp: str) -> None:
        scope = _scope_words(tx, item.library_id, item.id)
        for section in sections:
            section_id = tx.insert(
                """INSERT INTO sections (library_id, item_id, position, scope, title, heading, text, extra, word_count,
                                         key_points, locator)
                   VALUES (:library_id, :item_id, :position, :scope, :title, :heading, :text, :extra, :word_count,
                           :key_points, :locator)""",
                library_id=item.library_id, item_id=item.id, position=section.position, scope=scope, title=item.title,
                heading=section.heading, text=section.text, extra=section.extra, word_count=section.word_count,
                key_points=json.dumps(section.key_points, ensure_ascii=False), locator=json.dumps(section.locator))
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
        tx.run("UPDATE sections SET scope = :scope WHERE library_id = :library_id AND item_id = :item_id",
               scope=_scope_words(tx, library_id, item_id), library_id=library_id, item_id=item_id)
        _changed(tx, library_id, item_id)

    def retitle(self, tx: SqliteTx, library_id: str, item_id: str, title: str) -> None:
        """The old vectors carry the old title: they go, and the caller's job makes new ones."""
        tx.run("UPDATE sections SET title = :title WHERE library_id = :library_id AND item_id = :item_id",
               title=title, library_id=library_id, item_id=item_id)
        tx.run("DELETE FROM vectors WHERE library_id = :library_id AND item_id = :item_id",
               library_id=library_id, item_id=item_id)
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

    def keyword(self, tx: SqliteTx, scope: Scope, words: Words, limit: int) -> list[Scored]:
        everything = " OR ".join(_phrase(p) for p in words.phrases)
        row = tx.one("SELECT coalesce(max(id), 0) AS n FROM sections")
        total = row["n"] if row else 0
        if total > planning.SMALL and len(words.phrases) > 1:
            terms = self._terms(tx, words, total)
            size = self._size(tx, scope, total)
            chosen, pairs = plan(_affordable(terms), total, size)
            few = [term.query for term in chosen] + [f"({one.query} AND {other.query})" for one, other in pairs[:1]]
            if found := _ask(tx, scope, " OR ".join(few), limit, mostly_ours=scope.folders is None and 2 * size >= total):
                return found
        return _ask(tx, scope, everything, limit)

    def nearest(self, tx: SqliteTx, scope: Scope, vector: Vector, stamp: str, limit: int,
                also: Sequence[int]) -> list[Scored]:
        shelf = self._shelf(scope.library_id, stamp, len(vector))
        with shelf.guard:
            shelf.catch_up(tx)
            keys = None if scope.folders is None else shelf.remember(scope.folders, lambda: _keys(tx, scope))
            return shelf.nearest(vector, limit, also, keys)

    def _shelf(self, library_id: str, stamp: str, dimensions: int) -> Shelf:
        with self._guard:
            shelf = self._shelves.pop((library_id, stamp), None) or Shelf(library_id, stamp, dimensions)
            self._shelves[(library_id, stamp)] = shelf  # last used, last evicted
            while len(self._shelves) > SHELVES_KEPT:
                del self._shelves[next(iter(self._shelves))]
            return shelf

    def _terms(self, tx: SqliteTx, words: Words, total: int) -> list[Term]:
        if total > 1.2 * self._found_at or len(self._found) > 50_000:
            self._found, self._found_at = {}, total
        terms = []
        for phrase in words.phrases:
            counts = [self._remembered(tx, _phrase((word,)), max(planning.COUNTED_UP_TO, total // 5)) for word in phrase]
            terms.append(Term(_phrase(phrase), counts[0]) if len(phrase) == 1 else
                         Term(_phrase(phrase), neighbours_found(counts), single=False))
        return terms

    def _size(self, tx: SqliteTx, scope: Scope, total: int) -> int:
        match = f"scope : ({_scope_match(scope)})"
        return self._count(tx, match) if scope.folders is not None else self._remembered(tx, match, total)

    def _remembered(self, tx: SqliteTx, match: str, bound: int) -> int:
        known = self._found.get(match)
        if known is None:
            known = self._found[match] = self._count(tx, match, bound)
        return known

    @staticmethod
    def _count(tx: SqliteTx, match: str, bound: int = planning.COUNTED_UP_TO) -> int:
        row = tx.one("""SELECT count(*) AS n FROM
                        (SELECT 1 FROM section_words WHERE section_words MATCH :match LIMIT :bound)""",
                     match=match, bound=bound)
        return row["n"] if row else 0


def _affordable(terms: Sequence[Term]) -> list[Term]:
    """bm25() counts the sections of every term at each search, so what it may count is bounded."""
    left, kept = COUNTED_BY_RANKING, []
    for term in sorted((term for term in terms if term.single), key=lambda term: term.found):
        if left < 0:
            break
        kept.append(term)
        left -= term.found
    phrases = [term for term in terms if not term.single]
    # The first is the likeliest to be an exact string; of the others those with a rare word, which are counted fast.
    return kept + phrases[:1] + [term for term in phrases[1:] if term.found <= RARE_PHRASE][:MOST_PHRASES]


def _ask(tx: SqliteTx, scope: Scope, match: str, limit: int, *, mostly_ours: bool = False) -> list[Scored]:
    if not match:
        return []
    asked = f"{{title heading text extra}} : ({match})"
    if mostly_ours:
        # The library's own word would be counted for bm25(), too, and it is in nearly every section.
        found = tx.all("""SELECT w.rowid AS id, -w.rank AS score FROM section_words AS w CROSS JOIN sections AS s
                          WHERE section_words MATCH :match AND s.id = w.rowid AND s.library_id = :library_id
                          ORDER BY w.rank LIMIT :limit""", match=asked, library_id=scope.library_id, limit=limit)
    else:
        found = tx.all("""SELECT rowid AS id, -rank AS score FROM section_words WHERE section_words MATCH :match
                          ORDER BY rank LIMIT :limit""", match=f"scope : ({_scope_match(scope)}) AND {asked}", limit=limit)
    return [Scored(row["id"], row["score"]) for row in found]


def _changed(tx: SqliteTx, library_id: str, item_id: str) -> None:
    seq = tx.insert("INSERT INTO changes (library_id, item_id) VALUES (:library_id, :item_id)",
                    library_id=library_id, item_id=item_id)
    if seq % 1000 == 0:
        tx.run("DELETE FROM changes WHERE seq < :oldest", oldest=seq - CHANGES_KEPT)


def _scope_words(tx: SqliteTx, library_id: str, item_id: str) -> str:
    folders = tx.all("SELECT folder_id FROM folder_items WHERE library_id = :library_id AND item_id = :item_id",
                     library_id=library_id, item_id=item_id)
    return " ".join([_word("l", library_id), *(_word("f", library_id + row["folder_id"]) for row in folders)])


def _scope_match(scope: Scope) -> str:
    if scope.folders is None:
        return _word("l", scope.library_id)
    return " OR ".join(_word("f", scope.library_id + folder_id) for folder_id in sorted(scope.folders)) or '"nothing at all"'


def _word(kind: str, identifier: str) -> str:
    return kind + "".join(c for c in identifier.lower() if c.isalnum())


def _phrase(words: tuple[str, ...]) -> str:
    return '"' + " ".join(words).replace('"', " ") + '"'


def _keys(tx: SqliteTx, scope: Scope) -> list[int]:
    found = tx.all("SELECT DISTINCT item_id FROM folder_items WHERE library_id = :library_id AND folder_id IN :folders",
                   library_id=scope.library_id, folders=sorted(scope.folders or ()))
    return [item_key(row["item_id"]) for row in found]
