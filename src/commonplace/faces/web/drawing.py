"""Drawings of how things are joined: laid out here with igraph, drawn as SVG whose colours are the page's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import igraph
from markupsafe import Markup

from commonplace.model import Item

WIDTH, HEIGHT, MARGIN = 900.0, 620.0, 100.0
ROW = 90.0     # of a layered drawing
LABEL = 28
SEED = 7
Point = tuple[float, float]
Edge = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Node:
    item: Item
    href: str
    is_center: bool = False


def picture(nodes: Sequence[Node], edges: Sequence[Edge], said: str, *, layered: bool = False) -> Markup:
    """A neighbourhood, with names; or, layered, what must be done before what, from left to right."""
    graph = igraph.Graph(n=len(nodes), edges=[(a, b) for a, b, _ in edges], directed=layered)
    laid = _layered(graph) if layered else _spread(graph)
    height = ROW * max(1, len({y for _, y in laid})) if layered else HEIGHT
    return _svg(nodes, edges, _fitted(laid, height), said, height, arrows=layered, names=True)


def whole_map(nodes: Sequence[Node], edges: Sequence[Edge], said: str) -> tuple[Markup, list[list[int]]]:
    """Everything at once: without names, coloured by cluster; and the clusters, the largest first."""
    graph = igraph.Graph(n=len(nodes), edges=[(a, b) for a, b, _ in edges])
    clusters = sorted((list(members) for members in graph.community_multilevel()), key=len, reverse=True)
    of = {member: number for number, members in enumerate(clusters) for member in members}
    laid = graph.layout_drl(seed=_seeded(graph)) if len(nodes) > 300 else _spread(graph)
    points = _fitted([(x, y) for x, y in laid], HEIGHT)
    return _svg(nodes, edges, points, said, HEIGHT, arrows=False, names=False, clusters=of), clusters


def _seeded(graph: igraph.Graph) -> list[list[float]]:
    return [[float(x), float(y)] for x, y in graph.layout_circle()]


def _spread(graph: igraph.Graph) -> list[Point]:
    """The same picture for the same graph: chance begins at a circle, not anywhere."""
    laid = graph.layout_fruchterman_reingold(niter=400, seed=_seeded(graph)) if graph.ecount() else graph.layout_circle()
    return [(x, y) for x, y in laid]


def _layered(graph: igraph.Graph) -> list[Point]:
    laid = graph.layout_sugiyama(maxiter=200)
    return [(-y, x) for x, y in list(laid)[:graph.vcount()]]


def _fitted(points: Sequence[Point], height: float) -> list[Point]:
    xs, ys = [x for x, _ in points] or [0.0], [y for _, y in points] or [0.0]
    wide, high = max(xs) - min(xs), max(ys) - min(ys)
    return [(MARGIN + (x - min(xs)) / wide * (WIDTH - 2 * MARGIN) if wide else WIDTH / 2,
             30 + (y - min(ys)) / high * (height - 70) if high else height / 2) for x, y in points]


def _svg(nodes: Sequence[Node], edges: Sequence[Edge], points: Sequence[Point], said: str, height: float, *, arrows: bool,
         names: bool, clusters: Mapping[int, int] | None = None) -> Markup:
    lines = [Markup('<line class="edge" x1="{}" y1="{}" x2="{}" y2="{}"{}><title>{}</title></line>').format(
        *map(_short, (*points[a], *points[b])), Markup(' marker-end="url(#arrow)"') if arrows else "",
        kind.lower().replace("_", " ")) for a, b, kind in edges]
    spots = [_spot(node, point, names, clusters.get(n) if clusters else None)
             for n, (node, point) in enumerate(zip(nodes, points, strict=True))]
    return Markup(
        '<svg class="drawing" viewBox="0 0 {} {}" role="group" aria-label="{}"><defs><marker id="arrow" viewBox="0 0 8 8" '
        'refX="15" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path class="tip" d="M0 0 8 4 0 8z"/>'
        "</marker></defs>{}{}</svg>").format(int(WIDTH), int(height), said, Markup("").join(lines), Markup("").join(spots))


def _spot(node: Node, point: Point, named: bool, cluster: int | None) -> Markup:
    kind = f"c{cluster % 8}" if cluster is not None else f"t-{node.item.entity_type}"
    size = (11 if node.is_center else 7) if named else 4
    x, y = map(_short, point)
    below = _short(point[1] + size + 13)
    label = Markup('<text x="{}" y="{}">{}</text>').format(x, below, _name(node.item.title)) if named else ""
    return Markup('<a href="{}" class="node {}{}"><title>{}</title><circle cx="{}" cy="{}" r="{}"/>{}</a>').format(
        node.href, kind, " center" if node.is_center else "", f"{node.item.title} ({node.item.entity_type})", x, y, size, label)


def _short(number: float) -> str:
    return f"{number:.1f}"


def _name(title: str) -> str:
    return title if len(title) <= LABEL else f"{title[:LABEL - 1]}…"
