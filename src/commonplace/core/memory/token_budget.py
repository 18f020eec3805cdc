"""Fill a context pack line by line, the most useful first, until its token budget is spent."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

_RUNS = re.compile(r"[A-Za-z]+|\d+|\n+|[ \t]+|[^A-Za-z\d\s]")
_WORD = re.compile(r"\w+")
ALIKE = 0.8  # share of common words from which two texts count as the same
LINE_CHARS = 420  # of a line's text, if the budget allows
SHORT_CHARS = 120
CUT = "…"


def tokens(text: str) -> int:
    """Estimate the number of tokens of a text, never too low: one per four letters of a word (per
    letter with inner capitals, as in ids), per digit, mark and line break, and per two bytes of
    other scripts. English prose is overestimated by a third."""
    return sum(_cost(run) for run in _RUNS.findall(text))


def _cost(run: str) -> int:
    if run[0].isascii() and run[0].isalpha():
        return math.ceil(len(run) / 4) if run[1:].islower() or len(run) == 1 else len(run)
    if run[0] in " \t":
        return len(run) // 4  # one space belongs to the next word
    if run[0].isdecimal():
        return len(run) + 1  # the space before it may count
    return len(run) if run[0].isascii() else math.ceil(len(run.encode()) / 2)


@dataclass(frozen=True, slots=True)
class Line:
    section: str
    id: str  # of the entity
    item_id: str
    type: str
    title: str
    text: str
    status: str
    score: float  # for the order
    reason: str

    def markdown(self) -> str:
        flag = f" ({self.status})" if self.status else ""
        return f"- [{self.id}] **{self.title}**{flag}{f': {self.text}' if self.text else ''}"


@dataclass(frozen=True, slots=True)
class Packed:
    lines: tuple[Line, ...]
    left_out: dict[str, int]  # by section, for lack of room
    repeats: int  # duplicates of other lines
    tokens: int  # of the whole text


def pack(
    lines: Sequence[Line], *, limit: int, budget: int, headings: dict[str, str], head: str = ""
) -> Packed:
    """Choose the best `limit` lines that fit under the head, each item once, without duplicates. A
    section gets more than half the room only if the others leave it, so that much active work does
    not crowd out decisions."""
    chosen: list[tuple[Line, frozenset[str]]] = []
    most_left = Counter(line.section for line in lines)
    spent, repeats = tokens(f"{head}\n\n{left_out(most_left, headings)}\n\n"), 0
    left: Counter[str] = Counter()
    taken: Counter[str] = Counter()  # lines by section
    cost: Counter[str] = Counter()  # and their tokens
    late: list[tuple[Line, bool]] = []
    seen: set[str] = set()
    for line, is_late in chain(((line, False) for line in sorted(lines, key=_score)), late):
        if line.item_id in seen:
            continue
        if not is_late and (2 * taken[line.section] >= limit or 2 * cost[line.section] >= budget):
            late.append((line, True))
            continue
        seen.add(line.item_id)
        if len(chosen) == limit:
            left[line.section] += 1
            continue
        words = frozenset(_WORD.findall(f"{line.title} {line.text}".lower()))
        if any(_same(words, other) for _, other in chosen):
            repeats += 1
            continue
        heading = 0 if taken[line.section] else tokens(f"\n\n## {headings[line.section]}\n\n")
        fitted = _fit(line, budget - spent - heading)
        if fitted is None:
            left[line.section] += 1
            continue
        price = heading + tokens(fitted.markdown()) + 1
        spent += price
        cost[line.section] += price
        taken[line.section] += 1
        chosen.append((fitted, words))
    return Packed(
        tuple(sorted((line for line, _ in chosen), key=_score)), dict(left), repeats, spent
    )


def _score(line: Line) -> float:
    return -line.score


def left_out(counts: Mapping[str, int], headings: dict[str, str]) -> str:
    told = ", ".join(f"{headings[name].lower()} {count}" for name, count in counts.items())
    return f"Left out for lack of room: {told}." if told else ""


def _fit(line: Line, room: int) -> Line | None:
    """Shorten a line to fit. None if not even its title fits."""
    for longest in (LINE_CHARS, SHORT_CHARS, 0):
        short = Line(
            line.section,
            line.id,
            line.item_id,
            line.type,
            shortened(line.title, 200),
            shortened(line.text, longest),
            line.status,
            line.score,
            line.reason,
        )
        if tokens(short.markdown()) + 1 <= room:
            return short
    return None


def shortened(text: str, longest: int) -> str:
    """Join to one line, cut after a whole word."""
    text = " ".join(text.split())
    if len(text) <= longest:
        return text
    kept = text[: max(0, longest - 1)]
    return (
        (kept[: kept.rfind(" ")] if " " in kept[longest // 2 :] else kept).rstrip(" ,;:") + CUT
        if kept
        else ""
    )


def _same(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= ALIKE * len(one | other) if one and other else False
