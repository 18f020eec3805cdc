"""Postings: which sections have which terms, in arrays that never change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

COMMON_SHARE = 5  # a term in more than a fifth of a large run takes one byte a section
LARGE_RUN = 4_096
SPREAD_FROM = 1_000  # rows; for more, a term's postings are spread over all rows first

Rows = NDArray[np.intp]
Scores = NDArray[np.float32]
Postings = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Run:
    """Postings of rows that were added together, by term. A library has a few, of growing size."""

    terms: NDArray[np.uint32]
    starts: NDArray[np.int64]
    rows: NDArray[np.uint32]
    counts: NDArray[np.uint8]
    common: dict[int, NDArray[np.uint8]]  # term -> counts in the rows from `first` on
    first: int
    last: int

    def all(self, term: int) -> tuple[Rows | slice, Scores]:
        """Return the rows that have a rare term, or all rows for a common one, and its counts."""
        if (dense := self.common.get(term)) is not None:
            return slice(self.first, self.last), dense * np.float32(0.5)
        having, counts = self._span(term)
        return having.astype(np.intp), counts * np.float32(0.5)

    def frequency(self, term: int, among: NDArray[np.bool_] | None = None) -> int:
        """Count the rows that have a term, of all or of those in a mask."""
        counts = self.common.get(term)
        if counts is None:
            having = self._span(term)[0]
            return len(having) if among is None else int(np.count_nonzero(among[having]))
        return int(
            np.count_nonzero(counts if among is None else counts[among[self.first : self.last]])
        )

    def among(self, term: int, rows: Rows) -> tuple[Rows, Scores]:
        """Return the places of sorted rows that have the term, and its counts there."""
        low, high = rows.searchsorted((self.first, self.last))
        counts = self.common.get(term)
        if counts is None and high - low >= SPREAD_FROM:
            having, listed = self._span(term)
            counts = np.zeros(self.last - self.first, np.uint8)
            counts[having - np.uint32(self.first)] = listed
        if counts is not None:
            own = counts[rows[low:high] - self.first]
            places = own.nonzero()[0]
            return places + low, own[places] * np.float32(0.5)
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

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> "Run":
        return cls(
            arrays["terms"],
            arrays["starts"],
            arrays["rows"],
            arrays["counts"],
            dict(zip(arrays["common"].tolist(), arrays["dense"], strict=True)),
            *arrays["span"].tolist(),
        )

    def arrays(self) -> list[tuple[str, NDArray[Any]]]:
        """Return the arrays that `of` restores the run from."""
        return [
            ("terms", self.terms),
            ("starts", self.starts),
            ("rows", self.rows),
            ("counts", self.counts),
            ("common", np.fromiter(self.common, np.uint32, len(self.common))),
            ("dense", np.array([*self.common.values()], np.uint8)),
            ("span", np.array([self.first, self.last])),
        ]

    def without_dead(self, alive: NDArray[np.bool_]) -> "Run":
        """Return the run without deleted rows, and with the numbers that rows have then."""
        before = np.append(0, np.cumsum(alive))
        kept = alive[self.rows]
        starts = np.append(0, np.cumsum(kept))[self.starts]
        used, mine = starts[1:] > starts[:-1], alive[self.first : self.last]
        return Run(
            self.terms[used],
            np.append(starts[:-1][used], starts[-1]),
            before[self.rows[kept]].astype(np.uint32),
            self.counts[kept],
            {term: counts[mine] for term, counts in self.common.items()},
            int(before[self.first]),
            int(before[self.last]),
        )

    def postings(self) -> Postings:
        """Return all postings as packed numbers."""
        rare = pack_postings(np.repeat(self.terms, np.diff(self.starts)), self.rows, self.counts)
        often = []
        for term, counts in self.common.items():
            rows = counts.nonzero()[0]
            often.append(
                pack_postings(
                    np.full(len(rows), term, np.uint32),
                    (rows + self.first).astype(np.uint32),
                    counts[rows],
                )
            )
        return np.concatenate([rare, *often])


def pack_postings(
    each: NDArray[np.uint32], rows: NDArray[np.uint32], counts: NDArray[np.uint8]
) -> Postings:
    """Pack term, row and count into numbers, which numpy sorts fastest. Up to 16 million rows."""
    return each.astype(np.uint64) << np.uint64(32) | rows.astype(np.uint64) << np.uint64(8) | counts


def merge_runs(runs: Sequence[Run], fresh: Sequence[Postings], last: int) -> list[Run]:
    """Add new postings as a run, merged with earlier runs that are not much larger."""
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
    each, rows = (
        (postings >> np.uint64(32)).astype(np.uint32),
        (postings >> np.uint64(8)).astype(np.uint32) & np.uint32(0xFFFFFF),
    )
    counts = postings.astype(np.uint8)
    starts = np.append(np.flatnonzero(np.append(len(each) > 0, each[1:] != each[:-1])), len(each))
    distinct, lengths = each[starts[:-1]], np.diff(starts)
    often = (
        lengths > (last - first) // COMMON_SHARE
        if last - first >= LARGE_RUN
        else np.zeros(len(lengths), bool)
    )
    kept, common = np.ones(len(each), bool), {}
    for place in often.nonzero()[0]:
        span = slice(starts[place], starts[place + 1])
        dense = np.zeros(last - first, np.uint8)
        dense[rows[span] - first] = counts[span]
        kept[span], common[int(distinct[place])] = False, dense
    return Run(
        distinct[~often],
        np.concatenate([[0], np.cumsum(lengths[~often])]),
        rows[kept],
        counts[kept],
        common,
        first,
        last,
    )
