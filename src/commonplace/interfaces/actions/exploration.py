"""Explore, asked by any face."""

from commonplace.core.services import Services
from commonplace.interfaces.actions import graph as wire
from commonplace.model import Caller


async def explore(services: Services, caller: Caller, asked: wire.Explore) -> wire.Explored:
    if asked.entity_id is None or asked.mode == "list":
        items, total = await services.graph.list(
            caller, asked.wanted, limit=asked.limit, offset=asked.offset
        )
        return wire.explored(asked, [wire.node(item) for item in items], total)
    if asked.mode == "dependencies":
        return wire.chain(
            asked, await services.graph.dependencies(caller, asked.entity_id, asked.wanted)
        )
    found = await services.graph.around(
        caller,
        asked.entity_id,
        asked.wanted,
        kinds=asked.relationship_types or (),
        limit=asked.limit,
        offset=asked.offset,
        depth=asked.depth if asked.mode == "traverse" else 1,
    )
    return wire.surroundings(asked, found)
