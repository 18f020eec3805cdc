"""The map: what is alike or joined lies together, nothing lies across another, and all of it is quick."""

import numpy as np
import pytest
from numpy.typing import NDArray

from commonplace.core.map.layout import Chart, lay_out
from commonplace.model import Item, Relation
from tests.growth import growth

TOPICS = ("rivers", "owls", "bread", "engines", "poems", "taxes", "gardens", "stars")


def item(n: int, title: str, tags: tuple[str, ...] = (), folders: tuple[str, ...] = ()) -> Item:
    return Item(
        id=f"i{n}",
        library_id="l",
        public_id=f"p{n}",
        content_id="",
        entity_type="document",
        kind="text",
        title=title,
        tags=tags,
        folders=folders,
    )


def joined(a: int, b: int) -> Relation:
    return Relation("l", f"i{a}", "RELATED_TO", f"i{b}")


def about(count: int, topics: int) -> tuple[list[Item], NDArray[np.float32]]:
    """Items of so many topics, each near the others of its own."""
    chance = np.random.default_rng(1)
    middles = chance.normal(size=(topics, 96))
    of = chance.integers(topics, size=count)
    vectors = (middles[of] + 0.8 * chance.normal(size=(count, 96))).astype(np.float32)
    return (
        [
            item(n, f"On {TOPICS[topic % 8]} {topic}", (f"topic {topic}",))
            for n, topic in enumerate(of)
        ],
        vectors / np.linalg.norm(vectors, axis=1, keepdims=True),
    )


def drawn(
    items: list[Item],
    vectors: NDArray[np.float32] | None = None,
    relations: list[Relation] | None = None,
) -> Chart:
    return lay_out(
        items,
        relations or [],
        [] if vectors is None else [each.id for each in items],
        np.zeros((0, 1), np.float32) if vectors is None else vectors,
        len(items),
    )


def test_what_is_alike_makes_clusters_with_names_that_keep_apart() -> None:
    items, vectors = about(400, 8)
    chart = drawn(items, vectors)
    assert sorted(n for region in chart.regions for n in region.members) == list(range(400))
    for region in chart.regions:
        topics = [items[n].tags[0] for n in region.members]
        most = max(set(topics), key=topics.count)
        assert topics.count(most) > 0.9 * len(topics)
        assert most in region.name
    for n, one in enumerate(chart.regions):
        for other in chart.regions[n + 1 :]:
            assert np.hypot(one.x - other.x, one.y - other.y) > (one.radius + other.radius) * 0.9
        for member in one.members:
            x, y = chart.points[member]
            assert np.hypot(x - one.x, y - one.y) <= one.radius
    assert all(0 <= x <= chart.width and 0 <= y <= chart.height for x, y in chart.points)
    assert chart == drawn(items, vectors), "the same library has the same map"


def test_relations_tags_and_folders_gather_what_has_no_vector() -> None:
    titles = ["Anchor", "Boat", "Cable", "Dough", "Oven", "Salt", "Ant", "Bee", "Fly"]
    items = [
        item(n, title, ("baking",) if 3 <= n < 6 else (), ("insects",) if n >= 6 else ())
        for n, title in enumerate(titles)
    ]
    chart = drawn(items, relations=[joined(0, 1), joined(1, 2), joined(0, 9)])
    assert sorted(sorted(region.members) for region in chart.regions) == [
        [0, 1, 2],
        [3, 4, 5],
        [6, 7, 8],
    ]
    assert next(region.name for region in chart.regions if 3 in region.members) == "baking"
    assert chart.relations == ((0, 1), (1, 2)), "what leads out of the map is left out"


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_small_libraries_have_maps_too(count: int) -> None:
    chart = drawn([item(n, f"Thing {n}") for n in range(count)])
    assert len(chart.points) == count
    assert all(np.isfinite(chart.points).ravel().tolist())


def test_four_times_as_many_take_far_less_than_sixteen_times_as_long() -> None:
    def draw(count: int) -> None:
        items, vectors = about(count, count // 80)
        assert (
            len(
                drawn(
                    items, vectors, [joined(n, (n * 7) % count) for n in range(count // 2)]
                ).points
            )
            == count
        )

    assert growth(draw, 800, 3_200, turns=2) < 12
