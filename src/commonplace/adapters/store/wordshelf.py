"""One library's words in memory: for each term the sections that have it, scored by BM25.

Counts and frequencies are the library's own, so no other library's texts move its scores. Phrases are looked for in the
best candidates only, by reading the order of their terms from the database.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.adapters.store.database import Tx
from commonplace.adapters.store.follower import Follower, Owners, Ranking, Rows, item_key, room_for
from commonplace.adapters.store.terms import TEXT, phrase_counts, terms
from commonplace.model import Words

K1, B = 1.2, 0.75
CANDIDATES = 300      # sections that are looked at for phrases
PHRASE = 0.75         # what a phrase counts: its words have been counted already
OFTEN = np.float32(TEXT / 2)  # what a term that is kept as bits counts in each of its rows
FAINT = 0.01          # what a word that is only part of a phrase counts in choosing them
COMMON_SHARE = 16     # a term in more than a sixteenth of a large run is kept as one bit a section
LARGE_RUN = 4_096
DEAD_SHARE, DEAD_ROWS = 0.2, 1_000  # more than these, and everything is read again

Scores = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Run:
    """The postings of rows that came in together, sorted by term. A few runs of growing size make a shelf."""

    terms: NDArray[np.uint32]
    starts: NDArray[np.int64]
    rows: NDArray[np.uint32]
    counts: NDArray[np.uint8]
    common: dict[int, NDArray[np.uint8]]  # term -> bits of the rows from `first` on
    first: int
    last: int

    def find(self, term: int) -> tuple[Rows, Scores]:
        """Rows that have the term, and how much it counts there."""
        bits = self.common.get(term)
        if bits is not None:
            rows = np.flatnonzero(np.unpackbits(bits, count=self.last - self.first)) + self.first
            return rows, np.full(len(rows), OFTEN, np.float32)
        having, counts = self._span(term)
        return having.astype(np.intp), counts * np.float32(0.5)

    def mask(self, term: int) -> NDArray[np.uint8] | None:
        """For a common term, 1 for each row from `first` on that has it."""
        bits = self.common.get(term)
        return None if bits is None else np.unpackbits(bits, count=self.last - self.first)

    def frequency(self, term: int) -> int:
        bits = self.common.get(term)
        return len(self._span(term)[0]) if bits is None else int(np.bitwise_count(bits).sum())

    def among(self, term: int, rows: Rows) -> tuple[Rows, Scores]:
        """Places of those rows that have the term, and how much it counts there."""
        low, high = np.searchsorted(rows, (self.first, self.last))
        bits = self.common.get(term)
        if bits is not None:
            own = rows[low:high] - self.first
            places = np.flatnonzero(bits[own >> 3] >> (7 - (own & 7)).astype(np.uint8) & 1) + low
            return places, np.full(len(places), OFTEN, np.float32)
        having, counts = self._span(term)
        if len(having) == 0 or low == high:
            return np.empty(0, np.intp), np.empty(0, np.float32)
        where = np.minimum(np.searchsorted(having, rows[low:high].astype(np.uint32)), len(having) - 1)
        places = np.flatnonzero(having[where] == rows[low:high])
        return places + low, counts[where[places]] * np.float32(0.5)

    def _span(self, term: int) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
        place = int(np.searchsorted(self.terms, np.uint32(term)))
        if place == len(self.terms) or self.terms[place] != term:
            return self.rows[:0], self.counts[:0]
        span = slice(self.starts[place], self.starts[place + 1])
        return self.rows[span], self.counts[span]

    def postings(self) -> NDArray[np.uint64]:
        """Everything again as term, row and count in one number each."""
        rare = _packed(np.repeat(self.terms, np.diff(self.starts)), self.rows, self.counts)
        often = [_packed(np.full(len(rows), term, np.uint32), rows.astype(np.uint32), np.full(len(rows), TEXT, np.uint8))
                 for term, rows in ((term, self.find(term)[0]) for term in self.common)]
        return np.concatenate([rare, *often])


class WordShelf(Follower):
    """Rows only ever grow, and dropped ones are marked; when too many are, everything is read again."""

    def clear(self) -> None:
        self._owners = Owners()
        self._ids = np.empty(0, np.uint32)
        self._lengths = np.empty(0, np.uint16)
        self._alive = np.empty(0, bool)
        self._living, self._words = 0, 0
        self._runs: list[Run] = []
        self._fresh: list[NDArray[np.uint64]] = []  # postings that are in no run yet

    @property
    def source(self) -> str:
        return "item_id, section_id, terms, counts, length FROM section_terms WHERE library_id = :library_id"

    def reserve(self, size: int) -> None:
        self._owners.reserve(size)
        self._ids, self._lengths = room_for(self._ids, size, 0), room_for(self._lengths, size, 0)
        self._alive = room_for(self._alive, size, 0)

    def append(self, found: Sequence[Any]) -> None:
        if not found:
            return
        start, end = self._owners.count, self._owners.count + len(found)
        lengths = np.array([min(row["length"], 65_535) for row in found], np.uint16)
        self._ids = room_for(self._ids, end, start)
        self._ids[start:end] = [row["section_id"] for row in found]
        self._lengths = room_for(self._lengths, end, start)
        self._lengths[start:end] = lengths
        self._alive = room_for(self._alive, end, start)
        self._alive[start:end] = True
        self._living += len(found)
        self._words += int(lengths.sum(dtype=np.int64))
        self._owners.append([item_key(row["item_id"]) for row in found])
        counts = np.frombuffer(b"".join(row["counts"] for row in found), np.uint8)
        numbers = np.repeat(np.arange(start, end, dtype=np.uint32), [len(row["counts"]) for row in found])
        each = np.frombuffer(b"".join(row["terms"] for row in found), np.uint32)
        self._fresh.append(_packed(each, numbers, counts))

    def _settle(self) -> None:
        """Make a run of what is fresh, together with the runs before it that are not much larger: there are never many."""
        first, last = self._runs[-1].last if self._runs else 0, self._owners.count
        while self._runs and self._runs[-1].last - self._runs[-1].first < 4 * (last - first):
            before = self._runs.pop()
            self._fresh.append(before.postings())
            first = before.first
        postings = np.concatenate(self._fresh)
        self._fresh = []
        postings.sort()
        self._runs.append(_run(postings, first, last))

    def drop(self, items: NDArray[np.int64]) -> None:
        gone = self.rows_of(items)
        self._alive[gone] = False
        self._living -= len(gone)
        self._words -= int(self._lengths[gone].sum(dtype=np.int64))

    @property
    def size(self) -> int:
        return self._owners.count

    def rows_of(self, items: NDArray[np.int64]) -> Rows:
        rows = self._owners.rows_of(items)
        return rows[self._alive[rows]]

    def catch_up(self, tx: Tx) -> None:
        super().catch_up(tx)
        if self._owners.count - self._living > DEAD_SHARE * self._owners.count + DEAD_ROWS:
            self.reload(tx)
        if self._fresh:
            self._settle()

    def search(self, tx: Tx, words: Words, limit: int, rows: Rows | None) -> Ranking:
        """`rows` in order; None: all."""
        phrases = [tuple(terms(" ".join(phrase))) for phrase in words.phrases]
        single = {phrase[0] for phrase in phrases if len(phrase) == 1}
        longer = list(dict.fromkeys(phrase for phrase in phrases if len(phrase) > 1))
        # Few rows are looked up in the postings; for many it is faster to score them all and leave out those outside.
        few = rows if rows is not None and len(rows) * 8 < self._owners.count else None
        scores = self._scores(single, few, rows)
        if not longer:
            return self._best(scores, np.arange(len(scores)) if few is None else few, limit)
        faint = {term for phrase in longer for term in phrase} - single
        chosen = _top(scores + np.float32(FAINT) * self._scores(faint, few, rows) if faint else scores, max(CANDIDATES, limit))
        size, kept = self._living if rows is None else len(rows), chosen if few is None else few[chosen]
        return self._best(scores[chosen] + self._phrase_scores(tx, kept, longer, size), kept, limit)

    def _scores(self, asked: set[int], few: Rows | None, rows: Rows | None) -> Scores:
        """Of the few rows, or of all, with 0 for what is dead or outside."""
        every = slice(0, self._owners.count)
        damped = self._damped(every if few is None else few)
        scores = np.zeros(len(damped), np.float32)
        for term in asked:
            weight = np.float32(self._idf(self._frequency(term), self._living) * (K1 + 1))
            for run in self._runs:
                if few is not None:
                    places, counts = run.among(term, few)
                    scores[places] += counts * weight / (counts + damped[places])
                elif (mask := run.mask(term)) is not None:
                    scores[run.first:run.last] += mask * (weight * OFTEN / (OFTEN + damped[run.first:run.last]))
                else:
                    places, counts = run.find(term)
                    scores[places] += counts * weight / (counts + damped[places])
        if few is None and (rows is not None or self._living < self._owners.count):
            scores[~self._inside(rows)] = 0
        return scores

    def _frequency(self, term: int) -> int:
        """How many living rows have it."""
        if self._living == self._owners.count:
            return sum(run.frequency(term) for run in self._runs)
        return sum(int(np.count_nonzero(self._alive[run.find(term)[0]])) for run in self._runs)

    def _idf(self, frequency: int, size: int) -> float:
        return math.log1p(max(0.0, size - frequency + 0.5) / (frequency + 0.5))

    def _damped(self, rows: Rows | slice) -> Scores:
        average = max(1.0, self._words / max(1, self._living))
        return np.float32(K1 * (1 - B)) + np.float32(K1 * B / average) * self._lengths[rows].astype(np.float32)

    def _phrase_scores(self, tx: Tx, chosen: Rows, phrases: Sequence[tuple[int, ...]], size: int) -> Scores:
        ids = self._ids[chosen].tolist()
        by_id = {row["section_id"]: row["sequence"] for row in tx.all(
            "SELECT section_id, sequence FROM sequences WHERE section_id IN :ids", ids=ids)}
        parts = [by_id.get(section_id, b"") for section_id in ids]
        sequence = np.frombuffer(b"".join(parts), np.uint16)
        owner = np.repeat(np.arange(len(parts)), [len(part) // 2 for part in parts])
        total, damped = np.zeros(len(chosen), np.float32), self._damped(chosen)
        for phrase in phrases:
            counts = phrase_counts(sequence, owner, len(parts), phrase).astype(np.float32)
            frequency = int(np.count_nonzero(counts))  # among the candidates, which hold nearly all there are
            if frequency:
                total += counts * np.float32(self._idf(frequency, size) * (K1 + 1) * PHRASE) / (counts + damped)
        return total

    def _inside(self, rows: Rows | None) -> NDArray[np.bool_]:
        alive = self._alive[:self._owners.count]
        if rows is None:
            return alive
        inside = np.zeros(len(alive), bool)
        inside[rows] = True
        return inside & alive

    def _best(self, scores: Scores, rows: Rows, limit: int) -> Ranking:
        top = _top(scores, limit)
        ids = self._ids[rows[top]].astype(np.int64)
        order = np.lexsort((ids, -scores[top]))
        return ids[order], scores[top][order]


def _top(scores: Scores, limit: int) -> Rows:
    """Places of the best scores above 0, in no order."""
    most = scores.max(initial=0)
    for bound in (most * 0.5, most * 0.25, 0):  # most lie far below the best ones, and need not be put in order
        places = np.flatnonzero(scores > bound)
        if len(places) >= limit:
            return places[np.argpartition(-scores[places], limit - 1)[:limit]]
    return places


def _packed(each: NDArray[np.uint32], rows: NDArray[np.uint32], counts: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Term, row and count in one number, which numpy sorts fastest. There is room for 16 million rows."""
    return each.astype(np.uint64) << np.uint64(32) | rows.astype(np.uint64) << np.uint64(8) | counts


def _run(postings: NDArray[np.uint64], first: int, last: int) -> Run:
    each, rows = (postings >> np.uint64(32)).astype(np.uint32), (postings >> np.uint64(8)).astype(np.uint32) & np.uint32(0xFFFFFF)
    distinct, starts = np.unique(each, return_index=True)
    starts = np.append(starts, len(each))
    often = np.flatnonzero(np.diff(starts) > (last - first) // COMMON_SHARE) if last - first >= LARGE_RUN else ()
    common = dict(_bits(distinct, starts, rows, often, first, last))
    kept = np.ones(len(each), bool)
    for place in often:
        kept[starts[place]:starts[place + 1]] = False
    distinct, starts = np.unique(each[kept], return_index=True)
    return Run(distinct, np.append(starts, np.count_nonzero(kept)), rows[kept], postings.astype(np.uint8)[kept], common,
               first, last)


def _bits(distinct: NDArray[np.uint32], starts: NDArray[np.int64], rows: NDArray[np.uint32], often: Any, first: int,
          last: int) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    for place in often:
        mask = np.zeros(last - first, bool)
        mask[rows[starts[place]:starts[place + 1]] - first] = True
        yield int(distinct[place]), np.packbits(mask)
