"""Find what a new text repeats, contradicts or updates, and the statements closest to it.

What is told as a conflict is nearly certain. The closest other statements are shown as similar:
the caller, who knows what is meant, decides. Nothing is merged, deleted or hidden.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from commonplace.core.entities import judgement, model_verdicts
from commonplace.core.entities.candidates import (
    Candidate,
    Candidates,
    Compared,
    Draft,
    sentences_of,
)
from commonplace.core.entities.judgement import BAR, DUPLICATE, NEAR_DUPLICATE
from commonplace.core.entities.model_verdicts import Verdicts
from commonplace.core.search.similarity import RELATED
from commonplace.model import Item, ItemFilter, Json, Passage, Scope, digest
from commonplace.store import Store
from commonplace.text import statements
from commonplace.text.statements import Statement, differences

MOST, MOST_SIMILAR = 10, 3  # of an answer
SURE = 0.9  # probability from which more than one statement is contradicted
ALIKE, FORMULA = 0.9, 3  # overlap of statements that say the same; items that make it a formula
FLOOR = 0.004  # probability below which a statement is not shown as similar
NEAR = 0.85  # similarity of passages whose items are compared as a whole
COMPARED_AS_A_WHOLE = 4
HALF, COPY = 0.5, 0.8  # of the shorter text's statements; with formulas
LEAST_TWINS = 3  # sentences with a twin, unless all of the shorter text have one
SAME_TEXT = 5  # words of a text that is a duplicate under any title
BY_MODEL = 0.9  # score of what a language model judged


@dataclass(frozen=True, slots=True)
class FoundConflict:
    """An item that a new text repeats or contradicts."""

    item_id: str
    entity_id: str
    name: str
    score: float
    kind: str
    reason: str
    statements: tuple[str, ...] = ()  # theirs, yours
    difference: str | None = None  # theirs against yours
    by_model: bool = False  # a language model judged it, not the rules


@dataclass(frozen=True, slots=True)
class SimilarStatement:
    """A statement close to one of a new text, which the rules do not judge."""

    item_id: str
    entity_id: str
    name: str
    score: float
    statements: tuple[str, ...]  # theirs, yours
    date: datetime  # of the item


@dataclass(frozen=True, slots=True)
class Findings:
    conflicts: tuple[FoundConflict, ...] = ()
    similar: tuple[SimilarStatement, ...] = ()


@dataclass(eq=False)
class Conflicts:
    """Compares texts with the statements of a library."""

    _store: Store
    _candidates: Candidates
    _verdicts: Verdicts

    async def find(
        self,
        scope: Scope,
        draft: Draft,
        *,
        threshold: float = BAR,
        but: Collection[str] = (),
        where: ItemFilter | None = None,
        ask_model: bool = False,
    ) -> Findings:
        """Compare a draft with what the scope sees, except for the items in `but`.

        `threshold`: the score from which a conflict is told. `ask_model`: let a language model, if
        there is one, judge what the rules leave open.
        """
        compared = await self._candidates.compare(scope, draft, but, where)
        told: dict[str, FoundConflict] = {}
        repeats = [_repeated(each, draft, compared) for each in compared.candidates]
        repeats += await self._long_repeats(scope, draft, compared)
        for found in (*repeats, *_contradicted(compared, threshold)):
            if found and found.score >= threshold:
                known = told.get(found.item_id)
                if known is None or (found.kind != NEAR_DUPLICATE, found.score) > (
                    known.kind != NEAR_DUPLICATE,
                    known.score,
                ):
                    told[found.item_id] = found
        open_ = [each for each in _closest(compared) if each.passage.item_id not in told]
        if ask_model:
            for each, verdict in zip(
                open_,
                await self._verdicts.judge(
                    [(each.new.statement.text, each.old.statement.text) for each in open_]
                ),
                strict=True,
            ):
                if verdict and verdict.kind != model_verdicts.UNRELATED and threshold <= BY_MODEL:
                    kind = NEAR_DUPLICATE if verdict.kind == DUPLICATE else verdict.kind
                    judged = _conflict(each, BY_MODEL, kind, verdict.reason)
                    told.setdefault(judged.item_id, replace(judged, by_model=True))
        similar = [
            _similar(each, compared) for each in open_ if each.passage.item_id not in told
        ] + _overview(draft, compared)
        return Findings(
            tuple(sorted(told.values(), key=lambda one: (-one.score, one.item_id))[:MOST]),
            tuple(
                {
                    each.item_id: each for each in reversed(similar) if each.item_id not in told
                }.values()
            )[::-1][:MOST_SIMILAR],
        )

    async def recalled(self, scope: Scope, stored: Json, title: str, text: str) -> Findings:
        """Return findings as they were packed, as far as the scope still sees their items."""
        packed = [*stored.get("conflicts", ()), *stored.get("similar", ())]
        items = await self._store.items.get_many(scope, {each["item_id"] for each in packed})
        texts = await self._store.items.texts(list(items.values()))
        own = _by_digest(title, text)
        known = {item_id: _by_digest(items[item_id].title, each) for item_id, each in texts.items()}

        def fields(each: Json) -> Json:
            item = items[each["item_id"]]
            their_digest, own_digest = each["digests"] or ("", "")
            theirs, mine = known[item.id].get(their_digest), own.get(own_digest)
            pair = (theirs.text, mine.text) if theirs and mine else ()
            differs = differences(mine, theirs) if theirs and mine else []
            return {
                "item_id": item.id,
                "entity_id": item.entity_id,
                "name": item.title,
                "score": each["score"],
                "statements": pair,
            } | (
                {
                    "kind": each["kind"],
                    "reason": each["reason"] or "A language model compared them.",
                    "difference": differs[0].text if differs and each["differs"] else None,
                }
                if "kind" in each
                else {"date": item.published_at or item.created_at}
            )

        return Findings(
            tuple(
                FoundConflict(**fields(each))
                for each in stored.get("conflicts", ())
                if each["item_id"] in known
            ),
            tuple(
                SimilarStatement(**fields(each))
                for each in stored.get("similar", ())
                if each["item_id"] in known
            ),
        )

    async def _long_repeats(
        self, scope: Scope, draft: Draft, compared: Compared
    ) -> list[FoundConflict | None]:
        """Compare a long draft as a whole with the nearest items."""
        near = [
            item_id
            for item_id, (cosine, _) in compared.near.items()
            if compared.scale(cosine) >= NEAR
        ][:COMPARED_AS_A_WHOLE]
        if not near:
            return []
        items = await self._store.items.get_many(scope, near)
        texts = await self._store.items.texts(list(items.values()))
        mine = statements.sentences(draft.text)
        theirs = {
            item_id: [statements.whole(items[item_id].title, text)]
            if statements.is_short(text)
            else statements.sentences(text)
            for item_id, text in texts.items()
        }
        counts = Counter(
            each.normal
            for known in theirs.values()
            for each in {twin.normal: twin for twin in known}.values()
        )
        return [
            _long_repeat(draft, mine, items[item_id], texts[item_id], theirs[item_id], counts)
            for item_id in near
            if item_id in texts
        ]


def packed(found: Findings) -> Json:
    """Return findings without words of others, which may be changed, deleted or filed elsewhere."""
    return {
        "conflicts": [
            {
                "item_id": each.item_id,
                "score": each.score,
                "kind": each.kind,
                "reason": "" if each.by_model else each.reason,
                "differs": each.difference is not None,
                "digests": [digest(text) for text in each.statements],
            }
            for each in found.conflicts
        ],
        "similar": [
            {
                "item_id": each.item_id,
                "score": each.score,
                "digests": [digest(text) for text in each.statements],
            }
            for each in found.similar
        ],
    }


def _by_digest(title: str, text: str) -> dict[str, Statement]:
    found = [statements.whole(title, text)] if statements.is_short(text) else []
    return {digest(each.text): each for each in (*found, *statements.sentences(text))}


def _conflict(
    each: Candidate, score: float, kind: str, reason: str, difference: str | None = None
) -> FoundConflict:
    passage = each.passage
    return FoundConflict(
        passage.item_id,
        f"{passage.entity_type}_{passage.public_id}",
        passage.title,
        round(score, 4),
        kind,
        reason,
        (each.old.statement.text, each.new.statement.text),
        difference,
    )


def _repeated(each: Candidate, draft: Draft, compared: Compared) -> FoundConflict | None:
    """Return that a short statement says the same as another."""
    new, old = each.new, each.old
    if not new.is_short:
        return None
    if old.is_short and _is_same(new.statement, old.statement, draft, each):
        return _conflict(each, 1.0, DUPLICATE, "Both say the same in the same words.")
    likeness = compared.scale(each.cosine) if each.cosine is not None else each.dice
    least = judgement.SAME_MEANING if each.cosine is not None else ALIKE
    if each.dice < judgement.SAME_WORDS or _tells_apart(each):
        return None
    return _conflict(
        each, judgement.shown(likeness, least), NEAR_DUPLICATE, "Both say the same in other words."
    )


def _is_same(new: Statement, old: Statement, draft: Draft, each: Candidate) -> bool:
    if new.normal == old.normal:
        return True
    body, theirs = (Statement(text).normal for text in (draft.text, each.passage.text))
    return body == theirs and not each.is_sibling and len(body.split()) >= SAME_TEXT


def _tells_apart(each: Candidate) -> bool:
    """Return whether statements that are alike differ in what they say, or are about two things."""
    new, old = each.new.statement, each.old.statement
    apart = statements.alignment(new, old)
    return bool(
        (new.ids and old.ids and not new.ids & old.ids)
        or differences(new, old)
        or apart.swapped
        or apart.slots
    )


def _contradicted(compared: Compared, threshold: float) -> list[FoundConflict]:
    """Return what the statements of a draft contradict: each the closest one, and others if that
    is nearly certain."""
    found: list[tuple[float, Candidate, FoundConflict]] = []
    by_probe: dict[int, list[Candidate]] = {}
    for each in compared.candidates:
        by_probe.setdefault(id(each.new), []).append(each)
    for candidates in by_probe.values():
        alike = {each.old.statement.normal for each in candidates if each.dice >= ALIKE}
        if len(alike) >= FORMULA:
            continue
        judged = []
        for each in candidates:
            cosine = each.cosine if each.cosine is not None else None
            likeness = compared.scale.share(cosine) if cosine is not None else each.dice
            known = cosine is not None or compared.by_words
            bar = judgement.bar(each.new, each.old, likeness, each.dice) if known else None
            if bar is None or each.is_sibling:
                continue
            if compared.by_words:  # only what is nearly certain
                bar = SURE
            score = judgement.shown(each.probability, bar)
            if score >= threshold:
                differs = differences(each.new.statement, each.old.statement)
                kind, reason = judgement.kind_and_reason(each.new.statement, differs)
                text = differs[0].text if differs else None
                judged.append((each.probability, each, _conflict(each, score, kind, reason, text)))
        judged.sort(key=lambda one: -one[0])
        found += [one for n, one in enumerate(judged) if n == 0 or one[0] >= SURE]
    return [conflict for _, _, conflict in found]


def _closest(compared: Compared) -> list[Candidate]:
    """Return the candidates that are close enough to be shown, closest first, one of each item."""
    best: dict[str, Candidate] = {}
    for each in sorted(compared.candidates, key=lambda each: -each.probability):
        if each.probability >= FLOOR:
            best.setdefault(each.passage.item_id, each)
    return list(best.values())


def _similar(each: Candidate, compared: Compared) -> SimilarStatement:
    cosine = each.cosine if each.cosine is not None else each.of_section
    return _shown_as_similar(
        each.passage,
        compared.scale(cosine) if cosine is not None else each.dice,
        each.old.statement,
        each.new.statement,
    )


def _shown_as_similar(
    passage: Passage, score: float, theirs: Statement, mine: Statement
) -> SimilarStatement:
    return SimilarStatement(
        passage.item_id,
        f"{passage.entity_type}_{passage.public_id}",
        passage.title,
        round(score, 4),
        (theirs.text, mine.text),
        passage.published_at or passage.created_at,
    )


def _overview(draft: Draft, compared: Compared) -> list[SimilarStatement]:
    """Return the statements of a long draft and of the nearest items that have most in common."""
    if not compared.near:
        return []
    mine = statements.sentences(draft.text)
    found = []
    for cosine, passage in list(compared.near.values())[:MOST_SIMILAR]:
        pairs = [(a, b) for a in sentences_of(passage.text) for b in mine if a.stems & b.stems]
        if (score := compared.scale(cosine)) >= RELATED and pairs:
            theirs, own = max(
                pairs,
                key=lambda pair: (
                    len(pair[0].stems & pair[1].stems)
                    / (len(pair[0].stems) + len(pair[1].stems) + 5)
                ),
            )
            found.append(_shown_as_similar(passage, score, theirs, own))
    return found


def _long_repeat(
    draft: Draft,
    mine: Sequence[Statement],
    item: Item,
    text: str,
    theirs: Sequence[Statement],
    counts: Mapping[str, int],
) -> FoundConflict | None:
    """Return that half of the shorter text's statements have a twin in the other text.

    `counts`: how many known items have a statement; where it is a formula of many, nearly all have
    to have a twin.
    """
    if text.split() == draft.text.split():
        score, kind, reason = 1.0, DUPLICATE, "Both have the same text."
        pairs = [(theirs[0], mine[0])] if theirs and mine else []
    else:
        turned = len(mine) > len(theirs)
        fewer, more = (theirs, mine) if turned else (mine, theirs)
        twins = [(each, twin) for each in fewer if (twin := _twin(each, more))]
        pairs = twins if turned else [(b, a) for a, b in twins]
        share = len(twins) / (len(fewer) or 1)
        own = sum(counts[b.normal] < FORMULA for b, _ in pairs) / (len(fewer) or 1)
        if (len(twins) < LEAST_TWINS and share < 1) or (own < HALF and share < COPY):
            return None
        score, kind = judgement.shown(share, HALF), NEAR_DUPLICATE
        reason = f"{len(twins)} of {len(fewer)} statements of the shorter one are in both."
    # What differs in sentences that are otherwise the same is worth a look.
    apart = [(pair, told[0].text) for pair in pairs if (told := differences(pair[1], pair[0]))]
    shown, differs = apart[0] if apart else (pairs[0] if pairs else (), None)
    found = FoundConflict(item.id, item.entity_id, item.title, score, kind, reason)
    return replace(found, statements=tuple(each.text for each in shown), difference=differs)


def _twin(statement: Statement, others: Sequence[Statement]) -> Statement | None:
    """Return the other statement with nearly the same words."""

    def overlap(other: Statement) -> float:
        both = len(statement.stems & other.stems)
        return 2 * both / ((len(statement.stems) + len(other.stems)) or 1)

    best = max(others, key=overlap, default=None)
    return best if best is not None and overlap(best) >= judgement.TWIN else None
