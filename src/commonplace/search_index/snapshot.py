"""A library's sections at one moment, searchable from any number of threads."""

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commonplace.database import Tx
from commonplace.model import Words
from commonplace.ports import Matches, Question, Vector
from commonplace.search_index.bm25 import (
    FAINT,
    K1,
    PHRASED,
    Asked,
    damping,
    rarity,
    score_phrases,
)
from commonplace.search_index.postings import Rows, Run, Scores
from commonplace.search_index.row_owners import Owners, item_keys
from commonplace.search_index.vectors import FAR, SCANNED_AT_ONCE, Vectors, cosines, sign_words

FEW = 8  # pools smaller than an eighth of all rows are looked up row by row
EXACT_UP_TO = 2_000  # vectors that are cheaper to compare than to scan
ONE_SCAN_UP_TO = 8_000  # vectors whose sign bits are all compared
# Candidates by sign bits that are compared exactly: a twentieth, within bounds, or a two
# hundredth of very many. recall@10 stays above .99 on real vectors, from 4,000 to 656,000.
RESCORED, MOST_RESCORED = 600, 1_200
SCANNED_WORDS = 4  # words of sign bits compared in all rows, the others in the best of them
LIKELIER = 6  # times as many rows as are compared exactly

NO_ROWS: Rows = np.empty(0, np.intp)


@dataclass(frozen=True, slots=True)
class Pool:
    """The rows that a search may find."""

    rows: Rows | None  # these few, in order; None: all rows of `mask`
    mask: NDArray[np.bool_] | None  # None: all rows
    size: int
    seen: Rows | None  # places of rows with a vector; None: all but `unseen`
    unseen: Rows  # of all rows, those without a vector or outside of the pool
    complete: bool  # every row of the pool has a vector

    @property
    def nbytes(self) -> int:
        return sum(
            part.nbytes
            for part in (self.rows, self.mask, self.seen, self.unseen)
            if part is not None
        )


class Snapshot:
    """An immutable snapshot of one library's index. `pools` caches pools by any key."""

    def __init__(
        self,
        owners: Owners,
        ids: NDArray[np.uint32],
        lengths: NDArray[np.uint16],
        alive: NDArray[np.bool_],
        runs: Sequence[Run],
        vectors: Vectors,
    ) -> None:
        self._owners, self._ids, self._alive, self._runs = owners, ids, alive, runs
        self._matrix, self._signs, self._has = (
            vectors.matrix,
            vectors.signs,
            vectors.has[: len(ids)],
        )
        # How much a section's length damps the weight of a word.
        self._damped = damping(lengths.astype(np.float32))
        self.pools: dict[Hashable, Pool] = {}

    def pool(self, items: Iterable[str] | None, but: Sequence[str] = ()) -> Pool:
        """Return the pool of these items, or of all, without those in `but`."""
        rows, out = None if items is None else self._rows_of(items), self._rows_of(but)
        if rows is not None and len(rows) * FEW < len(self._ids):
            rows = np.setdiff1d(rows, out, assume_unique=True)
            seen = self._has[rows].nonzero()[0]
            return Pool(rows, None, len(rows), seen, NO_ROWS, len(seen) == len(rows))
        mask = self._alive.copy() if rows is None else np.zeros(len(self._ids), bool)
        if rows is not None:
            mask[rows] = True
        mask[out] = False
        size, sighted = int(np.count_nonzero(mask)), mask & self._has
        with_vector = np.count_nonzero(sighted)
        few = with_vector <= EXACT_UP_TO
        return Pool(
            None,
            None if size == len(mask) else mask,
            size,
            sighted.nonzero()[0] if few else None,
            NO_ROWS if few else (~sighted).nonzero()[0],
            with_vector == size,
        )

    def matches(self, tx: Tx, question: Question, pool: Pool, counted: Pool) -> Matches:
        """Return the best rows by words and by meaning, each with both scores.

        `counted` is the pool that word frequencies are taken from: all that the caller may see.
        Rows outside of both pools change no score, and not which of several equal rows are
        returned.
        """
        limit = question.limit
        worded, scores = (
            self._by_words(tx, question.words, limit, pool, counted)
            if question.words
            else (NO_ROWS, None)
        )
        places, near = worded, np.full(len(worded), np.nan, np.float32)
        if question.vector is not None and self._signs:
            likely = self._candidates(question.vector, limit, pool)
            where = likely.searchsorted(worded)
            both = (
                likely.take(where, mode="clip") == worded
                if len(likely)
                else np.zeros(len(worded), bool)
            )
            places = np.concatenate([likely, worded[~both]])
            rows = places if pool.rows is None else pool.rows[places]
            near = cosines(self._matrix, rows, question.vector)
            near[len(likely) :][~self._has[rows[len(likely) :]]] = np.nan
            if len(likely) > limit:
                kept = near >= np.partition(near[: len(likely)], -limit)[-limit]
                kept[where[both]] = True
                kept[len(likely) :] = True
                places, near = places[kept], near[kept]
        rows = places if pool.rows is None else pool.rows[places]
        return Matches(
            self._ids[rows].astype(np.int64),
            np.zeros(len(rows), np.float32) if scores is None else scores[places],
            near,
            counted.complete,
            lambda chosen: self._matrix[rows[chosen]],
        )

    def frequencies(self, terms: Collection[int], counted: Pool) -> tuple[dict[int, int], int]:
        """Return how many sections of the pool have each term, and how many sections it has."""
        return {term: self._frequency(term, counted) for term in terms}, counted.size

    # -- by words

    def _by_words(
        self, tx: Tx, words: Words, limit: int, pool: Pool, counted: Pool
    ) -> tuple[Rows, Scores]:
        """Return the places of the best rows, in order, and the scores of all rows of the pool."""
        asked = Asked(words)
        scores = self._bm25(asked.single, pool, counted)
        leaning = scores
        if asked.faint:
            leaning = scores + np.float32(FAINT) * self._bm25(asked.faint, pool, counted)
        ids = self._ids if pool.rows is None else self._ids[pool.rows]
        best = _top(leaning, max(limit, PHRASED), ids)
        if asked.phrases:
            chosen = best[_top(leaning[best], PHRASED, ids[best])]
            scores[chosen] += self._by_phrases(
                tx, asked.phrases, chosen if pool.rows is None else pool.rows[chosen], counted.size
            )
        return best[scores[best] > 0], scores

    def _bm25(self, asked: Iterable[int], pool: Pool, counted: Pool) -> Scores:
        damped = self._damped if pool.rows is None else self._damped[pool.rows]
        scores = np.zeros(len(damped), np.float32)
        for term in asked:
            found = [
                run.all(term) if pool.rows is None else run.among(term, pool.rows)
                for run in self._runs
            ]
            frequency = (
                sum(len(counts) for _, counts in found)
                if pool is counted and pool.rows is not None
                else self._frequency(term, counted)
            )
            weight = np.float32(rarity(frequency, counted.size) * (K1 + 1))
            for places, counts in found:
                scores[places] += weight * (counts / (counts + damped[places]))
        if pool.mask is not None:
            scores *= pool.mask
        return scores

    def _frequency(self, term: int, pool: Pool) -> int:
        """Count the rows of the pool that have the term."""
        if pool.rows is not None:
            return sum(len(run.among(term, pool.rows)[0]) for run in self._runs)
        return sum(run.frequency(term, pool.mask) for run in self._runs)

    def _by_phrases(
        self, tx: Tx, phrases: Sequence[tuple[int, ...]], rows: Rows, size: int
    ) -> Scores:
        ids = self._ids[rows].tolist()
        by_id = dict(
            tx.tuples(
                "SELECT section_id, sequence FROM sequences WHERE section_id IN :ids", ids=ids
            )
        )
        sequences = [by_id.get(section_id, b"") for section_id in ids]
        return score_phrases(sequences, phrases, self._damped[rows], size)

    # -- by meaning

    def _candidates(self, vector: Vector, limit: int, pool: Pool) -> Rows:
        """Return the places, in order, of rows that may be the nearest; all have a vector."""
        if pool.seen is not None and len(pool.seen) <= EXACT_UP_TO:
            return pool.seen
        size = len(self._ids) - len(pool.unseen) if pool.seen is None else len(pool.seen)
        words = sign_words(vector.reshape(1, -1))[:, 0]
        wanted = max(limit, min(size, RESCORED), min(size // 20, MOST_RESCORED), size // 200)
        # All bounds here depend on the pool's own size: other rows must not change the result.
        if size <= ONE_SCAN_UP_TO:
            seen = (
                np.delete(np.arange(len(self._ids)), pool.unseen)
                if pool.seen is None
                else pool.seen
            )
            return seen[
                _smallest(
                    self._distances(seen if pool.rows is None else pool.rows[seen], words), wanted
                )
            ]
        if pool.seen is None:
            distances = self._scan(words[:SCANNED_WORDS])
            distances[pool.unseen] = FAR
        else:
            rows = pool.seen if pool.rows is None else pool.rows[pool.seen]
            # In bytes, as a scan counts them.
            distances = self._distances(rows, words[:SCANNED_WORDS]).astype(np.uint8)
        likely = _smallest(distances, LIKELIER * wanted, FAR)
        further = self._distances(
            likely if pool.seen is None else rows[likely], words[SCANNED_WORDS:], SCANNED_WORDS
        )
        likely = likely[_smallest(distances[likely] + further, wanted)]
        return likely if pool.seen is None else pool.seen[likely]

    def _distances(
        self, rows: Rows, words: NDArray[np.uint64], first: int = 0
    ) -> NDArray[np.uint16]:
        """Count the sign bits of rows that differ, in words from `first` on."""
        total = np.zeros(len(rows), np.uint16)
        for signs, word in zip(self._signs[first:], words, strict=False):
            total += np.bitwise_count(signs[rows] ^ word)
        return total

    def _scan(self, words: NDArray[np.uint64]) -> NDArray[np.uint8]:
        """Count the sign bits of all rows that differ in these words."""
        total, changed = np.zeros(len(self._ids), np.uint8), np.empty(SCANNED_AT_ONCE, np.uint64)
        for start in range(0, len(total), SCANNED_AT_ONCE):
            part = total[start : start + SCANNED_AT_ONCE]
            for signs, word in zip(self._signs, words, strict=False):
                part += np.bitwise_count(
                    np.bitwise_xor(signs[start : start + len(part)], word, out=changed[: len(part)])
                )
        return total

    def _rows_of(self, items: Iterable[str]) -> Rows:
        rows = self._owners.rows_of(item_keys(items))
        rows = rows[: rows.searchsorted(len(self._ids))]  # without rows added since
        return rows[self._alive[rows]]


def _top(scores: Scores, limit: int, ids: NDArray[np.uint32]) -> Rows:
    """Return the places of the best scores above 0, in order; ties go to the lowest ids."""
    # The best of each of many groups: at least `limit` scores are not below the bound.
    each = max(1, len(scores) // (8 * limit))
    groups = scores[: len(scores) // each * each].reshape(each, -1).max(axis=0)
    bound = np.partition(groups, -limit)[-limit] if len(groups) >= limit else 0
    places: Rows = (scores >= bound if bound > 0 else scores > 0).nonzero()[0]
    if len(places) <= limit:
        return places
    found = scores[places]
    bound = np.partition(found, -limit)[-limit]
    above, tied = places[found > bound], places[found == bound]
    return np.sort(np.concatenate([above, tied[ids[tied].argsort()[: limit - len(above)]]]))


def _smallest(distances: NDArray[np.unsignedinteger], wanted: int, far: int = 65_535) -> Rows:
    """Return the places, in order, of at least `wanted` rows that are not far, with all ties."""
    bound = int(np.bincount(distances, minlength=1).cumsum().searchsorted(wanted))
    near: Rows = (distances <= min(bound, far - 1)).nonzero()[0]
    return near
