"""Find items that say the same as a new text, nearly the same, or the opposite.

Cosine similarity alone treats "retry three times" and "retry five times" as equal. So texts are
compared twice: how similar they are, and how they differ. Texts with different identifiers are
about two things. Texts that differ by a number, date, version, negation or opposite contradict each
other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from commonplace.core.search.similarity import SimilarityScale
from commonplace.model import ItemFilter, Scope
from commonplace.ports import Embedder, Vector
from commonplace.store import Store
from commonplace.text import query_terms
from commonplace.text.contrasts import Text, difference

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
