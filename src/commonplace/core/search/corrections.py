"""Corrections in answers: replacements stand above the memories that they supersede."""

from commonplace.model import SUPERSEDED, ItemFilter, Kind, Passage, Scope
from commonplace.store import Store

LONGEST_CHAIN = 8

Found = list[tuple[float, Passage]]


async def newest_first(store: Store, scope: Scope, where: ItemFilter, found: Found) -> Found:
    """Reorder results, best first. A replacement that was not found is inserted above its
    original."""
    replaced_by: dict[str, set[str]] = {}
    for _ in range(LONGEST_CHAIN):
        asked = {p.item_id for _, p in found if p.status == SUPERSEDED} - replaced_by.keys()
        if not asked:
            break
        replaced_by |= {old: set() for old in asked}
        for relation in await store.relations.of_items(scope, sorted(asked), [Kind.SUPERSEDES]):
            if relation.to_id in asked and relation.from_id != relation.to_id:
                replaced_by[relation.to_id].add(relation.from_id)
        missing = set[str]().union(*replaced_by.values()) - {p.item_id for _, p in found}
        opened = (
            await store.sections.first_passages(scope, sorted(missing), where) if missing else []
        )
        found = found + [
            (
                max(
                    score for score, old in found if new.item_id in replaced_by.get(old.item_id, ())
                ),
                new,
            )
            for new in opened
        ]
    return _ordered(found, replaced_by) if replaced_by else found


def _ordered(found: Found, replaced_by: dict[str, set[str]]) -> Found:
    best: dict[str, float] = {}
    for score, passage in found:
        best[passage.item_id] = max(score, best.get(passage.item_id, 0.0))

    def bound(item_id: str, seen: frozenset[str] = frozenset()) -> tuple[float, int]:
        """Return the highest allowed score, and the number of replacements above."""
        newer = [
            bound(new, seen | {item_id})
            for new in replaced_by.get(item_id, ())
            if new in best and new not in seen
        ]
        return min([best[item_id], *(score for score, _ in newer)]), 1 + max(
            (age for _, age in newer), default=-1
        )

    bounds = {item_id: bound(item_id) for item_id in best}
    capped = [(min(score, bounds[p.item_id][0]), bounds[p.item_id][1], p) for score, p in found]
    return [(score, p) for score, _, p in sorted(capped, key=lambda hit: (-hit[0], hit[1]))]
