"""The default transformer: extracts key sentences, tags and a category. Deterministic."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from math import log

from commonplace.model import Transformed
from commonplace.settings import Settings
from commonplace.text import prose
from commonplace.text.instructions import addresses_machine, without_orders
from commonplace.thread_pool import ThreadPool

_POINTS, _TAGS = 6, 8
_POINT_CHARS, _SUMMARY_CHARS = 200, 280  # of one sentence
_READ = 2_000  # evenly spread sentences that a summary is chosen from
_EASY_CHARS = 220  # longer sentences score less: a key point should be short
_SIMILAR = 0.5  # share of common words that makes a sentence redundant
_AT_ONCE = 300  # sections analyzed at once: this takes fifty times their memory
_CODE = re.compile(r"[{}\[\]=<>\\_|;#$]")


@dataclass(slots=True)
class _Sentence:
    place: int
    text: str
    terms: set[str]
    share: float  # of its section that precedes it
    score: float = 0.0  # regardless of its position


class LocalTransformer:
    def __init__(self, settings: Settings) -> None:
        self._thread = ThreadPool(1, "transform")

    async def transform(self, title: str, sections: Sequence[str]) -> Transformed:
        return await self._thread.run(lambda: summarize(title, sections))

    async def close(self) -> None:
        self._thread.close()


def summarize(title: str, sections: Sequence[str]) -> Transformed:
    """Summarize a text; a long one by evenly spread sections. Every section gets key points."""
    if len(sections) <= _AT_ONCE:
        return _summarize(title, sections)
    whole = _summarize(title, sections[:: -(-len(sections) // _AT_ONCE)])
    parts = (
        _summarize(title, sections[at : at + _AT_ONCE]) for at in range(0, len(sections), _AT_ONCE)
    )
    return replace(
        whole, section_points=tuple(points for part in parts for points in part.section_points)
    )


def _summarize(title: str, sections: Sequence[str]) -> Transformed:
    texts = [prose.sentences(section) for section in sections]
    words = [[prose.words(sentence) for sentence in section] for section in texts]
    flat = [sentence for section in words for sentence in section]
    counts = Counter(chain.from_iterable(flat))
    stop_words = prose.stop_words(counts)
    titles = [
        prose.words(title),
        *(prose.words(heading) for section in sections for heading in prose.headings(section)),
    ]
    rows = _rows(texts, words, stop_words)
    sentences = [sentence for section in rows for sentence in section]
    _score(sentences, set(titles[0]))
    best = _best(sentences[:: len(sentences) // _READ + 1], _POINTS, early=True)
    everywhere = counts + Counter(chain(*titles))
    return Transformed(
        summary=_summary(best, len(sentences), sections),
        key_points=tuple(prose.cut(sentence.text, _POINT_CHARS) for sentence in _in_order(best)),
        section_points=tuple(
            _points(section, text) for section, text in zip(rows, sections, strict=True)
        ),
        tags=prose.tags(counts, flat, titles, stop_words, _TAGS),
        category=prose.category(
            {
                word: uses
                for word, uses in everywhere.items()
                if word not in stop_words and len(word) > 2
            }
        ),
    )


def _rows(
    texts: Sequence[Sequence[str]],
    words: Sequence[Sequence[list[str]]],
    stop_words: frozenset[str],
) -> list[list[_Sentence]]:
    place = count()
    rows: list[list[_Sentence]] = []
    meaningful = {
        word
        for word in set(chain.from_iterable(chain.from_iterable(words))) - stop_words
        if len(word) > 2
    }
    unspaced = {word for word in meaningful if "\u2fff" < word[0] < "\uac00"}
    for sentences, section_words in zip(texts, words, strict=True):
        rows.append([])
        for index, (text, own) in enumerate(zip(sentences, section_words, strict=True)):
            terms = meaningful.intersection(own)
            # A run without spaces is split, or it would have nothing in common with another.
            for run in unspaced and unspaced & terms:
                terms.remove(run)
                terms.update(run[at : at + 2] for at in range(len(run) - 1))
            rows[-1].append(_Sentence(next(place), text, terms, index / len(sentences)))
    return rows


def _score(sentences: Sequence[_Sentence], title: set[str]) -> None:
    """Score sentences by the words that the text and its title use most."""
    uses = Counter(chain.from_iterable(sentence.terms for sentence in sentences))
    scores = {term: log(1 + uses[term]) * (1.6 if term in title else 1.0) for term in uses}
    for sentence in sentences:
        if _is_statement(sentence):
            factor = min(1.0, _EASY_CHARS / len(sentence.text))
            factor *= 0.7 if sentence.text.endswith("?") else 1.0
            sentence.score = (
                sum(map(scores.__getitem__, sentence.terms)) / (len(sentence.terms) + 6) * factor
            )


def _best(sentences: Sequence[_Sentence], limit: int, *, early: bool) -> list[_Sentence]:
    """Return the best first, without redundant ones; earlier sentences score more.

    `early`: earlier in the whole text, rather than in the section.
    """
    scored = [sentence for sentence in sentences if sentence.score]
    last = sentences[-1].place + 1 if sentences else 1
    scored.sort(
        key=lambda one: (
            -one.score * (1.5 - 0.5 * (one.place / last if early else one.share)),
            one.place,
        ),
    )
    chosen: list[_Sentence] = []
    for sentence in scored:
        if len(chosen) == limit:
            break
        is_new = all(
            len(sentence.terms & other.terms)
            < _SIMILAR * min(len(sentence.terms), len(other.terms))
            for other in chosen
        )
        if is_new and not addresses_machine(sentence.text):
            chosen.append(sentence)
    return chosen


def _is_statement(sentence: _Sentence) -> bool:
    """Whether it is long enough, and prose rather than code or numbers."""
    if len(sentence.terms) < 3 or len(sentence.text) < 12:
        return False
    start = sentence.text[:300]
    letters = sum(map(str.isalpha, start)) + sum(map(str.isspace, start))
    return letters > 0.75 * len(start) and len(_CODE.findall(start)) < 0.02 * len(start)


def _in_order(sentences: Iterable[_Sentence]) -> list[_Sentence]:
    return sorted(sentences, key=lambda sentence: sentence.place)


def _summary(best: Sequence[_Sentence], sentences: int, sections: Sequence[str]) -> str:
    length = 2 if sentences < 12 else 3 if sentences < 120 else 4
    chosen = [prose.cut(sentence.text, _SUMMARY_CHARS) for sentence in _in_order(best[:length])]
    return " ".join(chosen) or without_orders(
        next((prose.cut(text, _SUMMARY_CHARS) for text in sections if text.strip()), "")
    )


def _points(sentences: Sequence[_Sentence], text: str) -> tuple[str, ...]:
    limit = 1 if len(text) < 400 else 2 if len(text) < 900 else 3
    points = tuple(
        prose.cut(sentence.text, _POINT_CHARS)
        for sentence in _in_order(_best(sentences, limit, early=False))
    )
    beginning = "" if points else without_orders(prose.cut(text, _POINT_CHARS))
    return points or ((beginning,) if beginning else ())
