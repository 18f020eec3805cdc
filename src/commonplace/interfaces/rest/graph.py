"""The graph: explore, link, unlink."""

from typing import Annotated

from fastapi import Query, Response
from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

from commonplace.interfaces.actions import exploration, graph as graph_shapes
from commonplace.interfaces.actions.items import Input
from commonplace.interfaces.rest.routes import OK, ApiRequest, ItemId, Ok, api_router

router = api_router("graph", "/api")


class ExploreQuery(graph_shapes.Explore):
    model_config = ConfigDict(strict=False)


@router.get("/explore", summary="Explore the graph")
async def explore(
    api: ApiRequest, query: Annotated[ExploreQuery, Query()]
) -> graph_shapes.ExploreResult:
    """Takes the parameters of the MCP tool `explore`. Repeat `types` and `relationship_types` to
    pass several values."""
    return await exploration.explore(api.services, api.caller, query)


class RelationsQuery(Input):
    model_config = ConfigDict(strict=False)

    relationship_types: Annotated[list[graph_shapes.KindName] | None, Field(max_length=20)] = None
    limit: graph_shapes.Limit = 50
    offset: graph_shapes.Offset = 0


class Relations(TypedDict):
    entity: graph_shapes.Node
    relations: list[graph_shapes.Relation]
    entities: list[graph_shapes.Node]
    total: Annotated[int, Field(description="Entities that it is joined to")]
    has_more: bool


@router.get("/entities/{entity_id}/relations", summary="List an entity's relations, best first")
async def list_relations(
    api: ApiRequest, entity_id: ItemId, query: Annotated[RelationsQuery, Query()]
) -> Relations:
    found = await api.services.graph.relations(
        api.caller,
        entity_id,
        kinds=query.relationship_types or (),
        limit=query.limit,
        offset=query.offset,
    )
    shown = graph_shapes.surroundings(
        graph_shapes.Explore(
            mode="related", entity_id=entity_id, limit=query.limit, offset=query.offset
        ),
        found,
    )
    return {
        "entity": graph_shapes.node(found.center, 0),
        "relations": shown["relations"],
        "entities": shown["entities"],
        "total": shown["total"],
        "has_more": shown["has_more"],
    }


class Link(Input):
    to: Annotated[graph_shapes.EntityId, Field(description="The other entity, by any of its ids")]
    type: Annotated[
        graph_shapes.KindName,
        Field(
            description="DEPENDS_ON joins tasks and epics, BELONGS_TO leads to a project, "
            "PART_OF to an epic; the others join anything"
        ),
    ] = "RELATED_TO"


@router.post(
    "/entities/{entity_id}/relations",
    status_code=201,
    summary="Link an entity to another",
    responses={
        200: {"model": graph_shapes.Relation, "description": "They were joined like this already"}
    },
)
async def link(
    api: ApiRequest, entity_id: ItemId, body: Link, response: Response
) -> graph_shapes.Relation:
    """Rejects a DEPENDS_ON that would create a cycle, and names the cycle."""
    one, other, relation, new = await api.services.graph.link(
        api.caller, entity_id, body.type, body.to
    )
    response.status_code = 201 if new else 200
    return graph_shapes.relation(relation, {one.id: one.entity_id, other.id: other.entity_id})


@router.delete("/entities/{entity_id}/relations", summary="Remove a relation")
async def unlink(api: ApiRequest, entity_id: ItemId, query: Annotated[Link, Query()]) -> Ok:
    await api.services.graph.unlink(api.caller, entity_id, query.type, query.to)
    return OK
