"""How things are joined: the neighbourhood of anything, and the whole library as a map."""

import asyncio
from collections.abc import Sequence

from starlette.responses import Response

from commonplace.core.graph import Wanted
from commonplace.faces.web.doors import get
from commonplace.faces.web.drawing import Edge, Node, picture, whole_map
from commonplace.faces.web.visit import Visit
from commonplace.model import Item, Relation

NEAR = 80
NAMED = 8


def edges_of(items: Sequence[Item], relations: Sequence[Relation]) -> list[Edge]:
    at = {item.id: n for n, item in enumerate(items)}
    return [(at[r.from_id], at[r.to_id], r.kind) for r in relations if r.from_id in at and r.to_id in at]


async def show(visit: Visit) -> Response:
    items, relations, alone = await visit.services.graph.everything(visit.caller)
    nodes = [Node(item, f"/graph/{item.public_id}") for item in items]
    said = f"{len(items)} items and {len(relations)} relations"
    drawn, clusters = await asyncio.to_thread(whole_map, nodes, edges_of(items, relations), said) if items else (None, [])
    return visit.page("map.html", drawing=drawn, items=items, relations=relations, alone=alone,
                      clusters=[[items[n] for n in members[:NAMED]] for members in clusters[:NAMED] if len(members) > 2])


async def near(visit: Visit) -> Response:
    depth = visit.number("depth", 2, 1, 3)
    found = await visit.services.graph.around(visit.caller, visit.request.path_params["item_id"], Wanted(), depth=depth,
                                              limit=NEAR)
    items = [found.center, *(reached.item for reached in found.reached)]
    nodes = [Node(item, f"/graph/{item.public_id}", item.id == found.center.id) for item in items]
    drawn = await asyncio.to_thread(picture, nodes, edges_of(items, found.relations), f"What {found.center.title} is joined to")
    return visit.page("near.html", center=found.center, reached=found.reached, drawing=drawn, depth=depth,
                      total=found.total, kinds=sorted({item.entity_type for item in items}))


DOORS = (get("/graph", show), get("/graph/{item_id}", near))
