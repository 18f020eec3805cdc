"""Tags: what a text keeps coming back to, in its own words."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import sqrt

from commonplace.adapters.transform.prose import UNSPACED

_MOST_WORDS = 3
_LONGEST_TAG = 40
_RUN = re.compile(rf"[{UNSPACED}]+")
_IDEOGRAPHS = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+|[\u30a1-\u30ff]{2,}")
_TITLE = 3          # a word of the title or of a heading counts as often


def tags(sentences: Sequence[Sequence[str]], titles: Sequence[Sequence[str]], silent: frozenset[str],
         limit: int) -> tuple[str, ...]:
    counts = Counter(phrase for sentence in sentences for phrase in _phrases(sentence, silent))
    for title in titles:
        counts.update({phrase: _TITLE for phrase in _phrases(title, silent) if len(phrase) == 1 or phrase in counts})
    often = 2 if len(sentences) > 3 else 1
    worth = {phrase: count * (1 + 0.8 * (len(phrase) - 1)) * _length(phrase)
             for phrase, count in counts.items() if count >= (often if len(phrase) == 1 else 2)}
    chosen: list[tuple[str, ...]] = []
    for phrase in sorted(worth, key=lambda phrase: (-worth[phrase], phrase)):
        if len(chosen) == limit:
            break
        if not any(_overlap(phrase, other) for other in chosen):
            chosen.append(phrase)
    return tuple(dict.fromkeys(_joined(phrase)[:_LONGEST_TAG] for phrase in chosen))


def _phrases(words: Iterable[str], silent: frozenset[str]) -> Iterator[tuple[str, ...]]:
    """Runs of one to three words with something to say; in texts without spaces, runs of two to four characters."""
    run: list[str] = []
    for word in (*words, ""):
        if _tells(word, silent):
            run.append(word)
            yield from (tuple(run[-size:]) for size in range(1, min(_MOST_WORDS, len(run)) + 1))
            continue
        run = []
        for part in _IDEOGRAPHS.findall(word) if _RUN.match(word) else ():
            yield from ((gram,) for gram in _grams(part) if gram not in silent)


def _tells(word: str, silent: frozenset[str]) -> bool:
    return len(word) > 2 and word not in silent and not word[0].isdigit() and not _RUN.match(word)


def _grams(part: str) -> Iterator[str]:
    if 2 <= len(part) <= 4:
        yield part
    elif len(part) > 4:
        yield from (part[start:start + size] for size in (2, 3, 4) for start in range(len(part) - size + 1))


def _length(phrase: tuple[str, ...]) -> float:
    """Longer words are rarer by themselves; two ideographs say as much as six letters."""
    letters = sum(len(word) * (3 if _RUN.match(word) else 1) for word in phrase) / len(phrase)
    return sqrt(min(letters, 12.0))


def _overlap(phrase: tuple[str, ...], other: tuple[str, ...]) -> bool:
    if _RUN.match(phrase[0]):
        return phrase[0] in other[0] or other[0] in phrase[0]
    return any(_stem(word) == _stem(mine) for word in phrase for mine in other)


def _stem(word: str) -> str:
    return word[:-1] if word.endswith("s") and len(word) > 4 else word


def _joined(phrase: tuple[str, ...]) -> str:
    return " ".join(phrase)
