"""The map of the library, and the neighbourhood of an item."""

import asyncio
from collections import Counter
from collections.abc import Sequence

from starlette.responses import Response

from commonplace.core.work.graph import GraphQuery
from commonplace.interfaces.web.graph_svg import Edge, Node, picture, whole_map
from commonplace.interfaces.web.request import WebRequest, get
from commonplace.model import Item, Relation

NEAR = 80
CLUSTERS, LISTED = 24, 6


def edges_of(items: Sequence[Item], relations: Sequence[Relation]) -> list[Edge]:
    at = {item.id: n for n, item in enumerate(items)}
    return [
        (at[r.from_id], at[r.to_id], r.kind) for r in relations if r.from_id in at and r.to_id in at
    ]


async def show(request: WebRequest) -> Response:
    chart = await request.services.library_map.chart(request.caller)
    shown = len(chart.items)
    said = (
        f"{shown} items in {len(chart.regions)} clusters, joined by {len(chart.relations)} "
        "relations"
    )
    return request.page(
        "map.html",
        drawing=await asyncio.to_thread(whole_map, chart, said) if chart.items else None,
        shown=shown,
        total=chart.total,
        relations=len(chart.relations),
        kinds=Counter(item.entity_type for item in chart.items).most_common(),
        clusters=[
            (n, region, [chart.items[member] for member in region.members[:LISTED]])
            for n, region in enumerate(chart.regions[:CLUSTERS])
            if len(region.members) > 2
        ],
    )


async def near(request: WebRequest) -> Response:
    depth = request.number("depth", 2, 1, 3)
    found = await request.services.graph.around(
        request.caller, request.path("item_id"), GraphQuery(), depth=depth, limit=NEAR
    )
    items = [found.center, *(reached.item for reached in found.reached)]
    nodes = [Node(item, f"/graph/{item.public_id}", item.id == found.center.id) for item in items]
    return request.page(
        "near.html",
        center=found.center,
        reached=found.reached,
        drawing=await asyncio.to_thread(
            picture,
            nodes,
            edges_of(items, found.relations),
            f"What {found.center.title} is joined to",
        ),
        depth=depth,
        total=found.total,
        kinds=sorted({item.entity_type for item in items}),
    )


ROUTES = (get("/graph", show), get("/graph/{item_id}", near))
