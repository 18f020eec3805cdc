"""Known statements that a new text may repeat or contradict, and how close they are to it.

Candidates are the nearest sections by meaning and the best by words. Of a long known text, the
sentence with the most words in common stands for its section. Sentences have no vectors in the
index: the few that may matter are embedded when they do.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from commonplace.core.entities import judgement
from commonplace.core.entities.judgement import Rarity, Side
from commonplace.core.ingest.pipeline import within_call
from commonplace.core.search.similarity import Scale, SimilarityScale
from commonplace.errors import EmbeddingFailed
from commonplace.model import Item, ItemFilter, Kind, Passage, Scope, Words
from commonplace.ports import Embedder, Question, Vector
from commonplace.store import Store
from commonplace.text import statements
from commonplace.text.statements import Statement, differences

PARTS = 8  # sections of a long text that are compared
NEAREST, WORDED, OF_PART = 20, 8, 6  # sections that are candidates: by meaning, by words, of a part
JUDGED = 8  # closest candidates that are judged
PROBES = 4  # sentences of a long text whose neighbours are judged
EMBEDDED = 8  # sentences of known texts that are embedded for one addition
USUAL = slice(3, 11)  # neighbours that say what is usual; the closest are candidates themselves
USUAL_LEAST = 0.4  # what is usual where a small library has fewer neighbours
CACHED = 512  # analyzed texts, and vectors of sentences
SAME_MINUTE = timedelta(minutes=1)


class Part(NamedTuple):
    """A passage of a text with its vector. Without one, only keywords are compared."""

    text: str
    vector: Vector | None


@dataclass(frozen=True, slots=True)
class Draft:
    """A text that is compared before it is added."""

    title: str
    text: str
    parts: Sequence[Part]
    entity_type: str = ""
    project_id: str | None = None
    created_at: datetime | None = None


@dataclass(eq=False)
class Candidate:
    """A known statement beside one of the new text."""

    new: Side
    old: Side
    passage: Passage
    of_section: float | None  # cosine of the section; None: unknown
    cosine: float | None  # of the statement itself
    is_sibling: bool  # added to the same project in the same minute
    common: float = 0.0  # rarity of the words that both have
    dice: float = 0.0
    margin: float = 0.0
    signs: Mapping[str, float] = field(default_factory=dict)
    probability: float = 0.0  # that both speak of the same thing


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """The candidates of a draft, closest first, by the statement that they are close to."""

    candidates: Sequence[Candidate]
    near: Mapping[str, tuple[float, Passage]]  # nearest passages of a long draft, by item
    scale: Scale
    by_words: bool  # there are no vectors


@dataclass(eq=False)
class Candidates:
    _store: Store
    _embedder: Embedder
    _similarity: SimilarityScale
    _vectors: dict[str, Vector] = field(default_factory=dict, init=False)

    async def compare(
        self, scope: Scope, draft: Draft, but: Collection[str], where: ItemFilter | None
    ) -> Compared:
        scale = await self._similarity.scale()
        by_words = draft.parts[0].vector is None
        near: dict[str, tuple[float, Passage]] = {}
        if statements.is_short(draft.text):
            new = Side(statements.whole(draft.title, draft.text), draft.entity_type, True)
            probes = [(new, draft.parts[0].vector)]
        elif by_words:  # sentences have no vectors, either: asking again would only cost a wait
            probes = []
        else:
            near = await self._near(scope, draft.parts[:PARTS], but, where)
            probes = await self._probes(draft, [passage for _, passage in near.values()])
        found: list[Candidate] = []
        for side, vector in probes:
            found += await self._of_probe(scope, draft, side, vector, but, where, scale)
        return Compared(found, near, scale, by_words)

    async def _near(
        self,
        scope: Scope,
        parts: Sequence[Part],
        but: Collection[str],
        where: ItemFilter | None,
    ) -> dict[str, tuple[float, Passage]]:
        """Return the passage of each item that is nearest to any part, nearest first."""
        vectors = [part.vector for part in parts if part.vector is not None]
        best: dict[int, float] = {}
        for near in await self._store.sections.nearest_to_each(
            scope, vectors, self._embedder.stamp, OF_PART, where=where
        ):
            for found in near:
                best[found.section_id] = max(found.score, best.get(found.section_id, -1.0))
        passages = await self._store.sections.passages(scope, list(best)) if best else []
        nearest: dict[str, tuple[float, Passage]] = {}
        for passage in sorted(passages, key=lambda each: (-best[each.section_id], each.section_id)):
            if passage.item_id not in but:
                nearest.setdefault(passage.item_id, (best[passage.section_id], passage))
        return nearest

    async def _probes(
        self, draft: Draft, near: Sequence[Passage]
    ) -> list[tuple[Side, Vector | None]]:
        """Return the sentences of a long draft that may contradict something: those that speak of a
        change, or have another value than a short text in the same words."""
        short = [
            statements.whole(passage.title, passage.text)
            for passage in near
            if statements.is_short(passage.text)
        ]
        chosen = sorted(
            (
                each
                for each in statements.sentences(draft.text)
                if each.is_revision or each.is_strong or _has_other_value(each, short)
            ),
            key=lambda each: not each.is_revision,
        )[:PROBES]
        vectors = await self._embed([each.text for each in chosen])
        return [
            (Side(each, draft.entity_type, False), vector)
            for each, vector in zip(chosen, vectors, strict=True)
            if vector is not None
        ]

    async def _of_probe(
        self,
        scope: Scope,
        draft: Draft,
        new: Side,
        vector: Vector | None,
        but: Collection[str],
        where: ItemFilter | None,
        scale: Scale,
    ) -> list[Candidate]:
        """Return known statements close to one of the draft, closest first."""
        statement = new.statement
        words = Words(tuple((word,) for word in sorted(statement.telling)))
        if vector is None and not words.phrases:
            return []
        question = Question(words, vector, self._embedder.stamp, NEAREST)
        matches = await self._store.sections.matches(scope, question, where)
        cosines = {
            int(section): None if np.isnan(cosine) else float(cosine)
            for section, cosine in zip(matches.ids, matches.cosines, strict=True)
        }
        by_meaning = sorted(
            (section for section, cosine in cosines.items() if cosine is not None),
            key=lambda section: (-(cosines[section] or 0.0), section),
        )[:NEAREST]
        order = np.lexsort((matches.ids, -matches.keyword))[: WORDED if by_meaning else NEAREST]
        by_words = [int(matches.ids[n]) for n in order if matches.keyword[n] > 0]
        passages = await self._store.sections.passages(
            scope, list(dict.fromkeys([*by_meaning, *by_words]))
        )
        passages = [passage for passage in passages if passage.item_id not in but]
        items = await self._store.items.get_many(
            scope, {each.item_id for each in passages if _may_be_whole(each)}
        )
        siblings = await self._siblings(scope, draft, passages)
        found = []
        for passage in passages:
            old = _closest_side(statement, passage, items.get(passage.item_id))
            if old is not None:
                of_section = cosines[passage.section_id]
                cosine = of_section if old.is_short else None
                sibling = passage.item_id in siblings
                found.append(Candidate(new, old, passage, of_section, cosine, sibling))
        rarity = await self._rarity(scope, [statement, *(each.old.statement for each in found)])
        return await self._closest(found, rarity, scale)

    async def _closest(
        self, found: list[Candidate], rarity: Rarity, scale: Scale
    ) -> list[Candidate]:
        """Return the candidates to be judged, with how close they are."""
        related = [each.old.statement.stems for each in found if each.is_sibling]
        # What all siblings have in common says nothing about any of them.
        template = frozenset.intersection(*related) if len(related) > 1 else frozenset()
        for each in found:
            a, b = each.new.statement.stems, each.old.statement.stems
            if each.is_sibling:
                a, b = a - template, b - template
            each.common, each.dice = rarity.total(a & b), rarity.dice(a, b)

        def likeness(each: Candidate, cosine: float | None) -> float:
            # without a vector, words have to say it all
            share = scale.share(cosine) if cosine is not None else each.dice
            return share + judgement.LEXICAL * each.common

        ranked = sorted(found, key=lambda each: -likeness(each, each.of_section))
        others = [likeness(each, each.of_section) for each in ranked[USUAL]]
        wanted = USUAL.stop - USUAL.start
        usual = (sum(others) + USUAL_LEAST * (wanted - len(others))) / wanted

        def judge(each: Candidate, cosine: float | None) -> None:
            each.margin = likeness(each, cosine) - usual
            each.signs = judgement.features(
                each.new.statement,
                each.old.statement,
                scale.share(cosine) if cosine is not None else each.dice,
                each.margin,
                rarity,
            )
            each.probability = judgement.probability(each.signs)

        chosen = ranked[:JUDGED]
        for each in chosen:
            judge(each, each.cosine if each.cosine is not None else each.of_section)
        unknown = [each for each in chosen if each.cosine is None and each.of_section is not None]
        unknown = sorted(filter(_matters, unknown), key=lambda each: -each.dice)[:EMBEDDED]
        if unknown:
            texts = [side.statement.text for each in unknown for side in (each.new, each.old)]
            vectors = await self._embed(texts)
            for n, each in enumerate(unknown):
                mine, theirs = vectors[2 * n], vectors[2 * n + 1]
                if mine is not None and theirs is not None:
                    each.cosine = float(mine @ theirs)
                    judge(each, each.cosine)
        return chosen

    async def _rarity(self, scope: Scope, found: Iterable[Statement]) -> Rarity:
        stems = frozenset().union(*(each.stems for each in found))
        return Rarity(*await self._store.sections.frequencies(scope, stems))

    async def _siblings(
        self, scope: Scope, draft: Draft, passages: Sequence[Passage]
    ) -> frozenset[str]:
        """Return the items that were added to the draft's project in the same minute."""
        if draft.project_id is None or draft.created_at is None:
            return frozenset()
        recent = {
            each.item_id
            for each in passages
            if abs(each.created_at - draft.created_at) <= SAME_MINUTE
        }
        if not recent:
            return frozenset()
        joined = await self._store.relations.of_items(
            scope, list(recent), [Kind.BELONGS_TO], outgoing=True
        )
        return frozenset(each.from_id for each in joined if each.to_id == draft.project_id)

    async def _embed(self, texts: Sequence[str]) -> list[Vector | None]:
        """Return the vectors of sentences; None if the embedder fails."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        made: dict[str, Vector] = {}
        if missing:
            with suppress(EmbeddingFailed):
                found = await within_call(self._embedder.documents([[text] for text in missing]))
                made = {text: vectors[0] for text, vectors in zip(missing, found, strict=True)}
        known = {text: self._vectors[text] for text in texts if text in self._vectors} | made
        self._vectors |= made
        while len(self._vectors) > CACHED:
            del self._vectors[next(iter(self._vectors))]
        return [known.get(text) for text in texts]


@lru_cache(CACHED)
def sentences_of(text: str) -> tuple[Statement, ...]:
    """Return the statements of a section. Neighbours are read again and again."""
    return tuple(statements.sentences(text))


@lru_cache(CACHED)
def _whole(title: str, text: str) -> Statement:
    return statements.whole(title, text)


def _matters(each: Candidate) -> bool:
    """Return whether something may be told of a pair, depending on its cosine."""
    if each.new.is_short and each.dice >= judgement.SAME_WORDS:
        return True
    return judgement.bar(each.new, each.old, judgement.ALMOST_SAME, each.dice) is not None


def _may_be_whole(passage: Passage) -> bool:
    return passage.position == 0 and statements.is_short(passage.text)


def _closest_side(new: Statement, passage: Passage, item: Item | None) -> Side | None:
    """Return the statement of a passage that is closest to another by words."""
    if item is not None and item.word_count <= statements.SHORT:
        return Side(_whole(passage.title, passage.text), passage.entity_type, True)
    found = sentences_of(passage.text)
    if not found:
        return None
    best = max(found, key=lambda each: len(each.stems & new.stems) / (len(each.stems) + 5) ** 0.5)
    return Side(best, passage.entity_type, False)


def _has_other_value(statement: Statement, short: Sequence[Statement]) -> bool:
    return bool(statement.values) and any(
        2 * len(statement.stems & other.stems) > 0.5 * (len(statement.stems) + len(other.stems))
        and any(found.kind == "value" for found in differences(statement, other))
        for other in short
    )
