"""Inputs and answers about the graph: exploring it, nodes and relations."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator
from typing_extensions import TypedDict

from commonplace import model
from commonplace.core.work.graph import DependencyChain, GraphQuery
from commonplace.interfaces.actions.entities import AnyTypeName, Statuses, remaining_metadata
from commonplace.interfaces.actions.items import Input, Moment, moment, whole_number

ExploreMode = Literal["list", "related", "traverse", "dependencies"]
KindName = Literal[
    "RELATED_TO",
    "DEPENDS_ON",
    "BELONGS_TO",
    "PART_OF",
    "SUPERSEDES",
    "CONTRADICTS",
    "REQUIRES",
    "SUPPORTS",
    "DERIVED_FROM",
    "ANNOTATES",
]
DESCRIBED = 200  # characters of an entity's description


EntityId = Annotated[str, Field(min_length=1, max_length=200)]
Limit = Annotated[int, Field(ge=1, le=200), BeforeValidator(whole_number)]
Offset = Annotated[int, Field(ge=0, le=1_000_000), BeforeValidator(whole_number)]


class Explore(Input):
    mode: Annotated[
        ExploreMode,
        Field(
            description=(
                "list: entities by type, project and status, newest first; related: what one "
                "entity is joined to; traverse: what "
                "is up to `depth` steps away; dependencies: all that a task waits for, in the "
                "order to do it"
            )
        ),
    ] = "list"
    types: Annotated[
        list[AnyTypeName] | None, Field(max_length=20, description="Show only these entity types")
    ] = None
    entity_id: Annotated[
        EntityId | None, Field(description="Entity to start from; required except for mode=list")
    ] = None
    relationship_types: Annotated[
        list[KindName] | None,
        Field(max_length=20, description="related, traverse: follow only these"),
    ] = None
    depth: Annotated[
        Annotated[int, Field(ge=1, le=3), BeforeValidator(whole_number)],
        Field(description="traverse: number of hops"),
    ] = 1
    project: Annotated[EntityId | None, Field(description="Show only entities of this project")] = (
        None
    )
    status: Annotated[
        Statuses | None,
        Field(description="Show only entities with this status, or one of several: `todo,doing`"),
    ] = None
    language: Annotated[
        str | None, Field(max_length=100, description="Show only entities about this language")
    ] = None
    category: Annotated[
        str | None, Field(max_length=100, description="Show only entities of this category")
    ] = None
    limit: Annotated[Limit, Field(description="How many entities to return")] = 50
    offset: Annotated[Offset, Field(description="Number to skip; next page: offset + limit")] = 0

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
    def filter(self) -> GraphQuery:
        statuses = () if self.status is None else (self.status,)
        return GraphQuery(
            tuple(self.types or ()), self.project, statuses, self.language, self.category
        )


class Node(TypedDict):
    id: Annotated[str, Field(description="Id for this and other tools")]
    type: str
    name: str
    title: str
    description: str
    status: Annotated[
        str,
        Field(description="Of tasks and epics; of memory: superseded, wrong, stale; else empty"),
    ]
    priority: str
    tags: list[str]
    distance: Annotated[int | None, Field(description="Hops from the start")]
    relationship: Annotated[
        str | None,
        Field(description="Best relation to `via`"),
    ]
    direction: Annotated[
        Literal["outgoing", "incoming"] | None,
        Field(description="outgoing: the relation points to it"),
    ]
    via: Annotated[str | None, Field(description="The previous entity on the path")]
    metadata: dict[str, Any]
    created_at: Moment


def node(
    item: model.Item, distance: int | None = None, reached: model.Neighbour | None = None
) -> Node:
    about = {
        "status": item.status,
        "priority": item.priority,
        "due_date": item.due_date,
        "category": item.category,
        "languages": list(item.languages),
        "technologies": list(item.technologies),
        "assignees": list(item.assignees),
    }
    direction: Literal["outgoing", "incoming"] = (
        "outgoing" if reached and reached.direction == "outgoing" else "incoming"
    )
    return {
        "id": item.entity_id,
        "type": item.entity_type,
        "name": item.title,
        "title": item.title,
        "description": item.summary[:DESCRIBED],
        "status": item.status,
        "priority": item.priority,
        "tags": list(item.tags),
        "distance": reached.distance if reached else distance,
        "relationship": reached.kind if reached else None,
        "direction": direction if reached else None,
        "via": reached.via if reached else None,
        "metadata": remaining_metadata(item.metadata, about)
        | {name: value for name, value in about.items() if value},
        "created_at": moment(item.created_at),
    }


# `from` is a word of Python's own, so this shape is written as a call.
Relation = TypedDict(
    "Relation",
    {
        "from": str,
        "type": str,
        "to": str,
        "weight": float,
        "explicit": Annotated[
            bool, Field(description="Created by someone; otherwise inferred from similarity")
        ],
        "created_at": Moment,
    },
)


def relation(value: model.Relation, names: dict[str, str]) -> Relation:
    """`names`: entity ids by item id, of all that is shown."""
    return {
        "from": names[value.from_id],
        "type": value.kind,
        "to": names[value.to_id],
        "weight": round(value.weight, 4),
        "explicit": value.explicit,
        "created_at": moment(value.created_at),
    }


class ExploreResult(TypedDict):
    mode: ExploreMode
    entity: Annotated[Node | None, Field(description="The start")]
    entities: list[Node]
    relations: Annotated[
        list[Relation], Field(description="Relations between the entities of this answer")
    ]
    total: Annotated[int, Field(description="Number of entities, as far as the traversal went")]
    limit: int
    offset: int
    has_more: bool
    truncated: Annotated[
        bool,
        Field(
            description=(
                "The walk met entities with so many relations that it followed only the best of "
                "them"
            )
        ),
    ]
    cycles: Annotated[
        list[list[str]],
        Field(
            description=(
                "dependencies: entities that wait for each other; each ends where it begins"
            )
        ),
    ]
    filters: Annotated[
        dict[str, Any], Field(description="Parameters that differ from the defaults")
    ]


def explore_result(
    query: Explore,
    nodes: Sequence[Node],
    total: int,
    *,
    entity: Node | None = None,
    relations: Sequence[Relation] = (),
    truncated: bool = False,
    cycles: Sequence[Sequence[str]] = (),
) -> ExploreResult:
    return {
        "mode": query.mode,
        "entity": entity,
        "entities": list(nodes),
        "relations": list(relations),
        "total": total,
        "limit": query.limit,
        "offset": query.offset,
        "has_more": query.offset + len(nodes) < total,
        "truncated": truncated,
        "cycles": [list(cycle) for cycle in cycles],
        "filters": query.model_dump(exclude_defaults=True, exclude={"mode", "limit", "offset"}),
    }


def surroundings(query: Explore, found: model.Neighbourhood) -> ExploreResult:
    names = {
        item.id: item.entity_id
        for item in [found.center, *(reached.item for reached in found.reached)]
    }
    return explore_result(
        query,
        [node(reached.item, reached=reached) for reached in found.reached],
        found.total,
        entity=node(found.center, 0),
        relations=[relation(r, names) for r in found.relations],
        truncated=found.cut,
    )


def chain(query: Explore, found: DependencyChain) -> ExploreResult:
    page = found.items[query.offset : query.offset + query.limit]
    names = {item.id: item.entity_id for item in [found.center, *page]}
    return explore_result(
        query,
        [node(item, found.distances[item.id]) for item in page],
        len(found.items),
        entity=node(found.center, 0),
        truncated=found.cut,
        relations=[
            relation(r, names) for r in found.relations if r.from_id in names and r.to_id in names
        ],
        cycles=[[item.entity_id for item in cycle] for cycle in found.cycles],
    )
