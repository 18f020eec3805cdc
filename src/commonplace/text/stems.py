"""Terms of the index: letters and digits, without case, accents and English endings."""

import re
import threading
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import numpy as np
import Stemmer
from numpy.typing import NDArray

from commonplace.model import Section, normalize
from commonplace.text.link_texts import link_texts

# Halves: what one occurrence counts in each field (docs/lab/retrieval.md), as whole numbers.
TITLE, HEADING, TEXT, EXTRA = 6, 2, 2, 1
NUMBERS = 1_000_000_000  # terms are below: a sparse vector of pgvector has room for as many
GAP = 0  # between fields, so that no phrase reaches from one into the next

_WORD, _ASCII = (
    re.compile(r"[^\W_]+"),
    re.compile(r"[a-z0-9]+"),
)  # the same where they can be, and sooner found
_MARKS = re.compile(r"[\u0300-\u036f]")
_local = threading.local()

Terms = NDArray[np.uint32]


def terms(text: str) -> list[int]:
    """Of all runs of letters and digits, without case, accents and addresses of links."""
    text = link_texts(text)
    if text.isascii():
        return list(map(_term, _ASCII.findall(text.lower())))
    text = normalize("NFC", _MARKS.sub("", normalize("NFKD", text)))
    return list(map(_term, _WORD.findall(text.casefold())))


def pack_terms(title: str, section: Section) -> tuple[bytes, bytes, bytes, int]:
    """(different terms, how much each counts, all terms in order, how many there are)."""
    counts, sequence = Counter[int](), list[int]()
    for text, worth in (
        (title, TITLE),
        (section.heading, HEADING),
        (section.text, TEXT),
        (section.extra, EXTRA),
    ):
        found = terms(text)
        counts.update(found * worth)
        sequence += [*found, GAP]
    return (
        np.fromiter(counts, np.uint32, len(counts)).tobytes(),
        np.fromiter(counts.values(), np.int64, len(counts))
        .clip(max=255)
        .astype(np.uint8)
        .tobytes(),
        to_16_bits(np.array(sequence, np.uint32)).tobytes(),
        len(sequence) - 4,
    )


def to_16_bits(each: Terms) -> NDArray[np.uint16]:
    """Half the bits are enough to know a neighbour by; a gap stays a gap."""
    return (each ^ each >> np.uint32(16)).astype(np.uint16)


def phrase_counts(
    sequence: NDArray[np.uint16], ends: NDArray[np.intp], phrases: Iterable[Sequence[int]]
) -> Iterator[NDArray[np.int64]]:
    """Yield, for each phrase that occurs, its counts in each part. Parts end with a gap."""
    pairs = sequence[:-1].astype(np.uint32) << np.uint32(16) | sequence[1:]
    for phrase in phrases:
        first, second, *others = ((term ^ term >> 16) & 0xFFFF for term in phrase)
        places = (pairs == np.uint32(first << 16 | second)).nonzero()[0]
        for offset, term in enumerate(others, 2):
            places = places[sequence.take(places + offset, mode="clip") == term]
        if len(places):
            yield np.bincount(ends.searchsorted(places, "right"), minlength=len(ends))


@lru_cache(maxsize=200_000)
def _term(word: str) -> int:
    """Return a number for a word's stem. A collision is rare, and makes a word look commoner."""
    stemmer = getattr(_local, "stemmer", None)
    if stemmer is None:
        stemmer = _local.stemmer = Stemmer.Stemmer(
            "english", 0
        )  # not safe to share between threads
    return zlib.crc32(stemmer.stemWord(word).encode()) % NUMBERS or 1
