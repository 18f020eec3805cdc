"""The map of the library, and the neighbourhood of an item."""

import asyncio
from collections import Counter
from collections.abc import Sequence

from markupsafe import Markup
from starlette.responses import Response

from commonplace.core.work.graph import GraphQuery
from commonplace.interfaces.web.graph_svg import Node, picture, whole_map
from commonplace.interfaces.web.request import WebRequest, get
from commonplace.model import NOT_DISKS, Item, Relation

NEAR = 80
CLUSTERS, LISTED = 24, 6


async def draw(
    center: Item,
    items: Sequence[Item],
    relations: Sequence[Relation],
    path: str,
    said: str,
    *,
    layered: bool = False,
) -> Markup:
    """Draw items around one of them; each leads to its page below `path`."""
    nodes = [Node(each, f"{path}/{each.public_id}", each.id == center.id) for each in items]
    at = {item.id: n for n, item in enumerate(items)}
    edges = [
        (at[r.from_id], at[r.to_id], r.kind) for r in relations if r.from_id in at and r.to_id in at
    ]
    return await asyncio.to_thread(picture, nodes, edges, said, layered=layered)


async def show(request: WebRequest) -> Response:
    chart = await request.services.library_map.chart(request.caller)
    shown = len(chart.items)
    said = f"{shown} items in {len(chart.regions)} clusters, with {len(chart.relations)} links"
    return request.page(
        "map.html",
        drawing=await asyncio.to_thread(whole_map, chart, said) if chart.items else None,
        shown=shown,
        work=sum(item.entity_type in NOT_DISKS for item in chart.items),
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
    return request.page(
        "near.html",
        center=found.center,
        reached=found.reached,
        drawing=await draw(
            found.center,
            items,
            found.relations,
            "/graph",
            f"Connections of {found.center.title}",
        ),
        depth=depth,
        total=found.total,
        kinds=sorted({item.entity_type for item in items}),
    )


ROUTES = (get("/graph", show), get("/graph/{item_id}", near))
