"""Long texts are read in parts, which together are the text."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from commonplace.core.items.item_parts import Part, part_of, read_part
from commonplace.errors import Invalid
from commonplace.model import Section
from commonplace.text.chunking import cut
from tests.interfaces.house import open_house

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


def part(full: Full, from_section: int = 0, max_chars: int | None = None) -> Part:
    return read_part(full.text, full.sections, from_section, max_chars)


def parts(full: Full, max_chars: int | None) -> list[Part]:
    found = [part(full, 0, max_chars)]
    while (at := found[-1].next_section) is not None:
        assert at > sum(len(each.places) for each in found) - 1
        found.append(part(full, at, max_chars))
    return found


@given(text=TEXTS, max_chars=st.one_of(st.none(), st.integers(1, 3_000)))
def test_parts_are_the_text(text: str, max_chars: int | None) -> None:
    full = Full(text, cut(text))
    found = parts(full, max_chars)

    if not any(each.cut for each in found):
        assert "".join(each.text for each in found) == text
    assert [p.position for each in found for p in each.places] == list(range(len(full.sections)))
    for each in found:
        assert max_chars is None or len(each.text) <= max_chars
        assert not each.cut or len(each.places) == 1
        for place in each.places:
            shown, section = each.text[place.start : place.end], full.sections[place.position]
            assert shown == section.text[: len(shown)]
            assert each.cut or shown == section.text


@given(text=TEXTS, max_chars=st.integers(1, 3_000))
def test_parts_are_as_large_as_possible(text: str, max_chars: int) -> None:
    full = Full(text, cut(text))
    found = parts(full, max_chars)
    rests = [len(part(full, n).text) for n in range(len(full.sections))] + [0]
    for each in found:
        if each.places and (n := each.next_section) is not None:
            assert each.cut or len(each.text) + rests[n] - rests[n + 1] > max_chars


@given(text=TEXTS, max_chars=st.one_of(st.none(), st.integers(1, 500)))
def test_a_text_without_sections_is_read_in_pieces(text: str, max_chars: int | None) -> None:
    found = parts(Full(text), max_chars)

    assert "".join(each.text for each in found) == text
    assert all(not each.places and not each.cut for each in found)
    assert max_chars is None or all(len(each.text) <= max_chars for each in found)


@given(text=TEXTS, start=st.integers(0, 10), max_chars=st.one_of(st.none(), st.integers(1, 3_000)))
def test_any_section_can_be_the_first(text: str, start: int, max_chars: int | None) -> None:
    full = Full(text, cut(text))
    if start < len(full.sections):
        found = part(full, start, max_chars)
        assert found.places[0].position == start
        assert start == 0 or found.places[0].start == 0
        assert full.text.find(found.text) >= 0


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
        part(full, at, 3)


def test_an_empty_text_is_one_part() -> None:
    assert part(Full(""), 0, 200) == Part("", (), None, False)


def test_a_section_that_is_longer_than_a_part_is_cut() -> None:
    text = "word " * 100 + "\n\n# Next\n\n" + "more " * 100
    full = Full(text, cut(text))
    first = part(full, 0, 50)
    assert (first.text, first.cut, first.next_section) == (text[:50], True, 1)
    assert (first.places[0].start, first.places[0].end) == (0, 50)


def test_repeated_paragraphs_keep_their_places() -> None:
    text = "\n\n".join(["The same words again and again. " * 25] * 6)
    full = Full(text, cut(text))
    starts = [
        each.places[0].start + sum(len(other.text) for other in parts(full, 900)[:n])
        for n, each in enumerate(parts(full, 900))
    ]
    assert starts == sorted(set(starts)) and len(starts) == len(full.sections)


def test_notes_of_a_task_are_sections_that_are_not_in_its_text() -> None:
    text = "Mend the fence by the river. " * 30
    full = Full(text, cut(f"{text}\n\n## Notes\n\nAnn: " + "It rained, so the wood is wet. " * 60))
    found = parts(full, 400)
    assert "".join(each.text for each in found) == text or any(each.cut for each in found)
    whole = part(full)
    assert whole.text == text and len(whole.places) == len(full.sections)
    assert whole.places[-1].start == whole.places[-1].end == len(text)


@pytest.mark.anyio
async def test_a_part_of_an_item_has_what_its_sections_are_called(data_dir: Path) -> None:
    text = "\n\n".join(f"# Part {n}\n\n" + "The zebra grazes by the river. " * 30 for n in (1, 2))
    async with open_house(data_dir) as house:
        item_id, _ = await house.add("Zebras", text=text)
        full = await house.app.library.read(house.owner, item_id)
    found = part_of(full, 1, 2_000)
    assert (found.item, found.folders, found.transcription) == (full.item, (), None)
    assert [(each.position, each.heading) for each in found.sections] == [(1, "Part 2")]
    assert found.text[: found.sections[0].end] == full.sections[1].text
    assert found.next_section is None and not found.cut
