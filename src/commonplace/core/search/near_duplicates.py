"""Hits that say nearly the same share one place."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from commonplace.text import stems
from commonplace.text.statements import Statement, differences

ALIKE = 0.9  # share of common words from which two texts say the same

T = TypeVar("T")


def group(values: Sequence[T], text_of: Callable[[T], tuple[str, str]]) -> list[list[T]]:
    """Group values whose titles and texts are nearly the same, each group at the place of its
    first. Texts that differ by a number, a date, an id or a negation stay apart."""
    groups: list[tuple[list[T], frozenset[int], Statement]] = []
    for value in values:
        title, body = text_of(value)
        text = Statement(body if body.startswith(title) else f"{title}\n{body}")
        words = frozenset(stems.terms(text.text))
        for others, their_words, their_text in groups:
            if (
                _alike(words, their_words)
                and text.ids == their_text.ids
                and not differences(text, their_text, whole=True)
            ):
                others.append(value)
                break
        else:
            groups.append(([value], words, text))
    return [others for others, _, _ in groups]


def _alike(one: frozenset[int], other: frozenset[int]) -> bool:
    return bool(one) and 2 * len(one & other) >= ALIKE * (len(one) + len(other))
