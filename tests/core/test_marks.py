"""Places of a source stay beside their words when the text is edited."""

from hypothesis import given, strategies as st

from commonplace.model import Mark
from commonplace.text.marks import MOST, carry_marks

WORDS = st.lists(st.sampled_from(["oak", "elm", "ash", "yew", "fir"]), max_size=9)


def marked(text: str, *words: str) -> list[Mark]:
    return [Mark(text.index(word), {"seconds": n}) for n, word in enumerate(words)]


def carried(before: str, after: str, *words: str) -> list[tuple[object, str]]:
    """Return each time with the word that it stands before."""
    return [
        (mark.locator["seconds"], after[mark.at :].split()[0])
        for mark in carry_marks(marked(before, *words), before, after)
    ]


def test_marks_follow_their_words() -> None:
    before = "one two three. four five six. seven eight nine."
    words = ("one", "four", "seven")
    assert carried(before, before, *words) == [(0, "one"), (1, "four"), (2, "seven")]
    longer = before.replace("two", "two and a half and more")
    assert carried(before, longer, *words) == [(0, "one"), (1, "four"), (2, "seven")]
    assert carried(before, "zero " + before, *words)[1:] == [(1, "four"), (2, "seven")]
    rewritten = before.replace("four five six.", "vier fünf sechs und sieben.")
    assert carried(before, rewritten, *words) == [(0, "one"), (1, "vier"), (2, "seven")]


def test_a_mark_moves_on_when_its_words_are_deleted() -> None:
    before = "um, hello there. four five."
    assert carried(before, "hello there. four five.", "um", "four") == [(0, "hello"), (1, "four")]
    assert carried(before, "four five.", "um", "four") == [(1, "four")]
    assert carried(before, "um, hello there.", "um", "four") == [(0, "um,")]
    assert carried(before, "", "um", "four") == []


def test_texts_too_long_to_compare_keep_the_share_of_each_mark() -> None:
    before, after = ("\n".join(f"{sign} {n}" for n in range(MOST * 2)) for sign in "ab")
    middle = Mark(before.index("\na 20000\n") + 1, {"page": 7})
    [mark] = carry_marks([middle], f"x{before}x", f"y{after}y")
    assert after[mark.at - 1 :].startswith("\nb 2000") or "b 2000" in after[mark.at : mark.at + 9]


@given(WORDS, WORDS, st.sets(st.integers(0, 8)))
def test_marks_stay_in_order_and_inside_the_text(
    before: list[str], after: list[str], places: set[int]
) -> None:
    old, new = " ".join(before), " ".join(after)
    marks = [Mark(len(" ".join(before[:n])), {"page": n}) for n in sorted(places & {*range(9)})]
    found = carry_marks([mark for mark in marks if mark.at < len(old)], old, new)
    assert [mark.at for mark in found] == sorted({mark.at for mark in found})
    assert all(0 <= mark.at < len(new) for mark in found)
    pages = [mark.locator["page"] for mark in found]
    assert pages == sorted(pages)
