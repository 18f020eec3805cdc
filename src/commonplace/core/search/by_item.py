"""Hits as people read them: by item, each with its best passages."""

from collections.abc import Iterable
from dataclasses import dataclass

from commonplace.core.search import near_duplicates
from commonplace.model import Hit

PASSAGES = 2  # of an item
READ_FOR_EACH = 4  # passages that are searched for each item that is shown


@dataclass(frozen=True, slots=True)
class FoundItem:
    passages: tuple[Hit, ...]  # at least one, the best first
    also: tuple[Hit, ...] = ()  # passages of other items that say nearly the same

    @property
    def best(self) -> Hit:
        return self.passages[0]


def by_item(hits: Iterable[Hit], limit: int) -> list[FoundItem]:
    """Return the best items, none twice: one that says nearly what another says shares its
    place."""
    found: dict[str, list[Hit]] = {}
    for hit in hits:
        found.setdefault(hit.passage.item_id, []).append(hit)
    groups = near_duplicates.group(
        [(hits[0].passage.title, hits[0].passage.text, hits) for hits in found.values()],
        lambda each: each[:2],
    )
    return [
        FoundItem(tuple(hits[:PASSAGES]), tuple(other[0] for _, _, other in others))
        for (_, _, hits), *others in groups[:limit]
    ]
