"""Vector search against an oracle, after every kind of change, within every kind of scope."""

from collections.abc import Awaitable, Callable

import numpy as np
import pytest
from hypothesis import given, settings

from commonplace.search_index import snapshot
from commonplace.store import Store
from tests.contract.library import STAMP, Library, packed, unit
from tests.contract.oracle import Oracle
from tests.contract.world import World, operations

pytestmark = pytest.mark.anyio


@pytest.mark.slow
@pytest.mark.usefixtures("plan")
@given(steps=operations)
@settings(max_examples=settings.default.max_examples // 2)
async def test_it_answers_as_the_oracle_does_after_any_changes(
    store: Store, steps: list[tuple[str, int, int]]
) -> None:
    world = await World.create(store, Oracle(), seed=len(steps))
    await world.add(2, 0)
    for step in steps:
        await world.apply(*step)
        await world.library.store.sections.nearest(
            world.library.scope(), world.vector(), STAMP, 1
        )  # keeps up step by step
    await world.check()


@pytest.mark.usefixtures("plan")
async def test_libraries_never_see_each_others_vectors(store: Store) -> None:
    oracle = Oracle()
    ann, bob = await World.create(store, oracle, 1), await World.create(store, oracle, 2)
    for world in (ann, bob, ann, bob):
        await world.add(4, 0)
        await world.add(3)
    await ann.check()
    await bob.check()
    assert (
        await store.sections.nearest(ann.library.scope(bob.folders[0]), ann.vector(), STAMP, 5)
        == []
    )


@pytest.mark.usefixtures("plan")
async def test_every_process_sees_the_others_writes_at_its_next_search(
    store: Store, open_store: Callable[[], Awaitable[Store]]
) -> None:
    other = await open_store()
    world = await World.create(store, Oracle(), 3)
    for step in [
        ("add", 1, 0),
        ("add", 2, 1),
        ("file", 0, 1),
        ("embed", 1, 0),
        ("unfile", 0, 0),
        ("retitle", 1, 0),
        ("delete", 0, 0),
        ("add", 4, 1),
    ]:
        await world.apply(*step)
        await world.check(other)
        await world.check()


@pytest.mark.usefixtures("plan")
async def test_vectors_of_another_model_lie_beside_and_are_never_mixed(ann: Library) -> None:
    three, sixteen = unit([1, 2, 3]), unit(range(1, 17))
    old = await ann.add("old", title="old", vectors=[three], stamp="tiny/3")
    await ann.add("new", title="new", vectors=[sixteen])
    sections = ann.store.sections
    old_id = (await ann.section_ids(old))[0]
    assert [hit.section_id for hit in await sections.nearest(ann.scope(), three, "tiny/3", 5)] == [
        old_id
    ]
    assert old_id not in [
        hit.section_id for hit in await sections.nearest(ann.scope(), sixteen, STAMP, 5)
    ]
    assert await sections.nearest(ann.scope(), sixteen, "never used/16", 5) == []
    await sections.set_vectors(STAMP, {ann.id: [(old_id, packed(sixteen))]})
    assert await sections.nearest(ann.scope(), three, "tiny/3", 5) == [], (
        "a section has one vector, the last"
    )
    assert len(await sections.nearest(ann.scope(), sixteen, STAMP, 5)) == 2


async def test_a_section_that_is_gone_gets_no_vector(ann: Library) -> None:
    kept, gone = await ann.add("kept"), await ann.add("gone")
    ids = await ann.section_ids(kept) + await ann.section_ids(gone)
    await ann.store.items.delete(ann.scope(), gone.id)
    vector = unit(range(1, 17))
    await ann.store.sections.set_vectors(
        STAMP, {ann.id: [(section_id, packed(vector)) for section_id in ids]}
    )
    await ann.store.sections.set_vectors(STAMP, {ann.id: []})
    assert [
        hit.section_id for hit in await ann.store.sections.nearest(ann.scope(), vector, STAMP, 5)
    ] == ids[:1]


@pytest.mark.slow
async def test_a_scan_by_signs_finds_the_true_nearest_among_thousands(
    ann: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "EXACT_UP_TO", 0)
    monkeypatch.setattr(snapshot, "ONE_SCAN_UP_TO", 0)
    monkeypatch.setattr(snapshot, "RESCORED", 80)
    monkeypatch.setattr(snapshot, "MOST_RESCORED", 80)  # so few that all of the bits are needed
    random, folder = np.random.default_rng(5), await ann.folder("half")
    centres = random.normal(size=(60, 256))
    ids, matrix = [], []
    for n in range(40):
        vectors = [
            unit(centres[random.integers(60)] + 0.7 * random.normal(size=256)) for _ in range(150)
        ]
        item = await ann.add(
            "\n\n".join(f"{n} {m}" for m in range(150)),
            title=str(n),
            vectors=vectors,
            stamp="test/256",
            folder=folder if n % 2 else None,
        )
        ids += [(section_id, n % 2) for section_id in await ann.section_ids(item)]
        matrix += vectors
    stored = np.array(matrix).astype(np.float16).astype(np.float32)
    for scope, inside in [
        (ann.scope(), np.ones(len(ids), bool)),
        (ann.scope(folder), np.array([half == 1 for _, half in ids])),
    ]:
        kept = []
        for _ in range(40):
            vector = unit(centres[random.integers(60)] + 0.7 * random.normal(size=256))
            scores = np.where(inside, stored @ vector, -2)
            best = {ids[n][0] for n in np.argsort(-scores)[:10]}
            found = await ann.store.sections.nearest(scope, vector, "test/256", 10)
            assert len(found) == 10
            kept.append(len(best & {hit.section_id for hit in found}) / 10)
        assert np.mean(kept) >= 0.97
