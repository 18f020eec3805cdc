"""Long texts in parts: some sections at a time, and where to read on."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from commonplace.errors import Invalid
from commonplace.model import Folder, FullItem, Item, Job, Json

_SPACE = re.compile(r"\s*+")


class HasText(Protocol):
    @property
    def text(self) -> str: ...


class Place(NamedTuple):
    """A section in the text of a part. A tuple, because every read makes dozens."""

    position: int  # from 0
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Part:
    text: str
    places: tuple[Place, ...]
    next_section: int | None  # where to read on; None at the end
    cut: bool  # its only section is longer, and this is its beginning


class SectionPart(NamedTuple):
    position: int  # from 0
    heading: str
    locator: Json
    word_count: int
    key_points: tuple[str, ...]
    start: int  # characters of the part's text
    end: int


@dataclass(frozen=True, slots=True)
class ItemPart:
    """An item with a part of its text."""

    item: Item
    folders: tuple[Folder, ...]
    transcription: Job | None
    text: str
    sections: tuple[SectionPart, ...]
    next_section: int | None
    cut: bool
    full: FullItem


def part_of(full: FullItem, from_section: int = 0, max_chars: int | None = None) -> ItemPart:
    part = read_part(full.text, full.sections, from_section, max_chars)
    sections = tuple(
        SectionPart(
            place.position,
            full.sections[place.position].heading,
            full.sections[place.position].locator,
            full.sections[place.position].word_count,
            full.sections[place.position].key_points,
            place.start,
            place.end,
        )
        for place in part.places
    )
    return ItemPart(
        full.item,
        full.folders,
        full.transcription,
        part.text,
        sections,
        part.next_section,
        part.cut,
        full,
    )


def read_part(
    text: str, sections: Sequence[HasText], from_section: int = 0, max_chars: int | None = None
) -> Part:
    """Return as many whole sections as fit, at least one. A text without sections is read in
    pieces of `max_chars`, which count as sections."""
    longest = max_chars or max(1, len(text))
    places = list(_places(text, sections))
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
    return Part(
        shown,
        tuple(
            Place(n, *(min(edge - begin, len(shown)) for edge in places[n]))
            for n in range(from_section, end if places else from_section)
        ),
        end if edges[end] < len(text) else None,  # notes on a task come after the text
        begin + len(shown) < edges[end],
    )


def _places(text: str, sections: Sequence[HasText]) -> Iterator[tuple[int, int]]:
    """Yield where each section starts and ends in the text. They follow each other, with blanks
    between them. One that is not there, as notes on a task, is placed at the end."""
    at = 0
    for section in sections:
        blank = _SPACE.match(text, at)
        start = blank.end() if blank else at
        found = start if text.startswith(section.text, start) else text.find(section.text, start)
        start, at = (found, found + len(section.text)) if found >= 0 else (start, len(text))
        yield start, at
