"""What says nearly the same shares a place; what contradicts keeps its own."""

import pytest
from hypothesis import given, strategies as st

from commonplace.core.search.near_duplicates import group

POOL = (
    "The connection pool holds 40 connections, because every worker keeps two of them open "
    "while it writes, and requests wait for a free one until they time out."
)
WORDS = st.text(alphabet="abc 12", max_size=30)


def grouped(*texts: str) -> list[list[str]]:
    return group(texts, lambda text: ("Pool", text))


@pytest.mark.parametrize(
    "other",
    [
        POOL,
        POOL.upper(),
        f"# {POOL}",
        POOL.replace("until they time out", "until they timed out"),
    ],
)
def test_the_same_in_other_form_shares_a_place(other: str) -> None:
    assert grouped(POOL, "Birds nest in spring.", other) == [
        [POOL, other],
        ["Birds nest in spring."],
    ]


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("40", "55"),
        ("holds", "never holds"),
        ("The connection", "Ticket OPS-1417: the connection"),
        ("open", "closed"),
        (POOL, "Herons nest in colonies near the water, high in trees."),
    ],
)
def test_what_differs_in_what_it_says_stays_apart(here: str, there: str) -> None:
    first = POOL.replace("The connection", "Ticket OPS-1416: the connection")
    texts = (POOL if here != "The connection" else first, POOL.replace(here, there))
    assert grouped(*texts) == [[text] for text in texts]


@given(st.lists(WORDS, max_size=12))
def test_each_text_is_in_one_group_in_the_order_of_the_first(texts: list[str]) -> None:
    found = group(list(enumerate(texts)), lambda value: ("", value[1]))
    assert sorted(value for each in found for value in each) == list(enumerate(texts))
    assert [each[0] for each in found] == sorted(each[0] for each in found)
    assert all(each == sorted(each) for each in found)
