"""Drawings: the same for the same graph, within their frame, and quick enough for five thousand."""

import re
from itertools import combinations
from math import cos, sin

from commonplace.core.map.layout import Chart, Region
from commonplace.interfaces.web.graph_svg import HEIGHT, WIDTH, Node, picture, whole_map
from commonplace.interfaces.web.label_layout import CHARACTER, place_labels
from commonplace.model import Item
from tests.growth import growth


def nodes(count: int) -> list[Node]:
    return [
        Node(
            Item(
                id=str(n),
                library_id="l",
                public_id=f"p{n}",
                content_id="",
                entity_type="idea",
                kind="text",
                title=f"<{n}>",
            ),
            f"/graph/p{n}",
            n == 0,
        )
        for n in range(count)
    ]


def places(svg: str) -> list[tuple[float, float]]:
    return [
        (float(x), float(y)) for x, y in re.findall(r'<circle cx="([-\d.]+)" cy="([-\d.]+)"', svg)
    ]


def test_a_neighbourhood_is_drawn_with_names_and_escaped() -> None:
    drawn = picture(nodes(3), [(0, 1, "DEPENDS_ON"), (0, 2, "REQUIRES")], "What <0> is joined to")
    assert len(places(drawn)) == 3 and "&lt;2&gt;" in drawn and "<2>" not in drawn
    assert drawn == picture(
        nodes(3), [(0, 1, "DEPENDS_ON"), (0, 2, "REQUIRES")], "What <0> is joined to"
    )
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in places(drawn))


def test_what_must_be_done_first_stands_to_the_left() -> None:
    last, middle, first = places(
        picture(nodes(3), [(0, 1, "DEPENDS_ON"), (1, 2, "DEPENDS_ON")], "", layered=True)
    )
    assert first[0] < middle[0] < last[0]


def test_names_stand_beside_their_dots_and_not_across_each_other() -> None:
    points = [(450.0, 300.0), *((450 + 250 * cos(n), 300 + 200 * sin(n)) for n in range(30))]
    names = [f"Quite a long name {n}" for n in range(31)]
    labels = place_labels(
        points, [7.0] * 31, [len(name) * CHARACTER for name in names], WIDTH, HEIGHT
    )
    shown = [(label, name) for label, name in zip(labels, names, strict=True) if label.fits]
    assert len(shown) > 20 and labels[0].fits, "what matters most is named first"
    boxes = [
        (
            label.x - (len(name) * CHARACTER * {"start": 0, "middle": 0.5, "end": 1}[label.anchor]),
            label.y,
            len(name) * CHARACTER,
        )
        for label, name in shown
    ]
    for (x, y, long), (other_x, other_y, other_long) in combinations(boxes, 2):
        assert abs(y - other_y) >= 15 or x + long <= other_x or other_x + other_long <= x


def test_a_region_that_is_called_after_a_long_title_does_not_stand_across_the_others() -> None:
    items, points = tuple(node.item for node in nodes(3)), ((0.0, 0.0), (1.0, 0.0), (2.0, 1.0))
    drawn = whole_map(
        Chart(items, points, (), (Region("owl " * 50, (0, 1, 2), 1, 1, 2),), 3, 2.0, 1.0), ""
    )
    [name] = re.findall(r'class="region"[^>]*>([^<]+)<', drawn)
    assert len(name) == 30 and name.endswith("…")


def large_map(count: int) -> str:
    items = [node.item for node in nodes(count)]
    points = tuple((n % 70 * 1.0, n // 70 * 1.0) for n in range(count))
    regions = (Region("<owls>", tuple(range(count)), 35, 35, 50),)
    return whole_map(
        Chart(
            tuple(items),
            points,
            tuple((n, n + 1) for n in range(count - 1)),
            regions,
            count,
            70,
            72,
        ),
        "All",
    )


def test_a_map_of_five_thousand_is_not_heavy_and_drawn_in_proportion() -> None:
    drawn = large_map(5_000)
    assert growth(large_map, 1_250, 5_000) < 9, "it is drawn for every visit"
    dots = [(float(x), float(y)) for x, y in re.findall(r'<path d="M([\d.]+) ([\d.]+)h0"', drawn)]
    assert len(dots) == 5_000 and len(drawn) < 900_000
    assert "&lt;owls&gt;" in drawn and "<owls>" not in drawn and "&lt;4999&gt;" in drawn
    width, height = map(float, re.findall(r'viewBox="0 0 (\d+) (\d+)"', drawn)[0])
    assert all(0 <= x <= width and 0 <= y <= height for x, y in dots)
