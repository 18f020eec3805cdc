"""Long texts are read in parts, which together are the text."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, strategies as st

from commonplace.core.items.item_parts import ItemPart, part_of
from commonplace.errors import Invalid
from commonplace.model import Section
from commonplace.text.chunking import cut

WORDS = st.lists(st.sampled_from(["river", "zebra", "grass", "the"]), min_size=1, max_size=90)
BLOCKS = st.one_of(
    WORDS.map(" ".join),
    WORDS.map(lambda words: ". ".join(words) + "."),
    WORDS.map(lambda words: f"# {words[0]}"),
    WORDS.map(lambda words: "```\n" + "\n".join(words) + "\n```"),
    st.text(max_size=200),
)
TEXTS = st.lists(st.tuples(BLOCKS, st.sampled_from(["\n\n", "\n", " \n\n\t\n"])), max_size=25).map(
    lambda parts: "".join(block + gap for block, gap in parts)
)


@dataclass(frozen=True)
class Full:
    text: str
    sections: Sequence[Section] = ()


def parts(full: Full, max_chars: int | None) -> list[ItemPart[Section]]:
    found = [part_of(full, 0, max_chars)]
    while (at := found[-1].next_section) is not None:
        assert at > sum(len(part.sections) for part in found) - 1
        found.append(part_of(full, at, max_chars))
    return found


@given(text=TEXTS, max_chars=st.one_of(st.none(), st.integers(1, 3_000)))
def test_parts_are_the_text(text: str, max_chars: int | None) -> None:
    full = Full(text, cut(text))
    found = parts(full, max_chars)

    if not any(part.cut for part in found):
        assert "".join(part.text for part in found) == text
    assert [placed.section for part in found for placed in part.sections] == list(full.sections)
    for part in found:
        assert max_chars is None or len(part.text) <= max_chars
        assert not part.cut or len(part.sections) == 1
        for placed in part.sections:
            shown = part.text[placed.start : placed.end]
            assert shown == placed.section.text[: len(shown)]
            assert part.cut or shown == placed.section.text
            assert full.sections[placed.index] is placed.section


@given(text=TEXTS, max_chars=st.integers(1, 3_000))
def test_parts_are_as_large_as_possible(text: str, max_chars: int) -> None:
    full = Full(text, cut(text))
    found = parts(full, max_chars)
    rests = [len(part_of(full, n).text) for n in range(len(full.sections))] + [0]
    for part in found:
        if part.sections and (n := part.next_section) is not None:
            assert part.cut or len(part.text) + rests[n] - rests[n + 1] > max_chars


@given(text=TEXTS, max_chars=st.one_of(st.none(), st.integers(1, 500)))
def test_a_text_without_sections_is_read_in_pieces(text: str, max_chars: int | None) -> None:
    found = parts(Full(text), max_chars)

    assert "".join(part.text for part in found) == text
    assert all(not part.sections and not part.cut for part in found)
    assert max_chars is None or all(len(part.text) <= max_chars for part in found)


@given(text=TEXTS, start=st.integers(0, 10), max_chars=st.one_of(st.none(), st.integers(1, 3_000)))
def test_any_section_can_be_the_first(text: str, start: int, max_chars: int | None) -> None:
    full = Full(text, cut(text))
    if start < len(full.sections):
        part = part_of(full, start, max_chars)
        first = part.sections[0]
        assert first.section is full.sections[start]
        assert start == 0 or first.start == 0
        assert full.text.find(part.text) >= 0


@pytest.mark.parametrize(
    ("full", "at", "said"),
    [
        (Full("one two", cut("one two")), 1, "1 section."),
        (Full("one two", cut("one two")), -1, "1 section."),
        (Full(""), 1, "1 section."),
        (Full("one two"), 4, "3 sections."),
    ],
)
def test_a_section_that_is_not_there_is_refused(full: Full, at: int, said: str) -> None:
    with pytest.raises(Invalid, match=said):
        part_of(full, at, 3)


def test_an_empty_text_is_one_part() -> None:
    assert part_of(Full(""), 0, 200) == ItemPart("", (), None)


def test_a_section_that_is_longer_than_a_part_is_cut() -> None:
    text = "word " * 100 + "\n\n# Next\n\n" + "more " * 100
    full = Full(text, cut(text))
    first = part_of(full, 0, 50)
    assert (first.text, first.cut, first.next_section) == (text[:50], True, 1)
    assert (first.sections[0].start, first.sections[0].end) == (0, 50)


def test_repeated_paragraphs_keep_their_places() -> None:
    text = "\n\n".join(["The same words again and again. " * 25] * 6)
    full = Full(text, cut(text))
    starts = [
        part.sections[0].start + sum(len(other.text) for other in parts(full, 900)[:n])
        for n, part in enumerate(parts(full, 900))
    ]
    assert starts == sorted(set(starts)) and len(starts) == len(full.sections)


def test_notes_of_a_task_are_sections_that_are_not_in_its_text() -> None:
    text = "Mend the fence by the river. " * 30
    full = Full(text, cut(f"{text}\n\n## Notes\n\nAnn: " + "It rained, so the wood is wet. " * 60))
    found = parts(full, 400)
    assert "".join(part.text for part in found) == text or any(part.cut for part in found)
    whole = part_of(full)
    assert whole.text == text and len(whole.sections) == len(full.sections)
    assert whole.sections[-1].start == whole.sections[-1].end == len(text)
