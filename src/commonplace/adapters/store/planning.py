"""Which words of a question a large index is asked for: the rarest, as far as a budget of candidates goes.

Ranking costs by the section that holds any of the words, and words that are nearly everywhere decide little: so the common
ones are asked for only where two of them meet.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

SMALL = 5_000          # sections; up to here every word is asked for
COMMON_SHARE = 0.2     # a word in more of all sections than this tells little apart
CANDIDATES = 1_000     # sections to rank, about
MOST_TERMS = 12
COUNTED_UP_TO = 5_000  # how far a word's sections are counted


@dataclass(frozen=True, slots=True)
class Term:
    """A word or a phrase, as the engine writes it, and how many sections have it, counted up to a bound."""

    query: str
    found: int
    single: bool = True


def neighbours_found(words: Sequence[int]) -> int:
    """Counting phrases is slow; neighbours are taken to be a tenth as common as the rarest of them."""
    return min(words) // 10


def plan(terms: Sequence[Term], total: int, size: int) -> tuple[list[Term], list[tuple[Term, Term]]]:
    """Terms to ask for, and pairs of more common ones to ask for where both are; of `total` sections `size` are in scope."""
    share = min(1.0, size / total)
    telling = sorted((term for term in terms if term.found < total * COMMON_SHARE), key=lambda term: term.found)
    words = [term for term in telling if term.single][:MOST_TERMS]
    if not words:
        return list(terms), []
    chosen: list[Term] = []
    left = float(CANDIDATES)
    for term in words:
        if left < CANDIDATES / 2 and term.found * share > left:
            break
        chosen.append(term)
        left -= term.found * share
    pairs = []
    left = float(CANDIDATES)
    for first, second in sorted(combinations(words[len(chosen):], 2), key=lambda pair: pair[0].found * pair[1].found):
        left -= 3 * share * first.found * second.found / total  # words of one question meet more often than by chance
        if left < 0:
            break
        pairs.append((first, second))
    return chosen + [term for term in telling if not term.single][:MOST_TERMS], pairs
