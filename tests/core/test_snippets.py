"""What hits show of a passage: its words, without the marks of Markdown and HTML."""

import pytest

from commonplace.text.snippets import Part, plain_text, shortened, snippet


@pytest.mark.parametrize(
    ("markdown", "plain"),
    [
        ("## **The Birth of Chaos**", "The Birth of Chaos"),
        ("Other activities\\[edit\\]", "Other activities[edit]"),
        ("in 1999.<sup>\\[231\\]</sup> Later", "in 1999.[231] Later"),
        (
            "a [link](https://example.org/a_b), a [[Page|name]] and [[Page]]",
            "a link, a name and Page",
        ),
        ("![A map](map.png) [![badge](b.svg)](https://example.org)", "A map badge"),
        ("see [the rule][1] and that[^2].", "see the rule and that."),
        ("- [x] done\n- [ ] to do\n1. first\n> said", "done to do first said"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "a b 1 2"),
        ("```python\nprint(`x`)\n```\n~~gone~~", "print(x) gone"),
        ("R&amp;D <!-- hidden --> x &lt; y", "R&D x < y"),
        ("1 \\* 2, snake_case, __init__, List<int>, a < b > c", None),
    ],
)
def test_marks_are_left_out_and_words_stay(markdown: str, plain: str | None) -> None:
    expected = "1 * 2, snake_case, __init__, List<int>, a < b > c" if plain is None else plain
    assert plain_text(markdown) == expected


def test_the_part_that_has_the_words_is_shown() -> None:
    text = "Nothing of note. " * 40 + "Here the **narwhals** swim. " + "Nothing again. " * 40
    parts = snippet(text, "where does a narwhal swim")
    assert [part.text for part in parts if part.is_asked] == ["narwhals", "swim"]
    assert parts[0] == Part("… ", False) and parts[-1] == Part(" …", False)
    assert shortened(text, "narwhal", 60) == "".join(p.text for p in snippet(text, "narwhal", 60))
    assert "narwhals" in shortened(text, "narwhal", 60) and len(shortened(text, "", 60)) <= 62
    assert snippet("") == []


def test_the_headings_above_a_passage_are_not_said_again() -> None:
    assert shortened("# Birds\n\n## Petrels\n\nThey hide.") == "They hide."
    assert shortened("# Birds\n") == "Birds"
