"""Drawings of how things are joined: laid out here with igraph, drawn as SVG whose colours are the page's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import cos, pi, sin, sqrt
from random import Random

import igraph
from markupsafe import Markup

from commonplace.model import Item

WIDTH, HEIGHT, MARGIN = 900.0, 620.0, 100.0
ROW = 90.0     # of a layered drawing
LABEL = 28
FEW = 300                   # that can be spread one by one
GOLDEN = pi * (3 - sqrt(5))
Point = tuple[float, float]
Edge = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Node:
    item: Item
    href: str
    is_center: bool = False


def picture(nodes: Sequence[Node], edges: Sequence[Edge], said: str, *, layered: bool = False) -> Markup:
    """A neighbourhood, with names; or, layered, what must be done before what, from left to right."""
    igraph.set_random_number_generator(Random(0))  # the same picture for the same graph
    graph = igraph.Graph(n=len(nodes), edges=[(a, b) for a, b, _ in edges], directed=layered)
    laid = _layered(graph) if layered else _spread(graph)
    height = ROW * max(1, len({y for _, y in laid})) if layered else HEIGHT
    return _svg(nodes, edges, _fitted(laid, height), said, height, arrows=layered, names=True)


def whole_map(nodes: Sequence[Node], edges: Sequence[Edge], said: str) -> tuple[Markup, list[list[int]]]:
    """Everything at once: without names, coloured by cluster; and the clusters, the largest first."""
    igraph.set_random_number_generator(Random(0))
    graph = igraph.Graph(n=len(nodes), edges=[(a, b) for a, b, _ in edges])
    clusters = sorted((list(members) for members in graph.community_multilevel()), key=len, reverse=True)
    of = {member: number for number, members in enumerate(clusters) for member in members}
    laid = _by_clusters(graph, clusters, of) if len(nodes) > FEW else _spread(graph)
    points = _fitted(laid, HEIGHT)
    return _svg(nodes, edges, points, said, HEIGHT, arrows=False, names=False, clusters=of), clusters


def _by_clusters(graph: igraph.Graph, clusters: Sequence[Sequence[int]], of: Mapping[int, int]) -> list[Point]:
    """Clusters spread as if each were one; within one, those with most relations in the middle, turning outwards like the seeds
    of a sunflower. A layout of all at once takes ten seconds for 5,000."""
    between = {(of[a], of[b]) for a, b in graph.get_edgelist() if of[a] != of[b]}
    whole = igraph.Graph(n=len(clusters), edges=sorted(between))
    middles = _fitted(_spread(whole), HEIGHT)
    room = min(WIDTH, HEIGHT) / 3 / sqrt(graph.vcount())
    points: list[Point] = [(0.0, 0.0)] * graph.vcount()
    degrees = graph.degree()
    for (x, y), members in zip(middles, clusters, strict=True):
        for turn, member in enumerate(sorted(members, key=lambda each: (-degrees[each], each))):
            far, angle = room * sqrt(turn), turn * GOLDEN
            points[member] = (x + far * cos(angle), y + far * sin(angle))
    return points


def _seeded(graph: igraph.Graph) -> list[list[float]]:
    return [[float(x), float(y)] for x, y in graph.layout_circle()]


def _spread(graph: igraph.Graph) -> list[Point]:
    """From a circle, until those that are joined lie near each other."""
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
    lines = [_line(points[a], points[b], kind, arrows) for a, b, kind in edges] if names else [_lines(edges, points)]
    spots = [_spot(node, point, names, clusters.get(n) if clusters else None)
             for n, (node, point) in enumerate(zip(nodes, points, strict=True))]
    return Markup(
        '<svg class="drawing" viewBox="0 0 {} {}" role="group" aria-label="{}"><defs><marker id="arrow" viewBox="0 0 8 8" '
        'refX="15" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path class="tip" d="M0 0 8 4 0 8z"/>'
        "</marker></defs>{}{}</svg>").format(int(WIDTH), int(height), said, Markup("").join(lines), Markup("").join(spots))


def _line(a: Point, b: Point, kind: str, arrow: bool) -> Markup:
    return Markup('<line class="edge" x1="{}" y1="{}" x2="{}" y2="{}"{}><title>{}</title></line>').format(
        *map(_short, (*a, *b)), Markup(' marker-end="url(#arrow)"') if arrow else "", kind.lower().replace("_", " "))


def _lines(edges: Sequence[Edge], points: Sequence[Point]) -> Markup:
    """All in one shape: ten thousand of their own would be slow to draw and to send."""
    return Markup('<path class="edge thin" d="{}"/>').format("".join(
        f"M{points[a][0]:.0f} {points[a][1]:.0f}L{points[b][0]:.0f} {points[b][1]:.0f}" for a, b, _ in edges))


def _spot(node: Node, point: Point, named: bool, cluster: int | None) -> Markup:
    kind = f"c{cluster % 8}" if cluster is not None else f"t-{node.item.entity_type}"
    size = (11 if node.is_center else 7) if named else 3.5
    x, y = map(_short, point)
    below = _short(point[1] + size + 13)
    label = Markup('<text x="{}" y="{}">{}</text>').format(x, below, _name(node.item.title)) if named else ""
    return Markup('<a href="{}" class="node {}{}"><title>{}</title><circle cx="{}" cy="{}" r="{}"/>{}</a>').format(
        node.href, kind, " center" if node.is_center else "", f"{node.item.title} ({node.item.entity_type})", x, y, size, label)


def _short(number: float) -> str:
    return f"{number:.1f}"


def _name(title: str) -> str:
    return title if len(title) <= LABEL else f"{title[:LABEL - 1]}…"
