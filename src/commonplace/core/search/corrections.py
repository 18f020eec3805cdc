"""Corrections in answers: a replacement takes the place of the memory that it supersedes."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from commonplace.model import SUPERSEDED, WRONG, Item, ItemFilter, Kind, Passage, Scope
from commonplace.store import Store

LONGEST_CHAIN = 8

Found = list[tuple[float, Passage]]
ReplacedBy = Mapping[str, set[str]]


async def newest_first(store: Store, scope: Scope, where: ItemFilter, found: Found) -> Found:
    """Reorder results, best first: what replaced a memory stands directly above it, also if it
    was found further down, or not at all. Memories that are superseded say by which entity."""
    replaced_by, newer = await _replacements(
        store, scope, {p.item_id for _, p in found if p.status == SUPERSEDED}
    )
    if not replaced_by:
        return found
    places: dict[str, float] = {}  # the best score of what each replacement replaced
    for score, old in found:
        for item_id in _above(old.item_id, replaced_by):
            places[item_id] = max(score, places.get(item_id, 0.0))
    missing = places.keys() - {p.item_id for _, p in found}
    if missing:
        opened = await store.sections.first_passages(scope, sorted(missing), where)
        found = [*found, *((0.0, passage) for passage in opened)]
    raised = []
    for score, passage in sorted(found, key=lambda one: -one[0]):
        # Only its best passage: the place is taken once.
        score = max(score, places.pop(passage.item_id, 0.0))
        by = _direct(passage.item_id, replaced_by, newer)
        raised.append((score, passage._replace(superseded_by=by) if by else passage))
    # A replacement has fewer above it than what it replaced.
    return sorted(raised, key=lambda one: (-one[0], len([*_above(one[1].item_id, replaced_by)])))


async def _replacements(
    store: Store, scope: Scope, superseded: set[str]
) -> tuple[dict[str, set[str]], dict[str, Item]]:
    """Return what replaced each of these memories and their replacements, and those that did."""
    replaced_by, newer = defaultdict[str, set[str]](set), dict[str, Item]()
    asked = superseded
    for _ in range(LONGEST_CHAIN):
        if not asked:
            break
        for relation in await store.relations.of_items(scope, sorted(asked), [Kind.SUPERSEDES]):
            if relation.to_id in asked and relation.from_id != relation.to_id:
                replaced_by[relation.to_id].add(relation.from_id)
        added = set[str]().union(*(replaced_by.get(old, ()) for old in asked)) - newer.keys()
        newer |= await store.items.get_many(scope, added)
        asked = {new for new in added & newer.keys() if newer[new].status in (SUPERSEDED, WRONG)}
        asked -= replaced_by.keys()
    return dict(replaced_by), newer


def _above(item_id: str, replaced_by: ReplacedBy) -> Iterator[str]:
    """Yield all that replaced an item, nearest first; each once, also in a cycle."""
    seen, found = {item_id}, [item_id]
    for old in found:
        new = sorted(replaced_by.get(old, set()) - seen, reverse=True)  # the newest first
        seen.update(new)
        found += new
        yield from new


def _direct(item_id: str, replaced_by: ReplacedBy, newer: Mapping[str, Item]) -> str | None:
    """Return the entity id of the nearest replacement that is not wrong."""
    above = (newer[new] for new in _above(item_id, replaced_by) if new in newer)
    return next((new.entity_id for new in above if new.status != WRONG), None)
