"""Links that are found: between the closest, no hubs, within the writer's scope, made anew."""

from collections import Counter

import pytest

from commonplace.core.entities.auto_links import LINKS
from commonplace.core.entities.validation import NewEntity
from commonplace.model import ItemRef, Kind, Relation
from tests.interfaces.house import House

pytestmark = pytest.mark.anyio

POOLS = (
    (
        "Redis connection pool exhausted",
        "Requests to Redis block until they time out when the connection pool is exhausted.",
    ),
    (
        "Sizing connection pools",
        "Make the connection pool of Redis as large as the number of workers, else requests block "
        "until they time out.",
    ),
)
Links = dict[tuple[str, str, bool], float]


async def add(house: House, title: str, content: str, kind: str = "pattern") -> str:
    added = await house.app.entities.add(house.owner, NewEntity(title, content, kind), sync=True)
    return added.item.id


async def links(house: House, *items: str) -> Links:
    found = await house.app.store.relations.of_items(house.owner.scope, items, [Kind.RELATED_TO])
    return {(each.from_id, each.to_id, each.explicit): each.weight for each in found}


async def find_anew(house: House) -> None:
    await house.app.store.jobs.enqueue_linking()
    while await house.app.worker.run_once():
        pass


async def test_links_are_found_anew_and_explicit_ones_stay(house: House) -> None:
    one, other = [await add(house, *text) for text in POOLS]
    bread = await add(house, "Bread", "Let the dough rest overnight in the cold.")
    tides = await add(house, "Tides", "The moon pulls the sea twice a day.")
    before = await links(house, one, other, bread, tides)
    assert list(before) == [(other, one, False)]
    library = house.owner.library_id
    await house.app.store.relations.put(
        house.owner.scope,
        [
            Relation(library, bread, Kind.RELATED_TO, one, weight=0.9, explicit=False),
            Relation(library, bread, Kind.RELATED_TO, tides),
        ],
    )
    for _ in range(2):
        await find_anew(house)
        after = await links(house, one, other, bread, tides)
        assert after == before | {(bread, tides, True): 1.0}


async def test_an_overview_does_not_become_a_hub(house: House) -> None:
    subjects = ("pools", "caches", "queues", "locks", "timeouts", "retries", "indexes", "shards")
    overview = await add(
        house,
        "Overview of the database",
        " ".join(
            f"The {name} of the database are sized by the number of workers." for name in subjects
        ),
    )
    items = [overview] + [
        await add(
            house,
            f"Database {name} in {place}",
            f"In {place} the {name} of the database are sized by the number of workers.",
        )
        for name in subjects
        for place in ("production", "staging")
    ]

    async def degrees() -> Counter[str]:
        found = await links(house, *items)
        return Counter(end for from_id, to_id, _ in found for end in (from_id, to_id))

    assert 0 < max((await degrees()).values()) <= LINKS
    await find_anew(house)
    assert 0 < max((await degrees()).values()) <= LINKS


async def test_what_the_writer_does_not_see_changes_no_link(house: House) -> None:
    secret = await house.token("Worker", write=True, folders=[house.folders["Red"]])
    async with house.client(token=secret) as client:
        ids = []
        for title, content in POOLS:
            entity = {"title": title, "content": content, "entity_type": "pattern"}
            made = await client.post("/api/entities?sync=true", json=entity)
            assert made.status_code == 201, made.text
            ids.append(
                (
                    await house.app.store.items.get(
                        house.owner.scope, ItemRef.parse(made.json()["id"])
                    )
                ).id
            )
    before = await links(house, *ids)
    assert len(before) == 1
    for n in range(8):  # closer to both than they are to each other
        await add(house, f"Redis connection pools {n}", f"{POOLS[0][1]} {POOLS[1][1]}")
    await find_anew(house)
    after = await links(house, *ids)
    assert {key: after[key] for key in before} == before
