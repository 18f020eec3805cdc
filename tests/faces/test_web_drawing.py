"""Drawings: the same for the same graph, within their frame, and quick enough for five thousand."""

import random
import re
import time

from commonplace.faces.web.drawing import HEIGHT, WIDTH, Edge, Node, picture, whole_map
from commonplace.model import Item


def nodes(count: int) -> list[Node]:
    return [Node(Item(id=str(n), library_id="l", public_id=f"p{n}", content_id="", entity_type="idea", kind="text", title=f"<{n}>"),
                 f"/graph/p{n}", n == 0) for n in range(count)]


def clustered(count: int) -> list[Edge]:
    """Groups of fifty that are joined among themselves, and a little to others."""
    chance = random.Random(1)
    ends = [(n, n // 50 * 50 + chance.randrange(50) if chance.random() < 0.9 else chance.randrange(count))
            for n in range(count) for _ in range(2)]
    return [(a, b, "RELATED_TO") for a, b in ends if a != b]


def places(svg: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r'<circle cx="([-\d.]+)" cy="([-\d.]+)"', svg)]


def test_a_neighbourhood_is_drawn_with_names_and_escaped() -> None:
    drawn = picture(nodes(3), [(0, 1, "DEPENDS_ON"), (0, 2, "REQUIRES")], "What <0> is joined to")
    assert len(places(drawn)) == 3 and "&lt;2&gt;" in drawn and "<2>" not in drawn
    assert drawn == picture(nodes(3), [(0, 1, "DEPENDS_ON"), (0, 2, "REQUIRES")], "What <0> is joined to")
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in places(drawn))


def test_what_must_be_done_first_stands_to_the_left() -> None:
    last, middle, first = places(picture(nodes(3), [(0, 1, "DEPENDS_ON"), (1, 2, "DEPENDS_ON")], "", layered=True))
    assert first[0] < middle[0] < last[0]


def test_five_thousand_are_drawn_within_seconds_by_their_clusters() -> None:
    began = time.process_time()
    drawn, clusters = whole_map(nodes(5_000), clustered(5_000), "All")
    assert time.process_time() - began < 8, "a layout of all at once takes longer"
    assert len(places(drawn)) == 5_000 and len(drawn) < 1_200_000
    assert sum(map(len, clusters)) == 5_000 and len(clusters) < 200
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in places(drawn))
