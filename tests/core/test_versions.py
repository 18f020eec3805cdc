"""What changed between two texts, line by line."""

from hypothesis import given, strategies as st

from commonplace.core.versions import MOST_LINES, Line, difference

LINES = st.lists(st.sampled_from(["the tide", "the tide comes", "sand", "", "a shell"]), max_size=12)


def test_what_changed_is_shown_with_its_words_and_what_stayed_is_left_out() -> None:
    before = "\n".join(["one", "two", "three", "four", "the sea is blue", "five", "six", "seven"])
    found = difference(before, before.replace("blue", "green"))
    assert found == (Line("…"), *(Line(" ", ((line, False),)) for line in ("three", "four")),
                     Line("-", (("the sea is ", False), ("blue", True))), Line("+", (("the sea is ", False), ("green", True))),
                     *(Line(" ", ((line, False),)) for line in ("five", "six")), Line("…"))


def test_texts_that_are_too_long_are_not_compared() -> None:
    assert difference("a\n" * MOST_LINES, "b\n") is None
    assert difference("same", "same") == ()


@given(LINES, LINES)
def test_what_went_and_what_came_lead_from_one_to_the_other(before: list[str], after: list[str]) -> None:
    found = difference("\n".join(before), "\n".join(after)) or ()
    said = {sign: ["".join(part for part, _ in line.parts) for line in found if line.sign == sign] for sign in "-+"}
    old, new = "\n".join(before).splitlines(), "\n".join(after).splitlines()
    assert sorted(old + said["+"]) == sorted(new + said["-"])
