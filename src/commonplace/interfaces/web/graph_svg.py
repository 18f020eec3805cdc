"""Graphs as SVG in the colours of the page, laid out with igraph."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from random import Random
from typing import TYPE_CHECKING

from markupsafe import Markup

from commonplace.interfaces.web.label_layout import BOLD, CHARACTER, Label, place_labels
from commonplace.model import Item

if TYPE_CHECKING:
    import igraph

    from commonplace.core.map.layout import Chart

WIDTH, HEIGHT = 900.0, 620.0
SIDE, TOP, FOOT = 115.0, 30.0, 40.0
ROW = 90.0  # of a layered drawing
CHARACTERS, LETTERS = 28, 30  # of an item's name, of a region's
MAP, NEAREST = (
    1200.0,
    44.0,
)  # how wide a map is drawn, and how large the room of one item is at most
NAMED, NAMES = 20, 120  # of regions: at once, and when one comes nearer
FEW, MANY = 200, 2_000  # dots, which are larger or smaller then
Point = tuple[float, float]
Edge = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Node:
    item: Item
    href: str
    is_center: bool = False


def picture(
    nodes: Sequence[Node], edges: Sequence[Edge], said: str, *, layered: bool = False
) -> Markup:
    """Draw a neighbourhood with names, or, layered, dependencies from left to right."""
    import igraph  # no start should wait for it

    igraph.set_random_number_generator(Random(0))  # the same picture for the same graph
    graph = igraph.Graph(n=len(nodes), edges=[(a, b) for a, b, _ in edges], directed=layered)
    laid = _layered(graph) if layered else _spread(graph)
    height = ROW * max(1, len({y for _, y in laid})) if layered else HEIGHT
    points = _fitted(laid, height)
    labels = place_labels(
        points, [_radius(node) for node in nodes], [_long(node) for node in nodes], WIDTH, height
    )
    lines = "".join(_line(points[a], points[b], kind, layered) for a, b, kind in edges)
    spots = "".join(
        _spot(node, point, label) for node, point, label in zip(nodes, points, labels, strict=True)
    )
    return _svg("drawing", WIDTH, height, said, _ARROW + lines + spots)


def whole_map(chart: "Chart", said: str) -> Markup:
    """Draw the library: discs with names, all relations as one path, a dot for each item."""
    scale = min(NEAREST, MAP / max(1.0, chart.width))
    width, height = max(MAP / 2, chart.width * scale), max(MAP / 4, chart.height * scale + 2 * TOP)
    left, top = (width - chart.width * scale) / 2, (height - chart.height * scale) / 2
    points = [(left + x * scale, top + y * scale) for x, y in chart.points]
    many = "few" if len(points) < FEW else "many" if len(points) > MANY else "some"
    discs = "".join(
        f'<circle class="disc c{n % 8}" cx="{left + r.x * scale:.0f}" cy="{top + r.y * scale:.0f}" '
        f'r="{r.radius * scale:.0f}"/>'
        for n, r in enumerate(chart.regions)
        if len(r.members) > 2
    )
    # All relations in one shape: ten thousand of their own would be slow to draw and to send.
    lines = "".join(
        f"M{points[a][0]:.0f} {points[a][1]:.0f}L{points[b][0]:.0f} {points[b][1]:.0f}"
        for a, b in chart.relations
    )
    # Lines without length and with round ends: as large on the screen however near one comes,
    # and nothing has to be said anew.
    spots = "".join(
        f'<a href="/graph/{escape(item.public_id)}" class="node '
        f't-{escape(item.entity_type)}"><title>{escape(item.title)}</title>'
        f'<path d="M{x:.1f} {y:.1f}h0"/></a>'
        for item, (x, y) in zip(chart.items, points, strict=True)
    )
    names = "".join(
        f'<text class="region{"" if n < NAMED else " late"}" x="{left + r.x * scale:.0f}" '
        f'y="{top + (r.y - r.radius * 0.86) * scale:.0f}">'
        f"{escape(_name(r.name, LETTERS))}</text>"
        for n, r in enumerate(chart.regions[:NAMES])
        if len(r.members) > 2
    )
    return _svg(
        f"drawing map {many}",
        width,
        height,
        said,
        f'{discs}<path class="edge thin" d="{lines}"/>{spots}{names}',
    )


_ARROW = (
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="15" refY="4" markerWidth="7" '
    'markerHeight="7" '
    'orient="auto-start-reverse"><path class="tip" d="M0 0 8 4 0 8z"/></marker></defs>'
)


def _spread(graph: "igraph.Graph") -> list[Point]:
    """Place nodes as far apart as there are steps between them, all pieces in one drawing."""
    seed = [[float(x), float(y)] for x, y in graph.layout_circle()]
    if not graph.ecount():
        return [(x, y) for x, y in seed]
    laid = (
        graph.layout_kamada_kawai(seed=seed)
        if graph.is_connected()
        else graph.layout_fruchterman_reingold(niter=400, seed=seed)
    )
    return [(x, y) for x, y in laid]


def _layered(graph: "igraph.Graph") -> list[Point]:
    return [(-y, x) for x, y in list(graph.layout_sugiyama(maxiter=200))[: graph.vcount()]]


def _fitted(points: Sequence[Point], height: float) -> list[Point]:
    xs, ys = [x for x, _ in points] or [0.0], [y for _, y in points] or [0.0]
    wide, high = max(xs) - min(xs), max(ys) - min(ys)
    return [
        (
            SIDE + (x - min(xs)) / wide * (WIDTH - 2 * SIDE) if wide else WIDTH / 2,
            TOP + (y - min(ys)) / high * (height - TOP - FOOT) if high else height / 2,
        )
        for x, y in points
    ]


def _svg(kind: str, width: float, height: float, said: str, inside: str) -> Markup:
    # Everything inside was escaped where it was put together; `format` of Markup would take
    # as long again.
    return Markup(
        f'<svg class="{kind}" viewBox="0 0 {width:.0f} {height:.0f}" role="group" '
        f'aria-label="{escape(said)}">'
        f"{inside}</svg>"
    )


def _line(a: Point, b: Point, kind: str, arrow: bool) -> str:
    end = ' marker-end="url(#arrow)"' if arrow else ""
    return (
        f'<line class="edge" x1="{a[0]:.1f}" y1="{a[1]:.1f}" x2="{b[0]:.1f}" y2="{b[1]:.1f}"{end}>'
        f"<title>{escape(kind.lower().replace('_', ' '))}</title></line>"
    )


def _spot(node: Node, point: Point, label: Label) -> str:
    name = escape(_name(node.item.title))
    late = "" if label.fits or node.is_center else ' class="late"'
    return (
        f'<a href="{escape(node.href)}" class="node '
        f't-{escape(node.item.entity_type)}{" center" if node.is_center else ""}">'
        f"<title>{escape(node.item.title)} ({escape(node.item.entity_type)})</title>"
        f'<circle cx="{point[0]:.1f}" cy="{point[1]:.1f}" r="{_radius(node)}"/>'
        f'<text x="{label.x:.1f}" y="{label.y:.1f}" '
        f'text-anchor="{label.anchor}"{late}>{name}</text></a>'
    )


def _radius(node: Node) -> int:
    return 11 if node.is_center else 7


def _long(node: Node) -> float:
    return len(_name(node.item.title)) * (BOLD if node.is_center else CHARACTER)


def _name(title: str, most: int = CHARACTERS) -> str:
    return title if len(title) <= most else f"{title[: most - 1]}…"
