"""Search within a scope, where the rows are. The plan is chosen by the number of sections.

Small scopes are compared exactly, in one statement, without any index but the primary key. In large
libraries, words are found by posting lists and vectors by an HNSW index. pgvector's `<#>` is the
negative inner product.
"""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.database import Tx
from commonplace.model import ItemFilter, Scope
from commonplace.ports import Matches, Question
from commonplace.search_index.bm25 import FAINT, PHRASED, Asked, damping, score_phrases
from commonplace.search_index.postgres import counts, encoding, statements
from commonplace.search_index.postgres.scopes import Condition, ScopeSize

COUNTED_INSIDE = 2_000  # sections whose terms are counted by the statement that ranks them
LISTED = 2_000  # items of a filter that are given to a statement by their ids
WORDS_OF_SECTION = 160  # to estimate how many sections items have
EXACT_VECTORS = 50_000  # sections of a filter or folder whose vectors are all compared
FILTERED_SHARE = 0.25  # of a library: HNSW finds the nearest within a filter that leaves as much
# The rarest terms choose the candidates: until these are enough rows and the others weigh little.
FEW_ROWS, SMALL_SHARE, MANY_ROWS = 4_000, 0.3, 12_000
MOST_ROWS = 30_000  # candidates, where the best cannot be told from fewer
HIGHEST_WEIGHT = 2.2  # K1 + 1, of a term in a section
BEST = 12  # results that must be the true best by words
SEARCHED = 200  # vectors that HNSW compares with a question, at least
MOST_SEARCHED = 1_000  # more it does not take

NOTHING = Matches(np.empty(0, np.int64), np.empty(0, np.float32), np.empty(0, np.float32))

Row = tuple[int, str, float, float, float | None]  # section, item, words, faint words, cosine


def matches(tx: Tx, scope: Scope, question: Question, where: ItemFilter) -> Matches:
    size = ScopeSize(tx, scope)
    if size.sections == 0:
        return NOTHING
    asked = Asked(question.words) if question.words else None
    if size.sections <= COUNTED_INSIDE or not size.kept:
        found, total, complete = _counting(tx, size, question, asked, where)
    else:
        numbers = sorted(asked.single | asked.faint) if asked else []
        rarities, total = size.rarities(tx, numbers)
        query = _Query(tx, size, question, asked, rarities)
        found, complete = query.run(where)
    return _matches(tx, scope.library_id, found, asked, question, total, complete)


def frequencies(tx: Tx, scope: Scope, terms: Collection[int]) -> tuple[dict[int, int], int]:
    size, asked = ScopeSize(tx, scope), sorted(terms)
    if size.sections == 0:
        return dict.fromkeys(asked, 0), 0
    if size.kept:
        return size.frequencies(tx, asked)
    total, *found = tx.tuples(
        statements.count_terms(
            len(asked), size.condition(statements.SEARCHABLE).of("w.item_id", "::uuid[]")
        ),
        **size.values,
        **statements.singles(asked),
    )[0]
    return dict(zip(asked, found, strict=True)), total


def _counting(
    tx: Tx, size: ScopeSize, question: Question, asked: Asked | None, where: ItemFilter
) -> tuple[list[Row], int, bool]:
    """Compare all sections of a scope, and count the terms in them on the way."""
    single, faint = (sorted(asked.single), sorted(asked.faint)) if asked else ([], [])
    base, filtered, counted = size.parts(where)
    found = tx.tuples(
        statements.counting(
            len(single),
            len(faint),
            question.vector is not None,
            base.rows(),
            filtered.flag("w.item_id::text") if filtered else "TRUE",
            counted,
        ),
        **size.values,
        **(filtered.values if filtered else {}),
        **statements.singles([*single, *faint]),
        **_vector(question),
        best=max(question.limit, PHRASED),
        limit=question.limit,
    )
    total, complete = found[0][:2]
    return [row[2:] for row in found if row[2] is not None], total, complete


class _Query:
    """A question to a scope whose terms are counted already."""

    def __init__(
        self,
        tx: Tx,
        size: ScopeSize,
        question: Question,
        asked: Asked | None,
        rarities: dict[int, float],
    ) -> None:
        self._tx, self._size, self._question = tx, size, question
        self._rarities = rarities
        single = {term: rarities[term] for term in asked.single} if asked else {}
        faint = {term: rarities[term] for term in asked.faint} if asked else {}
        self._parts = bool(single), bool(faint)
        self._leaning = single | {term: FAINT * weight for term, weight in faint.items()}
        self._values = {
            **size.values,
            **_vector(question),
            "best": max(question.limit, PHRASED),
            "limit": question.limit,
            "single": encoding.sparse(list(single), list(single.values())),
            "faint": encoding.sparse(list(faint), list(faint.values())),
            "leaning": encoding.sparse(list(self._leaning), list(self._leaning.values())),
        }

    def run(self, where: ItemFilter) -> tuple[list[Row], bool]:
        """Return rows, and whether all sections of the scope are known to have vectors."""
        condition, sections = self._size.condition(where), self._size.sections
        if sections > counts.LARGE and condition.items:
            condition, sections = _narrowed(self._tx, self._size, condition)
        if sections > counts.LARGE and self._size.library.keyed == 2:
            return self._by_indexes(condition, sections), False
        found = self._tx.tuples(
            statements.exact(
                *self._parts,
                self._question.vector is not None,
                condition.rows(),
            ),
            **self._values,
            **condition.values,
        )
        return [row[1:] for row in found if row[1] is not None], (
            found[0][0] and where == statements.SEARCHABLE
        )

    def _by_indexes(self, condition: Condition, sections: int) -> list[Row]:
        near = self._nearest(condition, sections)
        if not self._leaning:
            return self._ask(near, condition, []) if near else []
        posted = self._size.library_frequencies
        order = sorted(
            (term for term in self._leaning if posted.get(term)), key=lambda term: posted[term]
        )
        taken, rows = 0, 0
        while taken < len(order) and (
            taken == 0
            or (
                rows + posted[order[taken]] <= MANY_ROWS
                and not (
                    rows >= FEW_ROWS and self._weight(order[taken:]) <= SMALL_SHARE * self._all
                )
            )
        ):
            rows += posted[order[taken]]
            taken += 1
        found = self._ask(near, condition, order[:taken])
        best = sorted((words + FAINT * faint for _, _, words, faint, _ in found), reverse=True)
        bound = best[BEST - 1] if len(best) >= BEST else 0.0
        wider = taken
        # A section without any of the chosen terms may still be among the best.
        while wider < len(order) and HIGHEST_WEIGHT * self._weight(order[wider:]) > bound:
            rows += posted[order[wider]]
            if rows > MOST_ROWS:
                break
            wider += 1
        if wider > taken:
            found = self._ask(near, condition, order[:wider])
        return found

    @property
    def _all(self) -> float:
        return sum(self._leaning.values())

    def _weight(self, terms: Sequence[int]) -> float:
        return sum(self._leaning[term] for term in terms)

    def _nearest(self, condition: Condition, sections: int) -> str:
        """Return the part of the statement that finds the nearest vectors; none without one."""
        question, library = self._question, self._size.library
        if question.vector is None:
            return ""
        broad = sections > EXACT_VECTORS and sections > FILTERED_SHARE * library.sections
        if library.nearest != question.stamp or (condition.ids is not None and not broad):
            return statements.compared(condition.of("v.item_id"))
        self._tx.one(
            """SELECT set_config('hnsw.ef_search', :searched, true),
                      set_config('hnsw.iterative_scan', 'relaxed_order', true)""",
            searched=str(min(MOST_SEARCHED, max(SEARCHED, question.limit))),
        )
        return statements.nearest(
            self._size.library_id, question.stamp, len(question.vector), condition.flag("v.item_id")
        )

    def _ask(self, near: str, condition: Condition, terms: Sequence[int]) -> list[Row]:
        words = statements.worded(*self._parts, condition.flag("w.item_id::text")) if terms else ""
        return self._tx.tuples(
            statements.by_indexes(*self._parts, words, near),
            **self._values,
            **condition.values,
            keys=encoding.keys(self._size.library_id, terms),
        )


def _narrowed(tx: Tx, size: ScopeSize, condition: Condition) -> tuple[Condition, int]:
    """Return a filter's condition by its items, if they are few, and about how many sections they
    have."""
    found = tx.tuples(
        f"SELECT i.id, i.word_count {condition.items} LIMIT :listed",
        **size.values,
        **condition.values,
        listed=LISTED + 1,
    )
    if len(found) <= LISTED:
        sections = sum(1 + words // WORDS_OF_SECTION for _, words in found)
        ids = [item_id for item_id, _ in found]
        return Condition("SELECT unnest(:listed::text[])", values={"listed": ids}), sections
    sections = tx.scalar(
        f"SELECT sum(1 + i.word_count / {WORDS_OF_SECTION}) {condition.items}",
        **size.values,
        **condition.values,
    )
    return condition, int(sections)


def _vector(question: Question) -> dict[str, Any]:
    if question.vector is None:
        return {}
    return {
        "vector": encoding.halfvec(question.vector.astype(np.float16).tobytes()),
        "stamp": question.stamp,
    }


def _matches(
    tx: Tx,
    library_id: str,
    found: Sequence[Row],
    asked: Asked | None,
    question: Question,
    total: int,
    complete: bool,
) -> Matches:
    ids = np.array([row[0] for row in found], np.int64)
    items = [row[1] for row in found]
    keyword = np.array([row[2] for row in found], np.float32)
    cosines = np.array([row[4] for row in found], np.float32)  # None: NaN
    if asked and asked.phrases:
        leaning = keyword + np.float32(FAINT) * np.array([row[3] for row in found], np.float32)
        chosen = np.lexsort((ids, -leaning))[:PHRASED]
        chosen = chosen[leaning[chosen] > 0]
        keyword[chosen] += _phrases(tx, library_id, asked, ids[chosen], items, chosen, total)
    wanted = (keyword > 0) | ~np.isnan(cosines)
    ids, keyword, cosines = ids[wanted], keyword[wanted], cosines[wanted]
    items = [item_id for item_id, keep in zip(items, wanted, strict=True) if keep]

    def vectors(chosen: NDArray[np.intp]) -> NDArray[np.float16]:
        by_id = dict(
            tx.tuples(
                statements.VECTORS,
                library_id=library_id,
                items=[items[place] for place in chosen],
                ids=ids[chosen].tolist(),
            )
        )
        return encoding.halves([by_id[section_id] for section_id in ids[chosen].tolist()])

    return Matches(ids, keyword, cosines, complete, vectors)


def _phrases(
    tx: Tx,
    library_id: str,
    asked: Asked,
    ids: NDArray[np.int64],
    items: Sequence[str],
    chosen: NDArray[np.intp],
    total: int,
) -> NDArray[np.float32]:
    by_id = dict(
        tx.tuples(
            statements.SEQUENCES,
            library_id=library_id,
            items=[items[place] for place in chosen],
            ids=ids.tolist(),
        )
    )
    sequences = [by_id.get(section_id, b"") for section_id in ids.tolist()]
    # A sequence has a gap after each of four fields.
    lengths = np.array([min(len(each) // 2 - 4, 65_535) for each in sequences], np.float32)
    return score_phrases(sequences, asked.phrases, damping(lengths), total)
