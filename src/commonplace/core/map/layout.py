"""The layout of the map: linked and similar items lie together, in named clusters.

Laying out five thousand items at once takes ten seconds. So clusters are found first, each is laid
out by itself, and then the clusters as discs that do not overlap.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
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
    if not items:
        return Chart((), (), (), (), total, 0.0, 0.0)
    igraph.set_random_number_generator(Random(0))  # the same library gives the same map
    at = {item.id: n for n, item in enumerate(items)}
    ends = ((at.get(r.from_id), at.get(r.to_id)) for r in relations)
    joined = sorted({_pair(a, b) for a, b in ends if a is not None and b is not None and a != b})
    rows = np.array([at[each] for each in ids], np.int64)
    weights = dict.fromkeys(joined, 1.0)
    for pair, cosine in _alike(rows, vectors).items():
        weights.setdefault(pair, cosine)
    _gather_others(items, weights)
    graph = igraph.Graph(
        n=len(items), edges=list(weights), edge_attrs={"weight": list(weights.values())}
    )
    clusters = _clusters(graph)
    points, discs = _laid(graph, clusters, rows, vectors)
    width, height = np.vstack([points, discs[:, :2] + discs[:, 2:]]).max(axis=0).tolist()
    return Chart(
        tuple(items),
        tuple((x, y) for x, y in points.tolist()),
        tuple(joined),
        tuple(
            Region(name, tuple(members), *disc)
            for name, members, disc in zip(
                _names(items, clusters), clusters, discs.tolist(), strict=True
            )
        ),
        total,
        width,
        height,
    )


def _pair(a: int, b: int) -> tuple[int, int]:
    return min(a, b), max(a, b)


def _alike(
    rows: NDArray[np.int64], vectors: NDArray[np.float32], least: float = LEAST
) -> dict[tuple[int, int], float]:
    """Find each item's nearest neighbours, a few rows at a time: all cosines would take 100 MB."""
    found: dict[tuple[int, int], float] = {}
    most = min(ALIKE, len(rows) - 1)
    for start in range(0, len(rows) if most > 0 else 0, 500):
        cosines = vectors[start : start + 500] @ vectors.T
        cosines[np.arange(len(cosines)), np.arange(start, start + len(cosines))] = -1.0
        near = np.argpartition(-cosines, most - 1, axis=1)[:, :most]
        row, place = (np.take_along_axis(cosines, near, axis=1) >= least).nonzero()
        other = near[row, place]
        pairs = np.sort(np.column_stack([rows[start + row], rows[other]]), axis=1)
        found.update(zip(map(tuple, pairs.tolist()), cosines[row, other].tolist(), strict=True))
    return found


def _gather_others(items: Sequence[Item], weights: dict[tuple[int, int], float]) -> None:
    """Attach items without links or neighbours to others with their rarest tag, or their folder."""
    holders: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for n, item in enumerate(items):
        for mark in (*(("tag", tag) for tag in item.tags), *(("", id) for id in item.folders)):
            holders[mark].append(n)
    for n in sorted(set(range(len(items))) - {end for pair in weights for end in pair}):
        tags = sorted((holders["tag", tag] for tag in items[n].tags), key=len)
        shared = chain(*tags, *(holders["", folder] for folder in items[n].folders))
        other = next((each for each in shared if each != n), None)
        if other is not None:
            weights[_pair(n, other)] = LEAST


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


def _laid(
    graph: igraph.Graph,
    clusters: Sequence[Sequence[int]],
    rows: NDArray[np.int64],
    vectors: NDArray[np.float32],
) -> tuple[Points, Points]:
    """Return the items' positions, and each cluster's centre and radius."""
    radii = np.array([ROOM * sqrt(len(members)) + ROOM for members in clusters])
    of = np.zeros(graph.vcount(), np.int64)
    for number, members in enumerate(clusters):
        of[members] = number
    middles = _spread(graph, of, radii, _similar_clusters(of[rows], vectors))
    middles -= (middles - radii[:, None]).min(axis=0)
    points = np.zeros((graph.vcount(), 2))
    for members, radius, middle in zip(clusters, radii, middles, strict=True):
        points[members] = middle + _within(graph, members) * (radius - ROOM)
    return points, np.column_stack([middles, radii])


def _similar_clusters(
    of: NDArray[np.int64], vectors: NDArray[np.float32]
) -> dict[tuple[int, int], float]:
    """Return pairs of clusters that are most similar by their mean vectors, with their similarity.
    `of`: each vector's cluster."""
    numbers, row = np.unique(of, return_inverse=True)
    sums = np.zeros((len(numbers), vectors.shape[1]), np.float32)
    np.add.at(sums, row, vectors)
    return _alike(
        numbers, sums / np.maximum(1e-9, np.linalg.norm(sums, axis=1, keepdims=True)), least=-1.0
    )


def _within(graph: igraph.Graph, members: Sequence[int]) -> Points:
    """Place items in the unit disc by their edges, then even them out."""
    if len(members) == 1:
        return np.zeros((1, 2))
    # an induced graph keeps the order of its vertices
    order = np.argsort(np.argsort(members))
    laid = _arranged(graph.induced_subgraph(members), 120, grid=len(members) > 400)[order]
    angle = np.arctan2(laid[:, 1], laid[:, 0])
    rank = np.argsort(np.argsort(np.hypot(laid[:, 0], laid[:, 1]), kind="stable"), kind="stable")
    far = np.sqrt((rank + 0.5) / len(members))
    return np.column_stack([far * np.cos(angle), far * np.sin(angle)])


def _arranged(graph: igraph.Graph, turns: int, **options: object) -> Points:
    """Lay out a graph around its middle, always in the same way."""
    seed = [[float(x), float(y)] for x, y in graph.layout_circle()]
    if graph.ecount():
        seed = list(graph.layout_fruchterman_reingold(niter=turns, seed=seed, **options))
    return np.subtract(seed, np.mean(seed, axis=0))


def _spread(
    graph: igraph.Graph,
    of: NDArray[np.int64],
    radii: NDArray[np.float64],
    like: Mapping[tuple[int, int], float],
) -> Points:
    """Place clusters as if each were one item: strongly linked ones lie close. `of`: each item's
    cluster."""
    if len(radii) < 2:
        return np.zeros((len(radii), 2))
    links = of[np.array(graph.get_edgelist(), np.int64).reshape(-1, 2)].tolist()
    whole = igraph.Graph(
        n=len(radii),
        edges=[*like, *links],
        edge_attrs={"weight": [0.5] * len(like) + [1.0] * len(links)},
    )
    laid = _arranged(whole.simplify(combine_edges="sum"), 300, weights="weight")
    # As wide as the discs need, and wider than high, like screens.
    laid = laid @ np.linalg.svd(laid, full_matrices=False)[2].T
    scale = sqrt(float((radii**2).sum()) * 1.5) / np.maximum(1e-9, np.abs(laid).max(axis=0))
    return _apart(laid * scale * np.array([1.5, 0.8]), radii)


def _apart(middles: Points, radii: NDArray[np.float64]) -> Points:
    """Pull clusters together and push overlapping ones apart until none overlap."""
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


def _names(items: Sequence[Item], clusters: Sequence[Sequence[int]]) -> Iterator[str]:
    """Name clusters by the tags and words that are more frequent in them than elsewhere."""
    terms = [_terms(item) for item in items]
    everywhere = Counter(chain.from_iterable(terms))
    for members in clusters:
        here = Counter(chain.from_iterable(terms[member] for member in members))
        worth = {
            term: part * (0.05 + max(0.0, log(part * len(items) / everywhere[term])))
            for term, count in here.items()
            if count > 1 and (part := count / len(members))
        }
        chosen: list[str] = []
        for term in sorted(worth, key=lambda term: (-worth[term], term)):
            said = " ".join(chosen).split()
            repeats = any(_same(word, mine) for word in term.split() for mine in said)
            if not repeats and len(", ".join([*chosen, term])) <= LETTERS:
                chosen.append(term)
            if len(chosen) == NAMED:
                break
        yield ", ".join(chosen) or items[members[0]].title


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
