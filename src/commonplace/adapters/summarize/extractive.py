"""The default transformer: it picks the sentences, words and category that stand for a text. Free, and always the same."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import log

from commonplace.model import Transformed
from commonplace.settings import Settings
from commonplace.text import sentences as prose
from commonplace.text.categories import category
from commonplace.text.instructions import addresses_machine, without_orders
from commonplace.text.keyphrases import tags
from commonplace.thread_pool import ThreadPool

_POINTS, _TAGS = 6, 8
_POINT_CHARS, _SUMMARY_CHARS = 200, 280  # of one sentence
_READ = 2_000  # sentences, spread evenly, that a summary is chosen from
_EASY_CHARS = 220  # longer sentences are worth less: a point should be taken in at a glance
_ALIKE = 0.5  # share of common words from which on a sentence says nothing new
_AT_ONCE = 300  # sections that are taken apart at once: it takes fifty times their memory
_CODE = re.compile(r"[{}\[\]=<>\\_|;#$]")


@dataclass(slots=True)
class _Sentence:
    place: int
    text: str
    terms: set[str]
    share: float  # of its section that lies before it
    worth: float = 0.0  # wherever it stands


class LocalTransformer:
    def __init__(self, settings: Settings) -> None:
        self._thread = ThreadPool(1, "transform")

    async def transform(self, title: str, sections: Sequence[str]) -> Transformed:
        return await self._thread.run(lambda: transformed(title, sections))

    async def close(self) -> None:
        self._thread.close()


def transformed(title: str, sections: Sequence[str]) -> Transformed:
    """Of a long text, what is true of all of it is taken from sections spread evenly; each has its own points."""
    if len(sections) <= _AT_ONCE:
        return _transformed(title, sections)
    whole = _transformed(title, sections[:: -(-len(sections) // _AT_ONCE)])
    parts = (
        _transformed(title, sections[at : at + _AT_ONCE])
        for at in range(0, len(sections), _AT_ONCE)
    )
    return replace(
        whole, section_points=tuple(points for part in parts for points in part.section_points)
    )


def _transformed(title: str, sections: Sequence[str]) -> Transformed:
    texts = [prose.sentences(section) for section in sections]
    spoken = [[prose.words(sentence) for sentence in section] for section in texts]
    flat = [words for section in spoken for words in section]
    said = Counter(chain.from_iterable(flat))
    silent = prose.stop_words(said)
    titles = [
        prose.words(title),
        *(prose.words(heading) for section in sections for heading in prose.headings(section)),
    ]
    everywhere = said.copy()
    everywhere.update(chain(*titles))
    rows = _rows(texts, spoken, silent)
    everything = [sentence for section in rows for sentence in section]
    _weigh(everything, set(titles[0]))
    best = _best(everything[:: len(everything) // _READ + 1], _POINTS, early=True)
    counted = {
        word: count for word, count in everywhere.items() if word not in silent and len(word) > 2
    }
    return Transformed(
        summary=_summary(best, everything, sections),
        key_points=tuple(prose.cut(sentence.text, _POINT_CHARS) for sentence in _in_order(best)),
        section_points=tuple(
            _points(section, text) for section, text in zip(rows, sections, strict=True)
        ),
        tags=tags(said, flat, titles, silent, _TAGS),
        category=category(counted),
    )


def _rows(
    texts: Sequence[Sequence[str]], spoken: Sequence[Sequence[list[str]]], silent: frozenset[str]
) -> list[list[_Sentence]]:
    place = 0
    rows: list[list[_Sentence]] = []
    telling = {
        word
        for word in set(chain.from_iterable(chain.from_iterable(spoken))) - silent
        if len(word) > 2
    }
    unspaced = {word for word in telling if "\u2fff" < word[0] < "\uac00"}
    for sentences, words in zip(texts, spoken, strict=True):
        row: list[_Sentence] = []
        for index, (text, said) in enumerate(zip(sentences, words, strict=True)):
            terms = telling.intersection(said)
            for run in (
                unspaced and unspaced & terms
            ):  # to have anything in common with another it has to be taken apart
                terms.remove(run)
                terms.update(run[at : at + 2] for at in range(len(run) - 1))
            row.append(_Sentence(place, text, terms, index / len(sentences)))
            place += 1
        rows.append(row)
    return rows


def _weigh(sentences: Sequence[_Sentence], title: set[str]) -> None:
    """Sentences are worth what their words are: those that the text and its title use again and again."""
    uses = Counter(chain.from_iterable(sentence.terms for sentence in sentences))
    worth = {term: log(1 + count) * (1.6 if term in title else 1.0) for term, count in uses.items()}
    for sentence in sentences:
        if _says_something(sentence):
            fit = min(1.0, _EASY_CHARS / len(sentence.text)) * (
                0.7 if sentence.text.endswith("?") else 1.0
            )
            sentence.worth = (
                sum(map(worth.__getitem__, sentence.terms)) / (len(sentence.terms) + 6) * fit
            )


def _best(sentences: Sequence[_Sentence], limit: int, *, early: bool) -> list[_Sentence]:
    """Best first, none that repeats another; what stands early is worth more."""
    telling = [sentence for sentence in sentences if sentence.worth]
    last = sentences[-1].place + 1 if sentences else 1
    scored = sorted(
        telling,
        key=lambda one: (
            -one.worth * (1.5 - 0.5 * (one.place / last if early else one.share)),
            one.place,
        ),
    )
    chosen: list[_Sentence] = []
    for sentence in scored:
        if len(chosen) == limit:
            break
        if not any(_alike(sentence, other) for other in chosen) and not addresses_machine(
            sentence.text
        ):
            chosen.append(sentence)
    return chosen


def _says_something(sentence: _Sentence) -> bool:
    """Long enough for a statement, and made of letters rather than of code and numbers."""
    if len(sentence.terms) < 3 or len(sentence.text) < 12:
        return False
    start = sentence.text[:300]
    letters = sum(map(str.isalpha, start)) + sum(map(str.isspace, start))
    return letters > 0.75 * len(start) and len(_CODE.findall(start)) < 0.02 * len(start)


def _alike(one: _Sentence, other: _Sentence) -> bool:
    common = len(one.terms & other.terms)
    return common >= _ALIKE * min(len(one.terms), len(other.terms))


def _in_order(sentences: Iterable[_Sentence]) -> list[_Sentence]:
    return sorted(sentences, key=lambda sentence: sentence.place)


def _summary(
    best: Sequence[_Sentence], everything: Sequence[_Sentence], sections: Sequence[str]
) -> str:
    count = 2 if len(everything) < 12 else 3 if len(everything) < 120 else 4
    chosen = [prose.cut(sentence.text, _SUMMARY_CHARS) for sentence in _in_order(best[:count])]
    return " ".join(chosen) or without_orders(
        next((prose.cut(text, _SUMMARY_CHARS) for text in sections if text.strip()), "")
    )


def _points(sentences: Sequence[_Sentence], text: str) -> tuple[str, ...]:
    count = 1 if len(text) < 400 else 2 if len(text) < 900 else 3
    chosen = _in_order(_best(sentences, count, early=False))
    points = tuple(prose.cut(sentence.text, _POINT_CHARS) for sentence in chosen)
    beginning = "" if points else without_orders(prose.cut(text, _POINT_CHARS))
    return points or ((beginning,) if beginning else ())
