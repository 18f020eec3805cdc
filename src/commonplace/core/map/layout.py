"""The layout of the map: linked and similar items lie together, in named clusters.

Laying out five thousand items at once takes ten seconds. So clusters are found first, each is laid
out by itself, and then the clusters as discs that do not overlap.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt
from random import Random

import igraph
import numpy as np
from numpy.typing import NDArray

from commonplace.model import Item, Relation

ALIKE = 3  # similar neighbours that attract each item
LEAST = 0.25  # the lowest cosine of two similar items
ROOM = 1.0  # of one item, the unit of length
TURNS = 600  # iterations for placing clusters
SMALLEST = 3  # number of items in a cluster
NAMED, LETTERS = 3, 30  # words and letters of a name
_WORD = re.compile(r"[^\W\d_][\w'’-]{2,}")
_SILENT = frozenset(
    [
        "about",
        "after",
        "all",
        "and",
        "any",
        "are",
        "but",
        "can",
        "does",
        "for",
        "from",
        "has",
        "have",
        "how",
        "into",
        "its",
        "many",
        "more",
        "new",
        "not",
        "note",
        "notes",
        "one",
        "our",
        "out",
        "over",
        "part",
        "than",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "they",
        "this",
        "use",
        "using",
        "was",
        "were",
        "what",
        "when",
        "where",
        "which",
        "who",
        "why",
        "will",
        "with",
        "you",
        "your",
    ]
)

Points = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Region:
    """A cluster, as a disc."""

    name: str
    members: tuple[int, ...]  # the best linked first
    x: float
    y: float
    radius: float


@dataclass(frozen=True, slots=True)
class Chart:
    items: tuple[Item, ...]
    points: tuple[tuple[float, float], ...]
    relations: tuple[tuple[int, int], ...]  # between items of the chart
    regions: tuple[Region, ...]  # the largest first
    total: int  # all items, of which the chart shows the newest
    width: float
    height: float


def lay_out(
    items: Sequence[Item],
    relations: Sequence[Relation],
    ids: Sequence[str],
    vectors: NDArray[np.float32],
    total: int,
) -> Chart:
    """Lay out items. `vectors`: one for each of `ids`, which are some or all of the items' ids."""
    igraph.set_random_number_generator(Random(0))  # the same library gives the same map
    at = {item.id: n for n, item in enumerate(items)}
    joined = sorted(
        {
            (min(a, b), max(a, b))
            for r in relations
            if (a := at.get(r.from_id)) is not None
            and (b := at.get(r.to_id)) is not None
            and a != b
        }
    )
    alike = _alike(np.array([at[each] for each in ids], np.int64), vectors)
    weights = dict.fromkeys(joined, 1.0)
    for (a, b), cosine in alike.items():
        weights[a, b] = max(weights.get((a, b), 0.0), cosine)
    _gather_others(items, weights)
    graph = igraph.Graph(n=len(items), edges=list(weights))
    graph.es["weight"] = list(weights.values())
    clusters = _clusters(graph)
    points, discs = _laid(
        graph,
        clusters,
        _middles(clusters, dict(zip([at[each] for each in ids], vectors, strict=True))),
    )
    regions = tuple(
        Region(name, tuple(members), *map(float, disc))
        for name, members, disc in zip(_names(items, clusters), clusters, discs, strict=True)
    )
    size = points.max(axis=0) if len(points) else np.zeros(2)
    width, height = (float(max([size[n], *(region_end(r, n) for r in regions)])) for n in (0, 1))
    return Chart(
        tuple(items),
        tuple((float(x), float(y)) for x, y in points),
        tuple(joined),
        regions,
        total,
        width,
        height,
    )


def region_end(region: Region, axis: int) -> float:
    return (region.x, region.y)[axis] + region.radius


def _alike(
    rows: NDArray[np.int64], vectors: NDArray[np.float32], least: float = LEAST
) -> dict[tuple[int, int], float]:
    """Find each item's nearest neighbours, a few rows at a time: all cosines would take 100 MB."""
    found: dict[tuple[int, int], float] = {}
    most = min(ALIKE, len(rows) - 1)
    if most < 1:
        return found
    for start in range(0, len(rows), 500):
        cosines = vectors[start : start + 500] @ vectors.T
        cosines[np.arange(len(cosines)), np.arange(start, start + len(cosines))] = -1.0
        for row, others in enumerate(np.argpartition(-cosines, most - 1, axis=1)[:, :most]):
            for other in others:
                cosine = float(cosines[row, other])
                if cosine >= least:
                    a, b = int(rows[start + row]), int(rows[other])
                    found[min(a, b), max(a, b)] = cosine
    return found


def _gather_others(items: Sequence[Item], weights: dict[tuple[int, int], float]) -> None:
    """Attach items without links or neighbours to others with their rarest tag, or their folder."""
    lonely = set(range(len(items))) - {end for pair in weights for end in pair}
    holders: dict[str, list[int]] = {}
    for n, item in enumerate(items):
        for mark in (
            *(f"tag {tag}" for tag in item.tags),
            *(f"folder {folder}" for folder in item.folders),
        ):
            holders.setdefault(mark, []).append(n)
    for n in sorted(lonely):
        tags = [holders[f"tag {tag}"] for tag in items[n].tags if len(holders[f"tag {tag}"]) > 1]
        shared = min(tags, key=len, default=None) or next(
            (holders[f"folder {folder}"] for folder in items[n].folders), []
        )
        other = next((each for each in shared if each != n), None)
        if other is not None:
            weights[min(n, other), max(n, other)] = LEAST


def _clusters(graph: igraph.Graph) -> list[list[int]]:
    """Return clusters, the largest first; within one, the best linked first. The rest forms the
    last."""
    degrees = graph.degree()
    found = (
        [list(members) for members in graph.community_multilevel(weights="weight")]
        if graph.ecount()
        else [[n] for n in range(graph.vcount())]
    )
    large = sorted(
        (each for each in found if len(each) >= SMALLEST), key=lambda each: (-len(each), each[0])
    )
    rest = [n for each in found if len(each) < SMALLEST for n in each]
    return [sorted(each, key=lambda n: (-degrees[n], n)) for each in [*large, rest] if each]


def _middles(
    clusters: Sequence[Sequence[int]], vectors: Mapping[int, NDArray[np.float32]]
) -> dict[tuple[int, int], float]:
    """Return pairs of clusters that are most similar by their mean vectors, with their
    similarity."""
    of = {
        n: np.mean([vectors[member] for member in members if member in vectors], axis=0)
        for n, members in enumerate(clusters)
        if any(member in vectors for member in members)
    }
    numbers = np.array(list(of), np.int64)
    if len(of) < 2:
        return {}
    rows = np.array(list(of.values()), np.float32)
    return _alike(
        numbers, rows / np.maximum(1e-9, np.linalg.norm(rows, axis=1, keepdims=True)), least=-1.0
    )


def _laid(
    graph: igraph.Graph, clusters: Sequence[Sequence[int]], like: Mapping[tuple[int, int], float]
) -> tuple[Points, Points]:
    """Return the items' positions, and each cluster's centre and radius."""
    inside = [_within(graph, members) for members in clusters]
    radii = np.array([ROOM * sqrt(len(members)) + ROOM for members in clusters])
    middles = _apart(_spread(graph, clusters, radii, like), radii)
    points = np.zeros((graph.vcount(), 2))
    for members, places, radius, middle in zip(clusters, inside, radii, middles, strict=True):
        points[members] = middle + places * (radius - ROOM)
    if len(middles):
        corner = (middles - radii[:, None]).min(axis=0)
        points, middles = points - corner, middles - corner
    return points, np.column_stack([middles, radii]) if len(middles) else np.zeros((0, 3))


def _within(graph: igraph.Graph, members: Sequence[int]) -> Points:
    """Place items in the unit disc by their edges, then even them out."""
    if len(members) == 1:
        return np.zeros((1, 2))
    part = graph.induced_subgraph(members)
    # an induced graph keeps the order of its vertices
    order = np.argsort(np.argsort(members))
    seed = [[float(x), float(y)] for x, y in part.layout_circle()]
    if part.ecount():
        laid = np.array(
            list(part.layout_fruchterman_reingold(niter=120, seed=seed, grid=len(members) > 400))
        )[order]
    else:
        laid = np.array(seed)[order]
    laid -= laid.mean(axis=0)
    far, angle = np.hypot(laid[:, 0], laid[:, 1]), np.arctan2(laid[:, 1], laid[:, 0])
    rank = np.argsort(np.argsort(far, kind="stable"), kind="stable")
    far = np.sqrt((rank + 0.5) / len(members))
    return np.column_stack([far * np.cos(angle), far * np.sin(angle)])


def _spread(
    graph: igraph.Graph,
    clusters: Sequence[Sequence[int]],
    radii: NDArray[np.float64],
    like: Mapping[tuple[int, int], float],
) -> Points:
    """Place clusters as if each were one item: strongly linked ones lie close."""
    of = {member: number for number, members in enumerate(clusters) for member in members}
    between = {pair: 0.5 for pair in like}
    for a, b in graph.get_edgelist():
        if of[a] != of[b]:
            pair = min(of[a], of[b]), max(of[a], of[b])
            between[pair] = between.get(pair, 0.0) + 1.0
    whole = igraph.Graph(n=len(clusters), edges=list(between))
    seed = [[float(x), float(y)] for x, y in whole.layout_circle()]
    laid = np.array(
        list(
            whole.layout_fruchterman_reingold(niter=300, seed=seed, weights=list(between.values()))
        )
        if between
        else seed or np.zeros((0, 2))
    )
    if len(laid) < 2:
        return laid
    laid -= laid.mean(axis=0)
    # As wide as the discs need, and wider than high, like screens.
    laid = laid @ np.linalg.svd(laid, full_matrices=False)[2].T
    scale = sqrt(float((radii**2).sum()) * 1.5) / np.maximum(1e-9, np.abs(laid).max(axis=0))
    return np.asarray(laid * scale * np.array([1.5, 0.8]))


def _apart(middles: Points, radii: NDArray[np.float64]) -> Points:
    """Pull clusters together and push overlapping ones apart until none overlap."""
    middles = middles.copy()
    if len(middles) < 2:
        return middles
    need = radii[:, None] + radii[None, :] + ROOM
    np.fill_diagonal(need, 0.0)
    heavy = radii**2
    share = heavy[None, :] / (heavy[:, None] + heavy[None, :])  # the smaller one moves further
    for turn in range(TURNS):
        if turn < TURNS / 2:
            middles *= np.array([0.985, 0.978])  # wider than high
        away = middles[:, None, :] - middles[None, :, :]
        far = np.hypot(away[..., 0], away[..., 1])
        near = np.maximum(need - far, 0.0)
        if turn >= TURNS / 2 and not (near > ROOM / 4).any():
            break
        push = near / np.maximum(far, 1e-6) * share * 0.5
        middles += (away * push[..., None]).sum(axis=1)
    return middles


def _names(items: Sequence[Item], clusters: Sequence[Sequence[int]]) -> list[str]:
    """Name clusters by the tags and words that are more frequent in them than elsewhere."""
    terms = [_terms(item) for item in items]
    everywhere: Counter[str] = Counter(term for each in terms for term in each)
    names = []
    for members in clusters:
        here: Counter[str] = Counter()
        for member in members:
            here.update(terms[member])
        share = {term: count / len(members) for term, count in here.items() if count > 1}
        worth = {
            term: part * (0.05 + max(0.0, log(part * len(items) / everywhere[term])))
            for term, part in share.items()
        }
        chosen: list[str] = []
        for term in sorted(worth, key=lambda term: (-worth[term], term)):
            if len(chosen) == NAMED:
                break
            said = [word for other in chosen for word in other.split()]
            repeats = any(_same(word, mine) for word in term.split() for mine in said)
            if not repeats and len(", ".join([*chosen, term])) <= LETTERS:
                chosen.append(term)
        names.append(", ".join(chosen) or items[members[0]].title)
    return names


def _terms(item: Item) -> set[str]:
    return ({word.lower() for word in _WORD.findall(item.title)} - _SILENT) | {
        tag.lower() for tag in item.tags if len(tag) > 1
    }


def _same(word: str, other: str) -> bool:
    return (
        word[:5] == other[:5]
        if min(len(word), len(other)) >= 5
        else word.rstrip("s") == other.rstrip("s")
    )
