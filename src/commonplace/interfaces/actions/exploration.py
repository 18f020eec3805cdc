"""Explore the graph, for every interface."""

from commonplace.core.services import Services
from commonplace.interfaces.actions import graph as graph_shapes
from commonplace.model import Caller


async def explore(
    services: Services, caller: Caller, query: graph_shapes.Explore
) -> graph_shapes.ExploreResult:
    if query.entity_id is None or query.mode == "list":
        items, total = await services.graph.list(
            caller, query.filter, limit=query.limit, offset=query.offset
        )
        return graph_shapes.explore_result(
            query, [graph_shapes.node(item) for item in items], total
        )
    if query.mode == "dependencies":
        return graph_shapes.chain(
            query, await services.graph.dependencies(caller, query.entity_id, query.filter)
        )
    found = await services.graph.around(
        caller,
        query.entity_id,
        query.filter,
        kinds=query.relationship_types or (),
        limit=query.limit,
        offset=query.offset,
        depth=query.depth if query.mode == "traverse" else 1,
    )
    return graph_shapes.surroundings(query, found)
