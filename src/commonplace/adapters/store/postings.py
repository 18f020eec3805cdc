"""Which sections have which terms, in arrays that are made once and never changed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.adapters.store.terms import TEXT

OFTEN = np.float32(TEXT / 2)  # what a term that is kept as bits counts in each of its rows
COMMON_SHARE = 16     # a term in more than a sixteenth of a large run is kept as one bit a section
LARGE_RUN = 4_096

Rows = NDArray[np.intp]
Scores = NDArray[np.float32]
Postings = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Run:
    """The postings of rows that came in together, sorted by term. A few runs of growing size make a library."""

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
            rows = np.unpackbits(bits, count=self.last - self.first).nonzero()[0] + self.first
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
        """Places of those rows, which are in order, that have the term, and how much it counts there."""
        low, high = rows.searchsorted((self.first, self.last))
        bits = self.common.get(term)
        if bits is not None:
            own = rows[low:high] - self.first
            places = (bits[own >> 3] >> (7 - (own & 7)).astype(np.uint8) & 1).nonzero()[0] + low
            return places, np.full(len(places), OFTEN, np.float32)
        having, counts = self._span(term)
        if len(having) == 0 or low == high:
            return np.empty(0, np.intp), np.empty(0, np.float32)
        where = having.searchsorted(rows[low:high].astype(np.uint32))
        where[where == len(having)] = 0
        places = (having[where] == rows[low:high]).nonzero()[0]
        return places + low, counts[where[places]] * np.float32(0.5)

    def _span(self, term: int) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
        place = int(self.terms.searchsorted(np.uint32(term)))
        if place == len(self.terms) or self.terms[place] != term:
            return self.rows[:0], self.counts[:0]
        span = slice(self.starts[place], self.starts[place + 1])
        return self.rows[span], self.counts[span]

    def postings(self) -> Postings:
        """Everything again as term, row and count in one number each."""
        rare = packed(np.repeat(self.terms, np.diff(self.starts)), self.rows, self.counts)
        often = [packed(np.full(len(rows), term, np.uint32), rows.astype(np.uint32), np.full(len(rows), TEXT, np.uint8))
                 for term, rows in ((term, self.find(term)[0]) for term in self.common)]
        return np.concatenate([rare, *often])


def packed(each: NDArray[np.uint32], rows: NDArray[np.uint32], counts: NDArray[np.uint8]) -> Postings:
    """Term, row and count in one number, which numpy sorts fastest. There is room for 16 million rows."""
    return each.astype(np.uint64) << np.uint64(32) | rows.astype(np.uint64) << np.uint64(8) | counts


def settled(runs: Sequence[Run], fresh: Sequence[Postings], last: int) -> list[Run]:
    """With a run of what is fresh, together with the runs before it that are not much larger: there are never many."""
    kept, parts = list(runs), list(fresh)
    first = kept[-1].last if kept else 0
    while kept and kept[-1].last - kept[-1].first < 4 * (last - first):
        before = kept.pop()
        parts.append(before.postings())
        first = before.first
    postings = np.concatenate(parts)
    postings.sort()
    return [*kept, _run(postings, first, last)]


def _run(postings: Postings, first: int, last: int) -> Run:
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
