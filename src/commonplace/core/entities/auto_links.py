"""Discovered RELATED_TO links: from entities to patterns, procedures and decisions.

Two items are linked when each is among the other's four best. A new item deletes the links that it
displaces, if everybody who sees them sees it, too; `reindex` finds all links anew. Explicit
relations stay.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, partial

from commonplace.core.entities.neighbours import Neighbourhood, Neighbours
from commonplace.core.jobs.worker import run_each
from commonplace.model import (
    EMBED,
    EntityType,
    Item,
    ItemRef,
    Job,
    JobState,
    Kind,
    Relation,
    Scope,
    now,
)
from commonplace.store import Store

LINKS = 4  # best of each end
WAIT = timedelta(seconds=1)
# rules and templates are stored as these
GUIDANCE = (EntityType.PATTERN, EntityType.PROCEDURE, EntityType.DECISION)


@dataclass(eq=False)
class AutoLinker:
    _store: Store
    _neighbours: Neighbours

    async def link(self, scope: Scope, item: Item) -> int:
        """Link an item to related ones in the scope, and return the number of new relations. A
        relation is only visible to callers who see both ends."""
        near = await self._neighbours.of_item(scope, item.id)
        if near is None or item.entity_type == EntityType.DOCUMENT:
            return 0
        library = Scope(item.library_id)

        @cache
        def best(place: int) -> list[int]:
            return near.best(place, _linkable(near, place), LINKS)

        def mutual(one: int, other: int) -> bool:
            return one in best(other) and other in best(one)

        partners = [place for place in best(0) if mutual(0, place)]
        places = {profile.item_id: place for place, profile in enumerate(near.items)}
        known = await self._store.relations.of_items(
            library, [near.items[place].item_id for place in (0, *partners)]
        )
        linked = {frozenset((relation.from_id, relation.to_id)) for relation in known}
        found = [
            _relation(item.library_id, near, place)
            for place in partners
            if frozenset((item.id, near.items[place].item_id)) not in linked
        ]
        displaced = [
            relation
            for relation in known
            if relation.kind == Kind.RELATED_TO
            and not relation.explicit
            and {relation.from_id, relation.to_id} <= places.keys()
            and not mutual(places[relation.from_id], places[relation.to_id])
        ]
        displaced = await self._seen_with(library, item, displaced)
        if not found and not displaced:
            return 0
        return await self._store.relations.replace_discovered(library, displaced, found)

    async def _seen_with(
        self, library: Scope, item: Item, relations: Sequence[Relation]
    ) -> list[Relation]:
        """Return the relations that nobody sees who does not see the item. Others must not change:
        that would tell that there is an item."""
        ends = {end for relation in relations for end in (relation.from_id, relation.to_id)}
        found = await self._store.items.get_many(library, ends | {item.id}) if ends else {}

        def is_seen_with(relation: Relation) -> bool:
            two = [found.get(relation.from_id), found.get(relation.to_id)]
            return (
                item.id in found
                and (item.in_kb or not all(one and one.in_kb for one in two))
                and any(one and {*one.folders} <= {*found[item.id].folders} for one in two)
            )

        return [relation for relation in relations if is_seen_with(relation)]


def _linkable(near: Neighbourhood, place: int) -> list[int]:
    """Return the items whose types may be linked with the one at this place."""
    guides = near.items[place].entity_type in GUIDANCE
    return [
        other
        for other, profile in enumerate(near.items)
        if profile.entity_type in GUIDANCE
        or (guides and profile.entity_type != EntityType.DOCUMENT)
    ]


def _relation(library_id: str, near: Neighbourhood, place: int) -> Relation:
    # To guidance, and from the newer of two: the same relation whichever end is linked first.
    source, target = sorted(
        (near.items[0], near.items[place]),
        key=lambda one: (one.entity_type not in GUIDANCE, one.item_id),
        reverse=True,
    )
    return Relation(
        library_id,
        source.item_id,
        Kind.RELATED_TO,
        target.item_id,
        weight=near.weight(place),
        explicit=False,
    )


@dataclass(eq=False)
class LinkJobs:
    """Runs jobs of kind `link`."""

    at_once = 8

    _store: Store
    _auto_linker: AutoLinker

    async def run(self, worker: str, jobs: Sequence[Job]) -> None:
        await run_each(self._store, worker, jobs, partial(self._link, worker))

    async def _link(self, worker: str, job: Job) -> None:
        item = await self._store.items.get(Scope(job.library_id), ItemRef(id=job.item_id))
        embedding = await self._store.jobs.latest(item, EMBED)
        if embedding and embedding.state in (JobState.QUEUED, JobState.RUNNING):
            # Linked after its vectors are computed, others can find it too.
            await self._store.jobs.postpone(worker, job, now() + WAIT)
            return
        folders, kb_only = job.payload.get("folders"), bool(job.payload.get("kb_only"))
        await self._auto_linker.link(
            Scope(job.library_id, None if folders is None else frozenset(folders), kb_only), item
        )
