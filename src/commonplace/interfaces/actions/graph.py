"""Actions on the graph: explore it, link and unlink entities."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import model_validator

from commonplace.interfaces.actions.action import Action, Done, Tool
from commonplace.interfaces.actions.entities import OneEntity
from commonplace.interfaces.actions.fields import (
    WHOLE,
    AnyTypeNames,
    Category,
    Cli,
    ExploreModeName,
    Id,
    Input,
    ItemId,
    KindName,
    Offset,
    Project,
    Statuses,
    about,
    chars,
    number,
)
from commonplace.interfaces.actions.items import (
    SUMMARY_CHARS,
    list_line,
    shorten,
    written_summary,
)
from commonplace.interfaces.actions.shapes import (
    NEXT,
    Call,
    Field,
    Shape,
    many,
    one,
    said,
    to_the_second,
)
from commonplace.model import Caller, Item, Json, Kind, Neighbour, Neighbourhood, Relation

if TYPE_CHECKING:
    from commonplace.core.services import Services
    from commonplace.core.work.graph import DependencyChain, GraphQuery

# -- inputs

Limit = Annotated[int, number(1, 200, "How many entities to return"), WHOLE]


class Explore(Input):
    mode: Annotated[
        ExploreModeName,
        about(
            "related: direct links of entity_id; traverse: up to `depth` hops; dependencies: what "
            "a task waits for, in order"
        ),
    ] = "list"
    types: AnyTypeNames | None = None
    entity_id: Annotated[ItemId | None, about("Start; required except for mode=list")] = None
    relationship_types: Annotated[
        list[KindName] | None,
        about("Follow only these, such as DEPENDS_ON", max_length=20),
        Cli("--relation"),
    ] = None
    depth: Annotated[int, number(1, 3, "traverse: number of hops"), WHOLE] = 1
    project: Project | None = None
    status: Statuses | None = None
    language: Annotated[str | None, chars(0, 100, "Programming language")] = None
    category: Category | None = None
    limit: Limit = 50
    offset: Offset = 0

    @model_validator(mode="after")
    def _check_start(self) -> "Explore":
        if self.mode != "list" and self.entity_id is None:
            raise ValueError(
                f"entity_id required: mode={self.mode} begins at an entity; mode=list finds one"
            )
        if self.mode == "list" and self.entity_id is not None:
            raise ValueError(
                "entity_id does not go with mode=list: use related, traverse or dependencies to "
                "begin at an entity"
            )
        return self

    @property
    def wanted(self) -> "GraphQuery":
        from commonplace.core.work.graph import GraphQuery

        statuses = () if self.status is None else (self.status,)
        return GraphQuery(
            tuple(self.types or ()), self.project, statuses, self.language, self.category
        )


class ListRelations(OneEntity):
    relationship_types: Annotated[
        list[KindName], about("Only these", max_length=20), Cli("--relation")
    ] = []
    limit: Limit = 50
    offset: Offset = 0

    @property
    def kinds(self) -> Sequence[str]:
        return self.relationship_types


class Link(OneEntity):
    to: Annotated[Id, about("The other entity, by any of its ids")]
    type: Annotated[
        KindName,
        about(
            "DEPENDS_ON joins tasks and epics, BELONGS_TO leads to a project, PART_OF to an epic; "
            "the others join anything"
        ),
    ] = Kind.RELATED_TO

    @property
    def kind(self) -> str:
        return self.type

    @property
    def other_id(self) -> str:
        return self.to


class RefreshEntity(OneEntity):
    @property
    def item_id(self) -> str:
        return self.entity_id


# -- answers


@dataclass(frozen=True, slots=True)
class Node:
    """An entity in an answer, and how the walk came to it."""

    item: Item
    distance: int | None = None
    reached: Neighbour | None = None


@dataclass(frozen=True, slots=True)
class Walk:
    """The answer to an exploration."""

    nodes: Sequence[Node]
    total: int
    start: Node | None = None
    relations: Sequence[Relation] = ()
    truncated: bool = False
    cycles: Sequence[Sequence[Item]] = ()

    @property
    def names(self) -> dict[str, str]:
        """The entity ids of all that is shown, by item id."""
        shown = [*self.nodes, *filter(None, [self.start])]
        return {node.item.id: node.item.entity_id for node in shown}


def _reached(name: str) -> Any:
    return lambda node, call: getattr(node.reached, name) if node.reached else None


NODE = Shape(
    "GraphNode",
    Node,
    id="item.entity_id",
    type="item.entity_type",
    title="item.title",
    status=Field(str | None, lambda node, call: node.item.status or None),
    summary=Field(str | None, lambda node, call: shorten(node.item.summary, SUMMARY_CHARS) or None),
    created_at="item.created_at",
    distance=said(int | None, "distance", "Hops from the start"),
    relationship=Field(str | None, _reached("kind"), "Best relation to `via`"),
    direction=Field(str | None, _reached("direction"), "outgoing: the relation points to it"),
    via=Field(str | None, _reached("via"), "The previous entity on the path"),
)
# `from` is a word of Python's own, so these fields are written as a dictionary.
_RELATION: dict[str, Any] = {
    "from": said(str, "start"),
    "type": said(str, "relation.kind"),
    "to": said(str, "end"),
    "weight": Field(float, lambda link, call: round(link.relation.weight, 4)),
    "explicit": said(bool, "relation.explicit", "Created by someone, not by similarity"),
    "created_at": said(datetime, "relation.created_at"),
}
RELATION = Shape("Relation", None, **_RELATION)


@dataclass(frozen=True, slots=True)
class Joined:
    """A relation, with the entity ids of its ends."""

    relation: Relation
    start: str
    end: str


def _relations(walk: Walk, call: Call) -> list[Json]:
    names = walk.names
    return [
        RELATION(Joined(each, names[each.from_id], names[each.to_id]), call)
        for each in walk.relations
        if each.from_id in names and each.to_id in names
    ]


def _cycles(walk: Walk, call: Call) -> list[list[str]] | None:
    if call.args.mode != "dependencies":
        return None
    return [[item.entity_id for item in cycle] for cycle in walk.cycles]


HAS_MORE = Field(bool, lambda walk, call: call.args.offset + len(walk.nodes) < walk.total)
EXPLORED = Shape(
    "Explored",
    Walk,
    mode=Field(str, lambda walk, call: call.args.mode),
    total=said(int, "total", "Number of entities, as far as the traversal went"),
    has_more=HAS_MORE,
    cycles=Field(
        list[list[str]],
        _cycles,
        "dependencies: entities that wait for each other; each cycle ends where it begins",
        True,
    ),
)
WALK = Shape(
    "Exploration",
    Walk,
    base=EXPLORED,
    entity=one(NODE, "start", "The start"),
    entities=many(NODE, "nodes"),
    relations=Field([RELATION], _relations, "Between the entities of this answer"),
    truncated=said(bool, "truncated", "Some entities have more relations than were followed"),
    limit=Field(int, lambda walk, call: call.args.limit),
    offset=Field(int, lambda walk, call: call.args.offset),
    next=NEXT,
    filters=Field(
        Json,
        lambda walk, call: call.args.model_dump(
            exclude_defaults=True, exclude={"mode", "limit", "offset"}
        ),
    ),
)
NODE_TOOL = Shape(  # what agents need of them
    "GraphNodeByTool",
    Node,
    base=NODE,
    summary=Field(str | None, lambda node, call: written_summary(node.item)),
    created_at=Field(datetime, lambda node, call: to_the_second(node.item.created_at)),
)
WALK_TOOL = Shape(
    "ExplorationByTool",
    Walk,
    base=EXPLORED,
    entity=one(NODE_TOOL, "start"),
    entities=many(NODE_TOOL, "nodes"),
    relations=Field(
        list[Json],
        lambda walk, call: [
            {name: relation[name] for name in ("from", "type", "to")}
            for relation in _relations(walk, call)
        ],
    ),
    truncated=Field(bool, lambda walk, call: walk.truncated or None, optional=True),
)
RELATIONS = Shape(
    "EntityRelations",
    Walk,
    entity=one(NODE, "start"),
    relations=Field([RELATION], _relations),
    entities=many(NODE, "nodes"),
    total=said(int, "total", "Entities that it is linked to"),
    has_more=HAS_MORE,
    next=NEXT,
)


def _walk_text(found: Json, walk: Walk) -> str:
    lines = [_node_line(node) for node in found["entities"]]
    if found["has_more"]:
        lines.append(f"{found['total']} in all; continue with offset.")
    lines += [f"Cycle: {' -> '.join(cycle)}" for cycle in found.get("cycles", ())]
    return "\n".join(lines) or "Nothing here."


def _node_line(node: Json) -> str:
    if node["relationship"] is None:
        return list_line(node)
    arrow = "->" if node["direction"] == "outgoing" else "<-"
    via = f" {node['via']}" if node["distance"] > 1 else ""  # else it is the start
    return f"{list_line(node)} {arrow} {node['relationship']}{via}"


# -- what is done


async def explore(services: "Services", caller: Caller, args: Explore) -> Walk:
    page = {"limit": args.limit, "offset": args.offset}
    if args.entity_id is None:
        items, total = await services.graph.list(caller, args.wanted, **page)
        return Walk([Node(item) for item in items], total)
    if args.mode == "dependencies":
        chain = await services.graph.dependencies(caller, args.entity_id, args.wanted)
        return _chain(chain, args)
    return _around(
        await services.graph.around(
            caller,
            args.entity_id,
            args.wanted,
            kinds=args.relationship_types or (),
            depth=args.depth if args.mode == "traverse" else 1,
            **page,
        )
    )


def _around(found: Neighbourhood) -> Walk:
    return Walk(
        [Node(reached.item, reached.distance, reached) for reached in found.reached],
        found.total,
        Node(found.center, 0),
        found.relations,
        found.cut,
    )


def _chain(found: "DependencyChain", args: Explore) -> Walk:
    page = found.items[args.offset : args.offset + args.limit]
    return Walk(
        [Node(item, found.distances[item.id]) for item in page],
        len(found.items),
        Node(found.center, 0),
        found.relations,
        found.cut,
        found.cycles,
    )


async def _list_relations(services: "Services", caller: Caller, found: Any) -> Walk:
    return _around(found)


async def _joined(services: "Services", caller: Caller, linked: Any) -> tuple[Joined, bool, str]:
    start, end, relation, new = linked
    already = "" if new else " (they were linked already)"
    said = f"{start.title} -> {relation.kind} -> {end.title}{already}"
    return Joined(relation, start.entity_id, end.entity_id), new, said


ACTIONS = (
    Action(
        "explore",
        "Explore the graph",
        Explore,
        "graph.list",
        WALK,
        "GET /api/explore",
        cli="related",
        tool=Tool(
            "Explore entities without a query: by type, project and status, newest first, or from "
            "one entity on.",
            _walk_text,
            shape=WALK_TOOL,
        ),
        description="Repeat `types` and `relationship_types` to pass several values.",
        run=explore,
    ),
    Action(
        "list_relations",
        "List an entity's relations, best first",
        ListRelations,
        "graph.relations",
        RELATIONS,
        "GET /api/entities/{entity_id}/relations",
        expand=_list_relations,
    ),
    Action(
        "link",
        "Link an entity to another",
        Link,
        "graph.link",
        Shape("NewRelation", None, base=RELATION, at=0),
        "POST /api/entities/{entity_id}/relations",
        status=201,
        also={200: "They were linked like this already"},
        status_of=lambda linked: 201 if linked[1] else 200,
        description="Rejects a DEPENDS_ON that would create a cycle, and names the cycle.",
        expand=_joined,
    ),
    Action(
        "unlink",
        "Remove a relation",
        Link,
        "graph.unlink",
        route="DELETE /api/entities/{entity_id}/relations",
    ),
    Action(
        "refresh",
        "Read the source of an item again",
        RefreshEntity,
        "library.refresh",
        manage=lambda item, call: Done(item, f"Refreshed: {item.title}", {}),
    ),
)
