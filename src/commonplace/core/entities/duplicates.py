"""Find items that say the same as a new text, nearly the same, or the opposite.

Cosine similarity alone treats "retry three times" and "retry five times" as equal. So texts are
compared twice: how similar they are, and how they differ. Texts with different identifiers are
about two things. Texts that differ by a number, date, version, negation or opposite contradict each
other.

One similarity scale for every embedder is calibrated with known texts. Sample passages on different
subjects, each with a paraphrase and a related text, are embedded once per process. The medians of
their cosines are fixed points of the scale, with straight lines between.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

import numpy as np

from commonplace.model import ItemFilter, Scope
from commonplace.ports import Embedder, Vector
from commonplace.store import Store
from commonplace.text import query_terms
from commonplace.text.contrasts import Text, difference

# scale values of the medians of unrelated texts, related texts and paraphrases
UNRELATED, RELATED, SAME = (0.1, 0.75, 0.92)

# (text, paraphrase, related text)
SAMPLES = (
    (
        "Connection pool exhausted\nRequests block until a timeout when every database connection "
        "of the pool is in use. "
        "Set the pool size to at least twice the number of workers.",
        "Database pool runs out of connections\nIf all connections in the pool are taken, "
        "requests wait and then time out. "
        "The pool should be at least two times as large as the worker count.",
        "Sizing database pools\nChoose the number of pooled connections from the number of "
        "workers, and alert when callers "
        "wait for a connection.",
    ),
    (
        "Error boundary\nWrap critical parts of a React page in an error boundary, so that an "
        "exception in one component "
        "does not blank the whole page.",
        "Error boundaries in React\nPut error boundaries around important sections of the page; a "
        "component that throws then "
        "leaves the rest of the page standing.",
        "React dashboard shows a white page\nWhen a chart component throws, the entire dashboard "
        "disappears for the user.",
    ),
    (
        "Rotating the signing key\nCreate the new key, publish both in the key set, switch "
        "signing to the new one, and remove "
        "the old key after the longest token lifetime has passed.",
        "How to rotate signing keys\nGenerate a key, publish it beside the old one, start signing "
        "with it, then drop the old "
        "key once all tokens that it signed have expired.",
        "Expired JWT keys break login\nTokens signed with a key that was removed from the key set "
        "are refused, and people "
        "have to sign in again.",
    ),
    (
        "Bread needs rest\nLet the dough rise slowly in the refrigerator overnight; the crust "
        "gets darker and the crumb more "
        "open.",
        "Overnight rise for bread\nA slow, cold rise of the dough during the night gives an open "
        "crumb and a dark crust.",
        "Sourdough loaf came out flat\nThe dough was baked after an hour, had hardly risen, and "
        "the crumb was dense.",
    ),
    (
        "Backups are tested every month\nA restore into an empty machine is run on the first "
        "Monday, timed, and compared with "
        "the live row counts.",
        "Monthly restore test\nOn the first Monday of the month the backup is restored on a blank "
        "server; duration and row "
        "counts are checked against production.",
        "Nightly backup job fails on a full disk\nThe dump stops half way when the volume has no "
        "space left, and nobody is "
        "told.",
    ),
    (
        "Decision: feature flags instead of long branches\nUnfinished work is merged daily behind "
        "a flag, because long-lived "
        "branches cost us two days of conflicts at each release.",
        "We merge daily behind feature flags\nBecause branches that live long caused days of "
        "merge conflicts before releases, "
        "incomplete work goes to main behind flags.",
        "Remove the checkout flag\nThe new checkout has been on for everybody since March; delete "
        "its flag and the old code.",
    ),
    (
        "Herons nest in colonies\nGrey herons build their nests high in trees near water, and "
        "return to the same colony each "
        "spring.",
        "Grey heron colonies\nEvery spring grey herons come back to the same groups of nests, "
        "which lie in tall trees close "
        "to water.",
        "Counting nests by the lake\nIn April the volunteers count occupied heron nests from the "
        "shore with telescopes.",
    ),
    (
        "Pagination by cursor\nReturn an opaque cursor with each page instead of an offset; rows "
        "that are inserted meanwhile "
        "are then neither skipped nor shown twice.",
        "Use cursors for paging\nGive clients an opaque cursor rather than an offset, so that "
        "concurrent inserts neither "
        "repeat nor hide rows between pages.",
        "List endpoint skips orders\nWhile new orders arrive, the second page of the API misses "
        "some rows and repeats others.",
    ),
    (
        "Stretching before a run\nTen minutes of easy walking and leg swings prepare the muscles "
        "better than holding static "
        "stretches.",
        "Warm up before running\nEasy walking and swinging the legs for ten minutes warms muscles "
        "more effectively than static "
        "stretching.",
        "Calf strain after sprints\nThe runner began with fast sprints on a cold morning and "
        "strained a calf muscle.",
    ),
    (
        "Cache invalidation on write\nDelete the cached profile in the same transaction hook that "
        "updates the row; readers "
        "then never see a stale name for longer than one request.",
        "Invalidate the cache when writing\nWhen the profile row is updated, its cache entry is "
        "removed by the same hook, so "
        "stale names last for one request at most.",
        "Old user names shown after renaming\nPeople who change their name still see the old one "
        "for an hour because the "
        "profile stays in Redis.",
    ),
    (
        "Quarterly tax payment\nFreelancers pay estimated income tax four times a year; a late "
        "payment is charged interest "
        "from the due day.",
        "Estimated taxes each quarter\nSelf-employed people owe income tax in advance every "
        "quarter, and interest runs from "
        "the deadline if they pay late.",
        "Reminder for the June tax deadline\nTransfer the estimated tax for the second quarter "
        "before the fifteenth.",
    ),
    (
        "Container images are built once\nThe image that passed the tests is promoted from "
        "staging to production by its "
        "digest and never rebuilt.",
        "Build once, promote by digest\nProduction runs the very image that was tested in "
        "staging; it is referred to by "
        "digest and not built again.",
        "Deploy pipeline for the API\nTests run on the image, then the release job rolls it out "
        "to the Kubernetes cluster.",
    ),
)


@dataclass(frozen=True, slots=True)
class Scale:
    cosines: tuple[float, ...]
    values: tuple[float, ...]

    def __call__(self, cosine: float) -> float:
        return float(np.clip(np.interp(cosine, self.cosines, self.values), 0.0, 1.0))


@dataclass(eq=False)
class SimilarityScale:
    """Calibrates one embedder's scale, on first use."""

    _embedder: Embedder
    _scale: Scale | None = field(default=None, init=False)
    _measuring: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def scale(self) -> Scale:
        async with self._measuring:
            if self._scale is None:
                self._scale = await self._measure()
        return self._scale

    async def _measure(self) -> Scale:
        found = await self._embedder.documents([[text] for triple in SAMPLES for text in triple])
        vectors = np.array([document[0] for document in found], np.float32).reshape(
            len(SAMPLES), 3, -1
        )
        texts, same, belongs = vectors[:, 0], vectors[:, 1], vectors[:, 2]
        unlike = (texts @ texts.T)[~np.eye(len(SAMPLES), dtype=bool)]
        marks = [
            float(median(unlike)),
            float(median((texts * belongs).sum(axis=1))),
            float(median((texts * same).sum(axis=1))),
        ]
        # an embedder that cannot separate the samples still gets a rising scale
        for n in range(1, 3):
            marks[n] = min(max(marks[n], marks[n - 1] + 0.01), 0.99 + 0.001 * n)
        return Scale((-1.0, *marks, 1.0), (0.0, UNRELATED, RELATED, SAME, 1.0))


THRESHOLD = 0.85
PARTS = 8  # of a long text that are compared
CANDIDATES = 8  # sections compared with each part
FLOOR = 0.7  # similarity below which no rule finds a conflict; comparing texts costs time
MOST = 10  # conflicts that are reported
ASKED_CHARACTERS = 400  # of the text, whose words are searched for

DUPLICATE, NEAR_DUPLICATE, CONTRADICTION = "duplicate", "near_duplicate", "contradiction"


class Part(NamedTuple):
    """A passage of a text with its vector. Without one, only keywords are compared."""

    text: str
    vector: Vector | None


@dataclass(frozen=True, slots=True)
class SimilarItem:
    """An existing item similar to a new text, with the kind of similarity and the reason."""

    item_id: str
    entity_id: str
    name: str
    score: float
    kind: str
    reason: str


def compare(new: Text, old: Text, similarity: float) -> tuple[float, str, str] | None:
    """Return (score, kind, reason), or None for texts about different things. `similarity`: 0 to 1,
    on the calibrated scale."""
    if new.stems == old.stems and new.normal == old.normal:
        return 1.0, DUPLICATE, "the same words"
    if new.ids and old.ids and not new.ids & old.ids:
        return None
    shared, told = new.stems & old.stems, new.stems | old.stems
    overlap = 2 * len(shared) / max(1, len(new.stems) + len(old.stems))
    score = _score(similarity, overlap, min(len(new.stems), len(old.stems)))
    opposed = difference(new, old) if overlap >= 0.4 else None
    if opposed:
        # Apart from the difference they say the same, so the overlap is their similarity.
        return (
            max(score, min(0.99, 0.6 + 0.4 * overlap)) if overlap >= 0.6 else score,
            CONTRADICTION,
            opposed,
        )
    if overlap >= 0.92 and len(told) >= 2:
        return (
            max(score, 0.9 + 0.09 * overlap),
            NEAR_DUPLICATE,
            "the same significant words in another order or form",
        )
    return score, NEAR_DUPLICATE, f"{len(shared)} of {len(told)} significant words in common"


def _score(similarity: float, overlap: float, fewest: int) -> float:
    """Lower the similarity of texts with few words in common. The shorter the texts, the more one
    different word counts: "We use Redis" and "We use Kafka" share half their words."""
    needed = min(0.95, 0.5 + 1.5 / max(1, fewest))
    return similarity * (0.8 + 0.2 * min(1.0, overlap / needed))


@dataclass(eq=False)
class Duplicates:
    """Finds items similar to a text before it is added."""

    _store: Store
    _embedder: Embedder
    _similarity: SimilarityScale

    async def conflicts(
        self,
        scope: Scope,
        title: str,
        parts: Sequence[Part],
        *,
        threshold: float = THRESHOLD,
        but: Sequence[str] = (),
        where: ItemFilter | None = None,
    ) -> tuple[SimilarItem, ...]:
        """Return similar items, best first. `parts`: passages of the text, of which the first PARTS
        count. `but`: items to leave out."""
        parts = parts[:PARTS]
        near = await self._near(scope, title, parts, where)
        floor = min(FLOOR, threshold) if parts[0].vector is not None else 0.0
        close = [section_id for section_id, (similarity, _) in near.items() if similarity >= floor]
        passages = await self._store.sections.passages(scope, close) if close else []
        best: dict[str, SimilarItem] = {}
        mine = [Text(title, part.text) for part in parts]
        for passage in passages:
            similarity, part = near[passage.section_id]
            found = compare(mine[part], Text(passage.title, passage.text), similarity)
            if (
                found
                and found[0] >= threshold
                and passage.item_id not in but
                and (passage.item_id not in best or best[passage.item_id].score < found[0])
            ):
                score, kind, reason = found
                best[passage.item_id] = SimilarItem(
                    passage.item_id,
                    f"{passage.entity_type}_{passage.public_id}",
                    passage.title,
                    round(score, 4),
                    kind,
                    reason,
                )
        return tuple(sorted(best.values(), key=lambda one: (-one.score, one.item_id))[:MOST])

    async def _near(
        self, scope: Scope, title: str, parts: Sequence[Part], where: ItemFilter | None
    ) -> dict[int, tuple[float, int]]:
        """Return candidate sections, each with its similarity and the index of the most similar
        part."""
        vectors = [part.vector for part in parts if part.vector is not None]
        if not vectors:
            asked = query_terms.parse_query(f"{title} {parts[0].text[:ASKED_CHARACTERS]}")
            return {
                found.section_id: (0.0, 0)
                for found in await self._store.sections.keyword(scope, asked, CANDIDATES, where)
            }
        scale, best = await self._similarity.scale(), dict[int, tuple[float, int]]()
        for part, near in enumerate(
            await self._store.sections.nearest_to_each(
                scope, vectors, self._embedder.stamp, CANDIDATES, where=where
            )
        ):
            for found in near:
                best[found.section_id] = max(
                    best.get(found.section_id, (-1.0, 0)), (scale(found.score), part)
                )
        return best
