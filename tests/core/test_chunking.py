"""How texts are cut: where, how large, how fast, and that nothing is lost."""

import random
import tracemalloc

import pytest

from commonplace.model import Mark, Section
from commonplace.text.chunking import LARGEST, SMALLEST, TARGET, count, cut, embedding_text

SENTENCE = "The quick brown fox jumps over the lazy dog and rests near the old river for a while."


def prose(sentences: int) -> str:
    return " ".join([SENTENCE] * sentences)


def letters(text: str) -> str:
    return "".join(text.split())


def words_of(sections: list[Section]) -> list[str]:
    return [word for section in sections for word in section.text.split()]


def test_a_short_text_is_one_section() -> None:
    [section] = cut("Hello there.\n\nHow are you?")
    assert section == Section(0, "Hello there.\n\nHow are you?", word_count=5)


@pytest.mark.parametrize("text", ["", " ", "\n\n\t\n"])
def test_a_text_without_words_has_no_sections(text: str) -> None:
    assert cut(text) == []


def test_long_prose_is_cut_between_sentences_into_sections_of_like_size() -> None:
    sections = cut(prose(100))
    assert [section.position for section in sections] == list(range(len(sections)))
    assert all(section.text.endswith(".") for section in sections)
    assert all(TARGET * 0.8 <= section.word_count <= LARGEST for section in sections)


def test_the_number_of_a_list_stays_with_what_it_counts() -> None:
    points = [
        f"{n}. Fill tank {n} slowly and write down how much it took, then close the valve before the next"
        for n in range(1, 61)
    ]
    sections = cut("\n".join(points))
    assert len(sections) > 3
    assert [line for section in sections for line in section.text.splitlines()] == points


def test_paragraphs_are_kept_whole() -> None:
    paragraph = prose(6)
    sections = cut("\n\n".join([paragraph] * 9))
    assert len(sections) > 1
    assert all(
        section.text.split("\n\n") == [paragraph] * section.text.count("\n\n") + [paragraph]
        for section in sections
    )


def test_a_section_begins_at_a_heading_and_knows_the_headings_above_it() -> None:
    text = "\n\n".join(
        f"{heading}\n\n{prose(8)}"
        for heading in ("# Guide", "## Install", "### Linux", "## Use ##")
    )
    sections = cut(text)
    assert [section.heading for section in sections] == [
        "Guide",
        "Guide > Install",
        "Guide > Install > Linux",
        "Guide > Use",
    ]
    assert [section.text.splitlines()[0] for section in sections] == [
        "# Guide",
        "## Install",
        "### Linux",
        "## Use ##",
    ]


def test_short_chapters_share_a_section() -> None:
    sections = cut("\n\n".join(f"# Part {number}\n\n{prose(4)}" for number in range(4)))
    assert [section.heading for section in sections] == ["", ""]
    assert [section.text.count("# Part") for section in sections] == [2, 2]


def test_a_heading_stays_with_the_text_below_it() -> None:
    sections = cut("\n\n".join(f"## Part {number}\n\n{prose(9)}" for number in range(20)))
    assert [section.heading for section in sections] == [f"Part {number}" for number in range(20)]


def test_what_is_too_short_to_stand_alone_goes_with_its_neighbour() -> None:
    sections = cut(
        f"# Notes\n\n## First\n\nTiny.\n\n## Second\n\n{prose(8)}\n\n## Last\n\nTiny too."
    )
    assert len(sections) == 1
    assert sections[0].heading == "Notes"


def test_comments_in_code_are_no_headings() -> None:
    code = "import os\n# where we are\nprint(os.getcwd())"
    assert [section.heading for section in cut(f"```python\n# comment\n{code}\n```\n\n{code}")] == [
        ""
    ]


def test_code_blocks_and_tables_are_kept_whole_where_they_fit() -> None:
    code = (
        "```python\n"
        + "\n\n".join(f"def function_{n}():\n    return value_{n}" for n in range(20))
        + "\n```"
    )
    table = "\n".join(f"| row {n} | value | other value |" for n in range(20))
    sections = cut("\n\n".join([prose(8), code, prose(8), table, prose(8)]))
    assert len(sections) > 2
    assert sum(code in section.text for section in sections) == 1
    assert sum(table in section.text for section in sections) == 1


def test_code_that_does_not_fit_is_cut_between_lines() -> None:
    lines = [f"    register(handler_{n}, priority={n})" for n in range(400)]
    sections = cut("```python\n" + "\n".join(lines) + "\n```")
    assert len(sections) > 1
    assert {line.strip() for section in sections for line in section.text.splitlines()} == {
        "```python",
        *map(str.strip, lines),
        "```",
    }


def test_text_without_spaces_is_cut_by_its_characters() -> None:
    sections = cut("東京都は日本の首都である。" * 200)
    assert all(section.text.endswith("。") for section in sections)
    assert all(SMALLEST <= section.word_count <= LARGEST for section in sections)


def test_words_are_counted_in_any_script() -> None:
    assert count("three small words") == 3
    assert count("東京都は日本の首都") == 1 + 4


def test_identifiers_in_text_and_title_add_search_words() -> None:
    [section] = cut("Call runTarget once.", title="DiffExecutor")
    assert section.extra.split() == ["diff", "executor", "run", "target"]


HOSTILE = {
    "no newline": "word " * 100_000,
    "no space": "a" * 500_000,
    "no letter": "." * 500_000,
    "only newlines": "\n" * 500_000,
    "cjk": "東京都" * 166_000,
    "kana and latin": "aあ" * 250_000,
    "one accent": "a" * 499_999 + "é",
    "headings": "".join(f"{'#' * (n % 6 + 1)} heading {n}\n" for n in range(30_000)),
    "empty headings": "# " * 250_000,
    "one endless heading": "# " + "word " * 100_000,
    "open fences": "```python\n" * 50_000,
    "almost fences": ("```" + "a" * 1000 + "`\n") * 490,
    "table": "| a | b |\n" * 50_000,
    "identifiers": "fooBar" * 80_000,
    "quotes": "“Oh!” " * 80_000,
    "nul": "\0 " * 250_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_long_texts_of_anything_are_cut_whole(text: str) -> None:
    text = text[:150_000]
    sections = cut(text)
    assert "".join(letters(section.text) for section in sections) == letters(text)
    assert all(section.text and len(section.heading) < 1000 for section in sections)


def test_nothing_is_lost_whatever_the_text_is_made_of() -> None:
    chance = random.Random(7)
    parts = [
        "# ",
        "## Head\n",
        "\n",
        "\n\n",
        "```\n",
        "~~~\n",
        "| a | b |\n",
        SENTENCE,
        " ",
        "word ",
        "東京。",
        "x" * 3000,
        "\t- ",
    ]
    for _ in range(200):
        text = "".join(chance.choices(parts, k=chance.randrange(1, 60)))
        assert "".join(letters(section.text) for section in cut(text)) == letters(text)


def test_words_keep_their_order() -> None:
    text = "\n\n".join(" ".join(f"w{n}-{m}" for m in range(90)) + "." for n in range(50))
    assert words_of(cut(text)) == text.split()


def test_what_is_embedded_says_where_the_section_stands() -> None:
    section = Section(0, "Call `runTarget` first.", heading="Use > Runs")
    assert (
        embedding_text("fuzz_guide", section) == "fuzz guide\nUse > Runs\nCall `run Target` first."
    )


def test_a_title_that_the_section_begins_with_is_not_embedded_twice() -> None:
    assert embedding_text("Guide", Section(0, "# Guide\n\nRead me.")) == "# Guide\n\nRead me."


def test_a_section_is_where_the_last_mark_before_it_says() -> None:
    pages = [
        f"Page {n}. " + "The heron stands in the shallow water and waits. " * 12
        for n in range(1, 6)
    ]
    starts = [sum(len(page) + 2 for page in pages[:n]) for n in range(5)]
    marks = [Mark(at, {"page": n + 1}) for n, at in enumerate(starts)]
    text = "\n\n".join(pages)
    sections = cut(text, "Herons", marks)
    assert len(sections) > 2
    for section in sections:
        at = next(
            at
            for at in range(len(text))
            if text.startswith(section.text, at) and at >= starts[section.locator["page"] - 1]
        )
        assert section.locator["page"] == sum(start <= at for start in starts)
    assert [section.locator for section in cut(text, "Herons", [Mark(len(text), {"page": 9})])] == [
        {}
    ] * len(sections)


@pytest.mark.parametrize("piece", ["a ", "a\n\n", "- a\n"])
def test_cutting_a_long_text_takes_little_more_memory_than_its_sections(piece: str) -> None:
    """Of a text of many short words or lines, far more pieces than sections could be held at once."""
    text = piece * (500_000 // len(piece))
    tracemalloc.start()
    sections = cut(text)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert letters("".join(section.text for section in sections)) == letters(text)
    assert peak - kept < 8_000_000


@pytest.mark.parametrize(
    "piece", ["word ", "words and more", "\u3042\u3044 ", "a\u2028b\n", "\u00e9t\u00e9 "]
)
def test_words_of_long_texts_are_counted_as_those_of_short_ones(piece: str) -> None:
    text = piece * 60_000
    spaced = len(text.split())
    unspaced = sum("\u3040" <= letter <= "\u309f" for letter in text)
    assert count(text) == spaced + unspaced // 2
