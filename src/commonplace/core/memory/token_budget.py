"""Fill a context pack within its token budget: the titles of all lines first, then their texts, in
the order of the lines."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

_RUNS = re.compile(r"[A-Za-z]+|\d+|\n+|[ \t]+|[^A-Za-z\d\s]")
TITLE_CHARS = 200
LINE_CHARS = (420, 120)  # of a line's text, if the budget allows
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


class Also(NamedTuple):
    """A near duplicate of a line, which shares its place."""

    id: str  # of the entity
    title: str


@dataclass(frozen=True, slots=True)
class Line:
    section: str
    id: str  # of the entity
    item_id: str
    type: str
    title: str
    text: str
    status: str
    score: float
    reason: str
    also: tuple[Also, ...] = ()

    def markdown(self) -> str:
        flag = f" ({self.status})" if self.status else ""
        text = f": {self.text}" if self.text else ""
        also = ", ".join(f"[{other.id}]" for other in self.also)
        return f"- [{self.id}] **{self.title}**{flag}{text}{f' (also {also})' if also else ''}"

    def shortened(self, longest: int) -> "Line":
        return replace(
            self, title=shortened(self.title, TITLE_CHARS), text=shortened(self.text, longest)
        )


@dataclass(frozen=True, slots=True)
class Packed:
    lines: tuple[Line, ...]
    left_out: dict[str, int]  # by section, for lack of room
    tokens: int  # of the whole text


def pack(
    lines: Sequence[Line], *, limit: int, budget: int, headings: Mapping[str, str], head: str = ""
) -> Packed:
    """Choose the first `limit` lines whose titles fit under the head. What is left of the budget
    goes to their texts, in the same order."""
    most_left = Counter(line.section for line in lines)
    spent = tokens(f"{head}\n\n{left_out(most_left, headings)}\n\n")
    chosen: list[Line] = []
    left: Counter[str] = Counter()
    for place, line in enumerate(lines):
        if len(chosen) == limit:
            left.update(other.section for other in lines[place:])
            break
        cost = _price(line.shortened(0))
        if not any(line.section == other.section for other in chosen):
            cost += tokens(f"\n\n## {headings[line.section]}\n\n")
        if spent + cost > budget:
            left[line.section] += 1
        else:
            chosen.append(line)
            spent += cost
    for place, line in enumerate(chosen):
        bare = line.shortened(0)
        room = budget - spent + _price(bare)
        chosen[place] = next(
            (fuller for fuller in map(line.shortened, LINE_CHARS) if _price(fuller) <= room), bare
        )
        spent = budget - room + _price(chosen[place])
    return Packed(tuple(chosen), dict(left), spent)


def _price(line: Line) -> int:
    return tokens(line.markdown()) + 1


def left_out(counts: Mapping[str, int], headings: Mapping[str, str]) -> str:
    told = ", ".join(f"{headings[name].lower()} {count}" for name, count in counts.items())
    return f"Left out for lack of room: {told}." if told else ""


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
