"""Long texts in parts: some sections at a time, and where to read on."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from commonplace.errors import Invalid

_SPACE = re.compile(r"\s*+")


class HasText(Protocol):
    @property
    def text(self) -> str: ...


S = TypeVar("S", bound=HasText)
S_co = TypeVar("S_co", bound=HasText, covariant=True)


class Readable(HasText, Protocol[S_co]):
    """A FullItem or an OpenDisk."""

    @property
    def sections(self) -> Sequence[S_co]: ...


@dataclass(frozen=True, slots=True)
class PlacedSection(Generic[S]):
    index: int  # from 0
    section: S
    start: int  # characters of the part's text
    end: int


@dataclass(frozen=True, slots=True)
class ItemPart(Generic[S]):
    text: str
    sections: tuple[PlacedSection[S], ...]
    next_section: int | None  # where to read on; None at the end
    cut: bool = False  # the only section is longer than the part, which has its beginning


def part_of(full: Readable[S], from_section: int = 0, max_chars: int | None = None) -> ItemPart[S]:
    """Return as many whole sections as fit, at least one. A text without sections is read in
    pieces of `max_chars`, which count as sections."""
    text, longest = full.text, max_chars or max(1, len(full.text))
    places = list(_places(text, full.sections))
    starts = [start for start, _ in places] or list(range(0, len(text), longest)) or [0]
    if not 0 <= from_section < len(starts):
        count = f"{len(starts)} section{'s' * (len(starts) != 1)}"
        raise Invalid(
            f"`from_section` is out of range: the text has {count}.", sections=len(starts)
        )
    edges = [0, *starts[1:], len(text)]
    begin, end = edges[from_section], from_section + 1
    while end < len(starts) and edges[end + 1] - begin <= longest:
        end += 1
    shown = text[begin : min(edges[end], begin + longest)]
    return ItemPart(
        shown,
        tuple(
            PlacedSection(
                n,
                full.sections[n],
                min(places[n][0] - begin, len(shown)),
                min(places[n][1] - begin, len(shown)),
            )
            for n in range(from_section, end if places else from_section)
        ),
        end if end < len(starts) else None,
        begin + len(shown) < edges[end],
    )


def _places(text: str, sections: Sequence[HasText]) -> Iterator[tuple[int, int]]:
    """Yield where each section starts and ends in the text. They follow each other, with blanks
    between them. One that is not there, as notes on a task, is placed at the end."""
    at = 0
    for section in sections:
        found = _SPACE.match(text, at)
        start = found.end() if found else at
        if not text.startswith(section.text, start):
            there = text.find(section.text, start)
            start, at = (start, len(text)) if there < 0 else (there, there + len(section.text))
        else:
            at = start + len(section.text)
        yield start, at
