"""Corrections in answers: a replacement takes the place of the memory that it supersedes, and what
no longer holds says so."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime

from commonplace.core.search import near_duplicates
from commonplace.model import (
    EXPIRED,
    REVIEW_DUE,
    STALE,
    SUPERSEDED,
    WRONG,
    EntityType,
    Item,
    ItemFilter,
    Kind,
    Passage,
    Scope,
    is_past,
    parse_time,
)
from commonplace.store import Store

LONGEST_CHAIN = 8
SHORT, COMPARED = 60, 20  # words of memories that are compared, and how many are
_NO_MEMORIES = (EntityType.DOCUMENT, EntityType.TASK, EntityType.EPIC, EntityType.PROJECT)
EXPIRED_SHARE = 0.6  # of its score that a memory keeps when its time is over

Found = list[tuple[float, Passage]]
ReplacedBy = Mapping[str, set[str]]


async def newest_first(store: Store, scope: Scope, where: ItemFilter, found: Found) -> Found:
    """Reorder results, best first: what replaced a memory stands directly above it, also if it
    was found further down, or not at all. Memories that are superseded say by which entity.

    As of an earlier time, only what had replaced something by then counts: what was superseded
    already is left out, and what has been corrected since holds.
    """
    replaced_by, newer = await _replacements(
        store, scope, {p.item_id for _, p in found if p.status == SUPERSEDED}
    )
    if where.as_of is not None:
        later = {new for new, item in newer.items() if item.created_at > where.as_of}
        replaced_by = {old: new - later for old, new in replaced_by.items() if new - later}
        found = [(s, _as_it_was(p, where.as_of, replaced_by, newer)) for s, p in found]
    if not replaced_by:
        return _held(found, where)
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
    raised.sort(key=lambda one: (-one[0], len([*_above(one[1].item_id, replaced_by)])))
    return _held(raised, where)


def with_standing(found: Found, at: datetime) -> Found:
    """Mark memories whose time is over, which rank lower, and those that somebody should review. Of
    two that say the same, the newer stands first."""
    told = []
    for score, passage in found:
        if not passage.status and is_past(passage.valid_until, at):
            told.append((score * EXPIRED_SHARE, passage._replace(status=EXPIRED)))
        elif not passage.status and is_past(passage.review_by, at):
            told.append((score, passage._replace(status=REVIEW_DUE)))
        else:
            told.append((score, passage))
    return _newer_of_same(sorted(told, key=lambda one: -one[0]))


def _newer_of_same(found: Found) -> Found:
    """Let the newer of memories that say the same stand first; they share their places."""
    replacements = {
        p.superseded_by for _, p in found
    }  # these stay directly above what they replaced
    places = [
        place
        for place, (_, p) in enumerate(found)
        if p.entity_type not in _NO_MEMORIES
        and not p.status
        and p.word_count <= SHORT
        and p.entity_id not in replacements
    ][:COMPARED]
    ordered = list(found)
    for same in near_duplicates.group(places, lambda n: (found[n][1].title, found[n][1].text)):
        newest = sorted(same, key=lambda n: found[n][1].created_at, reverse=True)
        for place, other in zip(same, newest, strict=True):
            ordered[place] = (found[place][0], found[other][1])
    return ordered


def _as_it_was(
    passage: Passage, at: datetime, replaced_by: ReplacedBy, newer: Mapping[str, Item]
) -> Passage:
    """Drop a correction that was made later."""
    if passage.status not in (SUPERSEDED, STALE) or passage.item_id in replaced_by:
        return passage
    correction = passage.metadata.get("correction")
    made = parse_time(correction.get("at")) if isinstance(correction, dict) else None
    # Replacements may be out of scope, and then only the correction itself tells the time.
    is_later = made > at if made is not None else bool(newer)
    return passage._replace(status="") if is_later else passage


def _held(found: Found, where: ItemFilter) -> Found:
    """Leave out what was superseded at the time that is asked for."""
    return [one for one in found if where.as_of is None or one[1].status != SUPERSEDED]


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
