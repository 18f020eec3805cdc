"""BM25 with a constant mean length: what both engines rank words by."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from commonplace.model import Words
from commonplace.text.stems import phrase_counts, terms

K1, B = 1.2, 0.75
MEAN_LENGTH = 150  # terms; a constant: the real mean depends on sections that a scope hides
PHRASED = 64  # best sections searched for phrases; five times as many rank no better
PHRASE = 0.75  # the weight of a phrase, whose words have been counted already
FAINT = 0.01  # the weight of a word that is only part of a phrase, in choosing them

Scores = NDArray[np.float32]


def rarity(frequency: int, size: int) -> float:
    """Return the inverse document frequency of a term that so many of the sections have."""
    return math.log1p(max(0.0, size - frequency + 0.5) / (frequency + 0.5))


def damping(lengths: NDArray[np.float32]) -> Scores:
    """Return how much a section's length damps the weight of a word."""
    return np.float32(K1 * (1 - B)) + np.float32(K1 * B / MEAN_LENGTH) * lengths


class Asked:
    """The terms of a query."""

    def __init__(self, words: Words) -> None:
        phrases = [tuple(terms(" ".join(phrase))) for phrase in words.phrases]
        self.single = {phrase[0] for phrase in phrases if len(phrase) == 1}
        self.phrases = list(dict.fromkeys(phrase for phrase in phrases if len(phrase) > 1))
        # Words that are only part of phrases choose sections that may have one.
        self.faint = {term for phrase in self.phrases for term in phrase} - self.single


def score_phrases(
    sequences: Iterable[bytes], phrases: Sequence[tuple[int, ...]], damped: Scores, size: int
) -> Scores:
    """Score the candidates' phrases. They have nearly all sections with a phrase, of `size`."""
    parts = list(sequences)
    sequence, ends = (
        np.frombuffer(b"".join(parts), np.uint16),
        np.cumsum([len(part) // 2 for part in parts]),
    )
    total = np.zeros(len(parts), np.float32)
    for found in phrase_counts(sequence, ends, phrases):
        counts, frequency = found.astype(np.float32), int(np.count_nonzero(found))
        total += (
            counts * np.float32(rarity(frequency, size) * (K1 + 1) * PHRASE) / (counts + damped)
        )
    return total
