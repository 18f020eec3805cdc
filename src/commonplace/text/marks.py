"""Carry the places of a source (pages, seconds) over to an edited text."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import takewhile

from commonplace.model import Mark

MOST = 20_000  # words compared one by one; longer changes are compared by line
_WORD = re.compile(r"\S++\s*+|\s++")


def carry_marks(marks: Sequence[Mark], before: str, after: str) -> tuple[Mark, ...]:
    """Return the marks at the places in `after` where their words are now. A mark in a rewritten
    part keeps its share of it; one whose words are deleted moves to what follows them."""
    if not marks or before == after:
        return tuple(marks)
    head = _alike(before, after)
    tail = _alike(reversed(before[head:]), reversed(after[head:]))
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    spans = [(0, head, 0, head), *_aligned(old, new, head)]
    spans.append((len(before) - tail, len(before), len(after) - tail, len(after)))
    starts = [start for start, _, _, _ in spans]
    carried: dict[int, Mark] = {}
    for mark in marks:
        start, end, to, to_end = spans[bisect_right(starts, mark.at) - 1]
        at = to + mark.at - start
        if end - start != to_end - to:
            at = to + (mark.at - start) * (to_end - to) // (end - start)
            while at > to and not after[at - 1].isspace():
                at -= 1
        if at < len(after):
            carried[at] = replace(mark, at=at)  # of two at one place, the later one
    return tuple(carried[at] for at in sorted(carried))


def _aligned(old: str, new: str, at: int) -> list[tuple[int, int, int, int]]:
    """Return (start, end, new start, new end) of equal and rewritten parts of two texts, in order.
    The texts begin at character `at` of the whole."""
    many = old.count(" ") + new.count(" ") > MOST
    pieces, others = (
        text.splitlines(keepends=True) if many else _WORD.findall(text) for text in (old, new)
    )
    if len(pieces) + len(others) > 2 * MOST:
        return [(at, at + len(old), at, at + len(new))]
    here, there = (_edges(each, at) for each in (pieces, others))
    return [
        (here[a], here[b], there[c], there[d])
        for _, a, b, c, d in SequenceMatcher(None, pieces, others).get_opcodes()
        if b > a
    ]


def _alike(one: Iterable[str], other: Iterable[str]) -> int:
    """Return the length of the beginning that two texts share."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _edges(pieces: Sequence[str], at: int) -> list[int]:
    edges = [at]
    for piece in pieces:
        edges.append(edges[-1] + len(piece))
    return edges
