"""Relations between items: explore, dependencies, cycles, links made by people and agents."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from commonplace.core.entities import validation as rules
from commonplace.core.people.authorization import GRAPH_WRITE, READ, Service, verb
from commonplace.core.search.search import find_project
from commonplace.core.work.tasks import Tasks
from commonplace.errors import Invalid, NotFound
from commonplace.model import (
    EVERYTHING,
    Caller,
    EntityType,
    Item,
    ItemFilter,
    ItemRef,
    Kind,
    Neighbourhood,
    Relation,
    Scope,
)
from commonplace.model.workflow import MACHINES, TASK, parse_statuses, with_article

CYCLES = 20  # named in one answer
# a task or epic has at most one of each
_PLACES: dict[str, str] = {Kind.BELONGS_TO: "project", Kind.PART_OF: "epic"}


@dataclass(frozen=True, slots=True)
class GraphQuery:
    """Filters of an exploration. `project`: its id, title or repository."""

    types: tuple[str, ...] = ()
    project: str | None = None
    statuses: tuple[str, ...] = ()
    language: str | None = None
    category: str | None = None


@dataclass(frozen=True, slots=True)
class DependencyChain:
    """The dependencies of an item in a workable order. The item itself comes last."""

    center: Item
    items: tuple[Item, ...]
    relations: tuple[Relation, ...]
    distances: dict[str, int]  # by item id
    cycles: tuple[tuple[Item, ...], ...]  # each ends with its first item
    cut: bool


@dataclass(eq=False)
class Graph(Service):
    _tasks: Tasks

    @verb(READ, "explore")
    async def list(
        self, caller: Caller, wanted: GraphQuery, *, limit: int, offset: int = 0
    ) -> tuple[Sequence[Item], int]:
        return await self._store.items.list_page(
            caller.scope, await self._filter(caller.scope, wanted), limit=limit, offset=offset
        )

    @verb(READ, "explore", target="entity_id")
    async def around(
        self,
        caller: Caller,
        entity_id: str,
        wanted: GraphQuery,
        *,
        kinds: Sequence[str] = (),
        depth: int = 1,
        limit: int,
        offset: int = 0,
    ) -> Neighbourhood:
        """Return items within `depth` steps along relations of these kinds, in both directions."""
        return await self._store.relations.neighbourhood(
            caller.scope,
            ItemRef.parse(entity_id),
            depth=depth,
            limit=limit,
            offset=offset,
            kinds=kinds,
            where=await self._filter(caller.scope, wanted),
        )

    @verb(READ, "explore", target="entity_id")
    async def dependencies(
        self, caller: Caller, entity_id: str, wanted: GraphQuery
    ) -> DependencyChain:
        found = await self._store.relations.dependencies(
            caller.scope, ItemRef.parse(entity_id), await self._filter(caller.scope, wanted)
        )
        needs = _needs(found.items, found.relations)
        order, cycles = in_order(needs, [found.center.id])
        items = {item.id: item for item in found.items}
        return DependencyChain(
            found.center,
            tuple(items[item_id] for item_id in order if item_id in found.asked),
            found.relations,
            _distances(needs, found.center.id),
            tuple(tuple(items[i] for i in cycle) for cycle in cycles),
            found.cut,
        )

    async def cycles(self, scope: Scope, project: str | None = None) -> Sequence[Sequence[Item]]:
        """Return cycles of dependencies, in a project or the library. Each ends with its first
        item."""
        project_id = (await self._filter(scope, GraphQuery(project=project))).project_id
        waits = await self._store.relations.dependency_pairs(scope)
        cycles = cycles_of(waits)
        if cycles and project_id is not None:  # cycles may lead through other projects
            joined = await self._store.relations.of_items(
                scope,
                sorted({end for pair in waits for end in pair}),
                [Kind.BELONGS_TO],
                outgoing=True,
            )
            inside = {relation.from_id for relation in joined if relation.to_id == project_id}
            cycles = cycles_of(
                [
                    (from_id, to_id)
                    for from_id, to_id in waits
                    if from_id in inside and to_id in inside
                ]
            )
        items = await self._store.items.get_many(
            scope, {item_id for cycle in cycles for item_id in cycle}
        )
        return [
            [items[item_id] for item_id in cycle]
            for cycle in cycles
            if all(item_id in items for item_id in cycle)
        ]

    @verb(READ, target="entity_id")
    async def relations(
        self,
        caller: Caller,
        entity_id: str,
        *,
        kinds: Sequence[str] = (),
        limit: int = 50,
        offset: int = 0,
    ) -> Neighbourhood:
        return await self._store.relations.neighbourhood(
            caller.scope, ItemRef.parse(entity_id), depth=1, limit=limit, offset=offset, kinds=kinds
        )

    @verb(GRAPH_WRITE, target="entity_id")
    async def link(
        self, caller: Caller, entity_id: str, kind: str, other_id: str
    ) -> tuple[Item, Item, Relation, bool]:
        """Link two items, and return them, the kind and whether it is new. A task has one project
        and one epic: a new one replaces the old."""
        one, other = await self._ends(caller.scope, entity_id, other_id)
        _require_joinable(one, kind, other)
        relation = Relation(caller.library_id, one.id, kind, other.id)
        if kind not in _PLACES or one.entity_type not in rules.WORK:
            return (
                one,
                other,
                relation,
                bool(await self._store.relations.put(caller.scope, [relation])),
            )
        held = await self._store.relations.of_items(caller.scope, [one.id], [kind], outgoing=True)
        if new := all(r.to_id != other.id for r in held):
            await self._tasks.apply(
                caller, one.id, MACHINES[one.entity_type], {_PLACES[kind]: other.id}
            )
        return one, other, relation, new

    @verb(GRAPH_WRITE, target="entity_id")
    async def unlink(self, caller: Caller, entity_id: str, kind: str, other_id: str) -> None:
        one, other = await self._ends(caller.scope, entity_id, other_id)
        if kind == Kind.BELONGS_TO and one.entity_type in rules.WORK:
            raise Invalid(
                f"{one.title} is {with_article(one.entity_type)}, which needs a project. "
                "Link it to another one with BELONGS_TO, or archive or delete it."
            )
        if kind == Kind.PART_OF and one.entity_type == EntityType.TASK:
            held = await self._store.relations.of_items(
                caller.scope, [one.id], [kind], outgoing=True
            )
            if all(r.to_id != other.id for r in held):
                raise NotFound("Relation not found")
            await self._tasks.apply(caller, one.id, TASK, {"epic": None})
            return
        await self._store.relations.delete(caller.scope, one.id, kind, other.id)

    async def _ends(self, scope: Scope, entity_id: str, other_id: str) -> tuple[Item, Item]:
        return (
            await self._store.items.get(scope, ItemRef.parse(entity_id)),
            await self._store.items.get(scope, ItemRef.parse(other_id)),
        )

    async def _filter(self, scope: Scope, wanted: GraphQuery) -> ItemFilter:
        where = replace(
            EVERYTHING,
            entity_types=wanted.types,
            statuses=parse_statuses(wanted.statuses),
            language=wanted.language,
            category=wanted.category,
        )
        if wanted.project is None:
            return where
        return replace(
            where, project_id=(await find_project(self._store, scope, wanted.project)).id
        )


def _require_joinable(one: Item, kind: str, other: Item) -> None:
    rules.refuse(
        (one.id == other.id, "An entity cannot be linked to itself. Name two different ones."),
        *(
            (
                kind == Kind.DEPENDS_ON and item.entity_type not in rules.WORK,
                f"{item.title} is {with_article(item.entity_type)}; DEPENDS_ON links tasks and "
                "epics. Use REQUIRES for other types.",
            )
            for item in (one, other)
        ),
        *(
            (
                kind == needing and other.entity_type != needed,
                f"{other.title} is {with_article(other.entity_type)}, not {with_article(needed)}. "
                f'List them with explore and types=["{needed}"].',
            )
            for needing, needed in _PLACES.items()
        ),
        (
            kind == Kind.PART_OF and one.entity_type != EntityType.TASK,
            f"{one.title} is {with_article(one.entity_type)}; only tasks can be part of an epic. "
            "Use RELATED_TO for other types.",
        ),
    )


def _needs(items: Sequence[Item], relations: Sequence[Relation]) -> dict[str, list[str]]:
    needs: dict[str, list[str]] = {item.id: [] for item in items}
    for relation in relations:
        needs[relation.from_id].append(relation.to_id)
    return needs


def cycles_of(waits: Sequence[tuple[str, str]]) -> Sequence[Sequence[str]]:
    """Return cycles among dependencies, as ids. Each ends with its first id."""
    # an id that is not on both sides is in no cycle
    both = {from_id for from_id, _ in waits} & {to_id for _, to_id in waits}
    needs: dict[str, list[str]] = {}
    needed_by: dict[str, list[str]] = {}
    for from_id, to_id in waits:
        if from_id in both and to_id in both:
            needs.setdefault(from_id, []).append(to_id)
            needed_by.setdefault(to_id, []).append(from_id)
    left, done = (
        {item_id: len(others) for item_id, others in needs.items()},
        [one for one in needed_by if one not in needs],
    )
    for item_id in done:  # grows during the loop: the next ones in order
        for other in needed_by.get(item_id, ()):
            left[other] -= 1
            if not left[other]:
                done.append(other)
    stuck = sorted(item_id for item_id, count in left.items() if count)
    return in_order(
        {item_id: [need for need in needs[item_id] if left.get(need)] for item_id in stuck}, stuck
    )[1]


def in_order(
    needs: dict[str, list[str]], starts: Sequence[str]
) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Return all dependencies, each after its own, and the cycles that prevent that."""
    order: dict[str, None] = {}
    cycles: list[list[str]] = []
    for start in starts:
        # with the number of dependencies visited
        way: dict[str, int] = {start: 0} if start not in order else {}
        while way:
            node, looked = next(reversed(way.items()))
            if looked == len(needs[node]):
                order[node] = None
                way.popitem()
                continue
            way[node] += 1
            need = needs[node][looked]
            if need in way and len(cycles) < CYCLES:
                back = list(way)
                cycles.append([*back[back.index(need) :], need])
            elif need not in order and need not in way:
                way[need] = 0
    return list(order), cycles


def _distances(needs: dict[str, list[str]], start: str) -> dict[str, int]:
    distances, order = {start: 0}, [start]
    for node in order:  # grows during the loop: the nearest first
        for need in needs[node]:
            if need not in distances:
                distances[need] = distances[node] + 1
                order.append(need)
    return distances
