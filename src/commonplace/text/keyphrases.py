"""Tags: what a text keeps coming back to, in its own words."""

import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from itertools import chain
from math import sqrt

from commonplace.text.sentences import UNSPACED

_LONGEST_TAG = 40
_RUN = re.compile(rf"[{UNSPACED}]+")
_IDEOGRAPHS = re.compile(
    r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+|[\u30a1-\u30ff]{2,}"
)
_TITLE = 3  # a word of the title or of a heading counts as often


def tags(
    said: Counter[str],
    sentences: Sequence[Sequence[str]],
    titles: Sequence[Sequence[str]],
    silent: frozenset[str],
    limit: int,
) -> tuple[str, ...]:
    """`said`: how often the sentences say each of their words."""
    telling = {
        word
        for word in chain(said, *titles)
        if len(word) > 2 and word not in silent and not word[0].isdigit() and not _is_unspaced(word)
    }
    counts = Counter({(word,): count for word, count in said.items() if word in telling})
    for word in said.keys() - telling:
        for gram in _grams(word, silent):
            counts[gram,] += said[word]
    for title in titles:
        grams = {gram for word in title for gram in _grams(word, silent)}
        counts.update({(word,): _TITLE for word in telling.intersection(title) | grams})
    # A run that is said twice is made of words that are: the others need not be looked at.
    again = {word for word in telling if counts[word,] > 1}
    runs = Counter(run for sentence in sentences for run in _runs(sentence, again))
    for title in titles:
        runs.update({run: _TITLE for run in _runs(title, again) if run in runs})
    worth = {
        phrase: count * (1 + 0.8 * (len(phrase) - 1)) * _length(phrase)
        for found, least in ((counts, 2 if len(sentences) > 3 else 1), (runs, 2))
        for phrase, count in found.items()
        if count >= least
    }
    chosen: list[tuple[str, ...]] = []
    taken: set[str] = set()
    for phrase in sorted(worth, key=lambda phrase: (-worth[phrase], phrase)):
        if len(chosen) == limit:
            break
        stems = {word[:-1] if word.endswith("s") and len(word) > 4 else word for word in phrase}
        if taken.isdisjoint(stems) and not (
            _RUN.match(phrase[0])
            and any(phrase[0] in other or other in phrase[0] for other in taken)
        ):
            chosen.append(phrase)
            taken |= stems
    return tuple(dict.fromkeys(" ".join(phrase)[:_LONGEST_TAG] for phrase in chosen))


def _runs(words: Sequence[str], again: Container[str]) -> Iterator[tuple[str, ...]]:
    """Two or three words side by side."""
    before, last = "", ""
    for word in words:
        if word not in again:
            before = last = ""
            continue
        if last:
            yield last, word
            if before:
                yield before, last, word
        before, last = last, word


def _is_unspaced(word: str) -> bool:
    return not word.isascii() and _RUN.match(word) is not None


def _grams(word: str, silent: frozenset[str]) -> Iterator[str]:
    """What stands for words in texts without spaces: runs of two to four characters."""
    if not _is_unspaced(word):
        return
    for part in _IDEOGRAPHS.findall(word):
        sizes = (2, 3, 4) if len(part) > 4 else (max(2, len(part)),)
        yield from (
            gram
            for size in sizes
            for start in range(len(part) - size + 1)
            if (gram := part[start : start + size]) not in silent
        )


def _length(phrase: tuple[str, ...]) -> float:
    """Longer words are rarer by themselves; two ideographs say as much as six letters."""
    letters = sum(len(word) * (3 if _is_unspaced(word) else 1) for word in phrase) / len(phrase)
    return sqrt(min(letters, 12.0))
