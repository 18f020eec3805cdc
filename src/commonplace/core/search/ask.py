"""Answers to questions: sentences, each of which cites a passage of the caller's scope.

Without a language model they are the sources' own. A thread is the questions so far, in its id: the
server keeps nothing.
"""

import logging
import re
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import log
from typing import NamedTuple

from commonplace.core.people.authorization import READ, Service, verb
from commonplace.core.search.model_answers import ModelAnswers
from commonplace.core.search.relevance import WORDED, asked_terms, terms_of
from commonplace.core.search.search import Search, resolve_filter
from commonplace.core.search.similarity import Scale, SimilarityScale
from commonplace.errors import Invalid, TransformFailed
from commonplace.model import (
    EXPIRED,
    STALE,
    SUPERSEDED,
    Caller,
    Citation,
    CitedAnswer,
    Hit,
    ItemFilter,
    Mode,
    SearchResult,
    Sentence,
)
from commonplace.text import prose
from commonplace.text.query_terms import STOP_WORDS
from commonplace.text.snippets import plain_text, shortened
from commonplace.text.time_expressions import find_date

PASSAGES = 10  # that are read
MOST_SENTENCES, CLOSEST = 3, 3
# Measured on four development sets (docs/lab/quality.md).
CONFIDENT = 0.45  # least mean of a passage's similarity and its share of the question's words
WORTH = 0.5  # of the best sentence's score, that another one has at least
EARLIER = 0.25  # what a word of the thread's earlier questions counts
LONGEST = 500  # characters of a sentence; of longer ones a part is quoted
_THREAD, _KEPT = 3, 200  # questions of a thread, characters of each
_FEW = 3  # words of a question that is not one by itself
_DATE_WORDS = 3  # "1 March 2025"
_OUTDATED = (SUPERSEDED, STALE, EXPIRED)
_WORD = re.compile(r"[^\W_]+")
_AS_OF = re.compile(r"\bas of\s", re.I)
# Words that point back to what was asked before.
_POINTING = """
    he him his she her hers it its they them their theirs this that these those there then one
    er ihm ihn sie ihr ihre es sein seine dies diese dieser dieses dort damals"""
_POINTERS = frozenset(_POINTING.split())


class Candidate(NamedTuple):
    """A sentence of a passage, and how well it answers."""

    score: float
    hit: Hit
    text: str
    terms: AbstractSet[int]


@dataclass(eq=False)
class Ask(Service):
    _search: Search
    _similarity: SimilarityScale
    _model: ModelAnswers | None

    @verb(READ)
    async def ask(
        self,
        caller: Caller,
        query: str,
        *,
        project: str | None = None,
        where: ItemFilter | None = None,
        limit: int = 5,
        thread_id: str | None = None,
        by_model: bool = True,
    ) -> CitedAnswer:
        """Answer a question with at most `limit` citations. `thread_id`: of the answer that it
        follows. `by_model`: let a language model write it, if there is one."""
        before = parse_thread(thread_id) if thread_id else []
        where = await resolve_filter(self._store, caller.scope, where or ItemFilter(), project)
        query, as_of = split_date(query)
        if as_of is not None and where.as_of is None:
            where = replace(where, as_of=as_of)
        thread = [*before, query][-_THREAD:]
        # What points back is only a question together with those before it; another one may be.
        forms = ["\n".join(thread), query] if points_back(query) else [query, "\n".join(thread)]
        tried = []
        for question in dict.fromkeys(forms):
            found = await self._search.find(caller, question, PASSAGES, Mode.HYBRID, where)
            best = await self._best(caller, question, found, where.as_of)
            tried.append((question, found, best))
            if best:
                break
        question, found, best = next((each for each in tried if each[2]), tried[0])
        answer = CitedAnswer((), (), (), make_thread(thread), found.degraded)
        if best:
            answer = await self._answered(answer, question, found, best, limit, by_model)
        if answer.weak:
            closest = tuple(
                Citation(number, hit.passage, shortened(hit.passage.text, question))
                for number, hit in enumerate(found.hits[:CLOSEST], 1)
            )
            answer = replace(answer, closest=closest)
        return answer

    async def _answered(
        self,
        answer: CitedAnswer,
        question: str,
        found: SearchResult,
        best: Sequence[Candidate],
        limit: int,
        by_model: bool,
    ) -> CitedAnswer:
        if by_model and self._model is not None:
            passages = [hit.passage for hit in _current(found.hits)]
            try:
                sentences, citations = await self._model.answer(question, passages, limit)
                return replace(answer, sentences=sentences, citations=citations)
            except TransformFailed as failure:
                logging.getLogger(__name__).warning("No answer by model: %s", failure.message)
                said = f"The language model failed ({failure.message}). The sources answer instead."
                answer = replace(answer, degraded=answer.degraded or said)
        chosen = list(enumerate(best[: min(limit, MOST_SENTENCES)], 1))
        return replace(
            answer,
            sentences=tuple(Sentence(each.text, (number,)) for number, each in chosen),
            citations=tuple(Citation(n, each.hit.passage, each.text) for n, each in chosen),
        )

    async def _best(
        self, caller: Caller, question: str, found: SearchResult, as_of: datetime | None
    ) -> list[Candidate]:
        """Return the sentences that answer best; none if the best one's passage is not close."""
        hits, asked = _current(found.hits), asked_terms(question)
        last = asked_terms(question.rpartition("\n")[2])
        # Only within the scope: what is rare must not tell of other items.
        counts, size = await self._store.sections.frequencies(caller.scope, asked)
        rarity = {
            term: _rarity(counts.get(term, 0), size) * (1 if term in last else EARLIER)
            for term in asked
        }
        ranked = sorted(_candidates(question, hits, rarity), key=lambda each: -each.score)
        if not ranked:
            return []
        top = ranked[0]
        scale, same = await self._similarity.scale(), top.hit.passage.entity_id
        # What replaced a memory was found in its place. As of a time, only search saw that one.
        found_by = (hit for hit in found.hits if hit.passage.superseded_by == same)
        is_confident = any(_is_confident(hit, scale, rarity) for hit in (top.hit, *found_by))
        if not is_confident and (as_of is None or found.weak):
            return []
        chosen: list[Candidate] = []
        for each in ranked:
            if len(chosen) == MOST_SENTENCES or each.score < WORTH * top.score:
                break
            if all(each.terms != other.terms for other in chosen):
                chosen.append(each)
        return chosen


# -- sentences


def _current(hits: Sequence[Hit]) -> list[Hit]:
    return [hit for hit in hits if hit.passage.status not in _OUTDATED]


def _rarity(count: int, size: int) -> float:
    return log(1 + (size - count + 0.5) / (count + 0.5))


def _candidates(
    question: str, hits: Sequence[Hit], rarity: Mapping[int, float]
) -> Iterator[Candidate]:
    for hit in hits:
        for text in _sentences(hit.passage.text, question):
            terms = terms_of(text)
            yield Candidate(hit.score + _share(terms, rarity), hit, text, terms)


def _sentences(text: str, question: str) -> Iterator[str]:
    """Yield sentences that may answer; of what has none, such as a table, the part that fits."""
    found = [each for each in prose.sentences(text) if not each.endswith(("?", "？"))]
    for sentence in found or [plain_text(text)]:
        if sentence:
            short = len(sentence) <= LONGEST
            yield sentence if short else shortened(sentence, question, LONGEST)


def _share(terms: AbstractSet[int], rarity: Mapping[int, float]) -> float:
    """Return the share of the question's words in a text; rare words weigh more."""
    return sum(rarity[term] for term in rarity.keys() & terms) / (sum(rarity.values()) or 1.0)


def _is_confident(hit: Hit, scale: Scale, rarity: Mapping[int, float]) -> bool:
    passage = hit.passage
    share = _share(terms_of(f"{passage.title} {passage.heading} {passage.text}"), rarity)
    if hit.cosine is None:
        return share >= WORDED
    return (scale(hit.cosine) + share) / 2 >= CONFIDENT


# -- threads and dates


def make_thread(questions: Sequence[str]) -> str:
    text = "\n".join(" ".join(question.split())[:_KEPT] for question in questions)
    return urlsafe_b64encode(text.encode("utf-8", "replace")).decode().rstrip("=")


def parse_thread(thread_id: str) -> list[str]:
    """Return the last questions of a thread."""
    try:
        padded = thread_id + "=" * (-len(thread_id) % 4)
        text = b64decode(padded, b"-_", validate=True).decode()
    except ValueError:
        raise Invalid("`thread_id` is not one that `ask` answered.") from None
    return [question[:_KEPT] for question in text.split("\n") if question.strip()][-_THREAD:]


def points_back(question: str) -> bool:
    """Whether a question needs the one before it: "And when did she leave?"."""
    words = [word.lower() for word in _WORD.findall(question)]
    telling = [word for word in words if word not in STOP_WORDS]
    return len(telling) < _FEW or not _POINTERS.isdisjoint(words)


def split_date(question: str) -> tuple[str, datetime | None]:
    """Take "as of 2025-03" out of a question, and return the last moment that it names."""
    for found in _AS_OF.finditer(question):
        rest = question[found.end() :].split(maxsplit=_DATE_WORDS)
        for count in range(1, min(len(rest), _DATE_WORDS) + 1):
            window = find_date(" ".join(rest[:count]))
            if window is not None and window.end is not None:
                kept = f"{question[: found.start()]} {' '.join(rest[count:])}".strip(" ,")
                return kept or question, window.end - timedelta(microseconds=1)
    return question, None
