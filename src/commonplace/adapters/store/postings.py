"""Which sections have which terms, in arrays that are made once and never changed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.adapters.store.terms import TEXT

OFTEN = np.float32(TEXT / 2)  # what a term that is kept as bits counts in each of its rows
COMMON_SHARE = 16     # where more than a sixteenth of a large run has a term once, those rows are kept as one bit a section
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
    common: dict[int, NDArray[np.uint8]]  # term -> bits of the rows from `first` on that have it once; others are in `rows`
    first: int
    last: int

    def listed(self, term: int) -> tuple[Rows, Scores]:
        """Rows that have the term, without those that `mask` tells of, and how much it counts there."""
        having, counts = self._span(term)
        return having.astype(np.intp), counts * np.float32(0.5)

    def mask(self, term: int) -> NDArray[np.uint8] | None:
        """For a common term, 1 for each row from `first` on that has it once, where it counts OFTEN."""
        bits = self.common.get(term)
        return None if bits is None else np.unpackbits(bits, count=self.last - self.first)

    def frequency(self, term: int, among: NDArray[np.bool_] | None = None) -> int:
        """How many rows have it, of all or of those that a mask of all rows has."""
        having, bits = self._span(term)[0], self.common.get(term)
        if among is None:
            return len(having) + (0 if bits is None else int(np.bitwise_count(bits).sum()))
        once = 0 if bits is None else np.bitwise_count(bits & np.packbits(among[self.first:self.last])).sum()
        return int(np.count_nonzero(among[having]) + once)

    def among(self, term: int, rows: Rows) -> tuple[Rows, Scores]:
        """Places of those rows, which are in order, that have the term, and how much it counts there."""
        low, high = rows.searchsorted((self.first, self.last))
        having, counts = self._span(term)
        places, found = np.empty(0, np.intp), np.empty(0, np.float32)
        if len(having) and low < high:
            where = having.searchsorted(rows[low:high].astype(np.uint32))
            where[where == len(having)] = 0
            own = (having[where] == rows[low:high]).nonzero()[0]
            places, found = own + low, counts[where[own]] * np.float32(0.5)
        bits = self.common.get(term)
        if bits is None:
            return places, found
        mine = rows[low:high] - self.first
        once = (bits[mine >> 3] >> (7 - (mine & 7)).astype(np.uint8) & 1).nonzero()[0] + low
        return np.concatenate([places, once]), np.concatenate([found, np.full(len(once), OFTEN, np.float32)])

    def _span(self, term: int) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
        place = int(self.terms.searchsorted(np.uint32(term)))
        if place == len(self.terms) or self.terms[place] != term:
            return self.rows[:0], self.counts[:0]
        span = slice(self.starts[place], self.starts[place + 1])
        return self.rows[span], self.counts[span]

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> "Run":
        return cls(arrays["terms"], arrays["starts"], arrays["rows"], arrays["counts"],
                   dict(zip(arrays["common"].tolist(), arrays["bits"], strict=True)), *arrays["span"].tolist())

    def arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """What it can be made of again."""
        yield "terms", self.terms
        yield "starts", self.starts
        yield "rows", self.rows
        yield "counts", self.counts
        yield "common", np.fromiter(self.common, np.uint32, len(self.common))
        yield "bits", np.array([*self.common.values()], np.uint8)
        yield "span", np.array([self.first, self.last])

    def without_dead(self, alive: NDArray[np.bool_]) -> "Run":
        """With the numbers that rows have once the others are gone."""
        before = np.append(0, np.cumsum(alive))
        kept = alive[self.rows]
        starts = np.append(0, np.cumsum(kept))[self.starts]
        used, mine = starts[1:] > starts[:-1], alive[self.first:self.last]
        common = {term: np.packbits(np.unpackbits(bits, count=len(mine))[mine]) for term, bits in self.common.items()}
        return Run(self.terms[used], np.append(starts[:-1][used], starts[-1]), before[self.rows[kept]].astype(np.uint32),
                   self.counts[kept], common, int(before[self.first]), int(before[self.last]))

    def postings(self) -> Postings:
        """Everything again as term, row and count in one number each."""
        rare = packed(np.repeat(self.terms, np.diff(self.starts)), self.rows, self.counts)
        often = []
        for term, bits in self.common.items():
            rows = (np.unpackbits(bits, count=self.last - self.first).nonzero()[0] + self.first).astype(np.uint32)
            often.append(packed(np.full(len(rows), term, np.uint32), rows, np.full(len(rows), TEXT, np.uint8)))
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
    counts = postings.astype(np.uint8)
    starts = np.append(np.flatnonzero(np.append(len(each) > 0, each[1:] != each[:-1])), len(each))
    kept, common = np.ones(len(each), bool), {}
    if last - first >= LARGE_RUN:
        for place in (np.diff(starts) > (last - first) // COMMON_SHARE).nonzero()[0]:
            span = slice(starts[place], starts[place + 1])
            once = counts[span] == TEXT
            if np.count_nonzero(once) > (last - first) // COMMON_SHARE:
                mask = np.zeros(last - first, bool)
                mask[rows[span][once] - first] = True
                kept[span], common[int(each[span.start])] = ~once, np.packbits(mask)
    starts = np.append(0, np.cumsum(kept))[starts]
    used = starts[1:] > starts[:-1]
    distinct = each[kept]
    return Run(distinct[starts[:-1][used]], np.append(starts[:-1][used], starts[-1]), rows[kept], counts[kept], common,
               first, last)
