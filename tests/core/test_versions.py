"""What changed between two texts, line by line."""

from hypothesis import given, strategies as st

from commonplace.core.items.versions import MOST_CHARACTERS, MOST_LINES, Line, difference

LINES = st.lists(
    st.sampled_from(["the tide", "the tide comes", "sand", "", "a shell"]), max_size=12
)


def test_what_changed_is_shown_with_its_words_and_what_stayed_is_left_out() -> None:
    before = "\n".join(["one", "two", "three", "four", "the sea is blue", "five", "six", "seven"])
    found = difference(before, before.replace("blue", "green"))
    assert found == (
        Line("…"),
        *(Line(" ", ((line, False),)) for line in ("three", "four")),
        Line("-", (("the sea is ", False), ("blue", True))),
        Line("+", (("the sea is ", False), ("green", True))),
        *(Line(" ", ((line, False),)) for line in ("five", "six")),
        Line("…"),
    )


def test_texts_that_are_too_long_are_not_compared() -> None:
    assert difference("a\n" * MOST_LINES, "b\n") is None
    assert difference("same", "same") == ()


@given(LINES, LINES)
def test_what_went_and_what_came_lead_from_one_to_the_other(
    before: list[str], after: list[str]
) -> None:
    found = difference("\n".join(before), "\n".join(after)) or ()
    said = {
        sign: ["".join(part for part, _ in line.parts) for line in found if line.sign == sign]
        for sign in "-+"
    }
    old, new = "\n".join(before).splitlines(), "\n".join(after).splitlines()
    assert sorted(old + said["+"]) == sorted(new + said["-"])


def test_words_are_compared_in_so_many_lines_only() -> None:
    """Each takes a tenth of a second where few words are used again and again."""
    lines = [f"{'to be or not ' * 80}{n}" for n in range(2 * MOST_CHARACTERS // 1_000)]
    before, after = (
        "\n".join(f"{line} {end}\n{n}" for n, line in enumerate(lines)) for end in ("was", "is")
    )
    found = difference(before, after)
    assert found
    first, *_, last = [line for line in found if line.sign == "-"]
    assert first.parts == ((f"{lines[0]} ", False), ("was", True))
    assert last.parts == ((f"{lines[-1]} was", True),)
