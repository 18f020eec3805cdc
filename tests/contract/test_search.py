"""What every door's search promises, on both engines: nothing that is wrong, and nothing old above what replaced it."""

import random
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest

from commonplace.adapters.coordination import make_limits
from commonplace.core.people.authorization import Access
from commonplace.core.search import search as search_module
from commonplace.core.search.search import OTHER_EMBEDDER, Search
from commonplace.core.search.similarity import SimilarityScale
from commonplace.model import (
    SUPERSEDED,
    WRONG,
    Caller,
    Item,
    ItemFilter,
    Kind,
    Mode,
    Relation,
    SearchResult,
)
from commonplace.ports import Vector, Vectors
from commonplace.search_index import library_index, postings, snapshot
from commonplace.settings import Settings
from commonplace.store import Store
from commonplace.store.relations import insert_relation
from tests.contract.library import DIMENSIONS, STAMP, Library, unit

pytestmark = pytest.mark.anyio
QUESTION = unit([1] + [0] * (DIMENSIONS - 1))


class Compass:
    """An embedder that takes every question for the same one."""

    stamp, dimensions = STAMP, DIMENSIONS

    async def query(self, text: str) -> Vector:
        return QUESTION

    async def documents(self, texts: Sequence[Sequence[str]]) -> list[Vectors]:
        return [np.array([QUESTION for _ in part]) for part in texts]

    async def close(self) -> None:
        pass


@pytest.fixture
def search(store: Store) -> Search:
    settings = Settings()
    access, compass = Access(store, make_limits(settings), settings), Compass()
    return Search(store, access, compass, settings, SimilarityScale(compass))


async def add(library: Library, title: str, nearness: float, **changes: str) -> Item:
    """SearchResult the higher the nearer it is to what is asked."""
    vector = unit([nearness, (1 - nearness**2) ** 0.5] + [0] * (DIMENSIONS - 2))
    return await library.add(f"quartz {title}", title=title, vectors=[vector], **changes)


async def replaces(library: Library, new: Item, old: Item) -> None:
    await library.store.relations.put(
        library.scope(), [Relation(library.id, new.id, Kind.SUPERSEDES, old.id)]
    )


def titles(found: SearchResult) -> list[str]:
    scores = [hit.score for hit in found.hits]
    assert scores == sorted(scores, reverse=True)
    assert [hit.rank for hit in found.hits] == list(range(1, len(scores) + 1))
    return [hit.passage.title for hit in found.hits]


def owner(library: Library) -> Caller:
    return Caller(library.id, library.id, "ann")


async def test_what_is_wrong_is_found_only_by_asking_for_it(ann: Library, search: Search) -> None:
    await add(ann, "true", 0.5)
    await add(ann, "wrong", 0.9, status=WRONG)
    for mode in Mode:
        assert titles(await search.search(owner(ann), "quartz", mode=mode)) == ["true"]
        assert titles(
            await search.search(
                owner(ann), "quartz", mode=mode, where=ItemFilter(statuses=(WRONG,))
            )
        ) == ["wrong"]


async def test_what_replaced_it_stands_above_the_old(ann: Library, search: Search) -> None:
    old, new = await add(ann, "old", 0.9, status=SUPERSEDED), await add(ann, "new", 0.3)
    await add(ann, "between", 0.6)
    assert titles(await search.search(owner(ann), "quartz", mode=Mode.SEMANTIC)) == [
        "old",
        "between",
        "new",
    ]
    await replaces(ann, new, old)
    for mode, limit in product(Mode, (1, 2, 3)):
        found = await search.search(owner(ann), "quartz", mode=mode, limit=limit)
        shown = titles(found)
        assert shown == ["new", "old", "between"][:limit] or mode is Mode.KEYWORD
        assert "old" not in shown[: shown.index("new") + 1]
        assert {hit.passage.superseded_by for hit in found.hits} <= {None, new.entity_id}


async def test_a_replacement_that_is_found_far_below_takes_the_place_of_the_old(
    ann: Library, search: Search
) -> None:
    """Also beyond the limit, and with a filter that both pass."""
    old, new = (
        await add(ann, "old", 0.9, status=SUPERSEDED, category="ports"),
        await add(ann, "new", 0.2, category="ports"),
    )
    for n in range(20):
        await add(ann, f"between {n}", 0.5, category="ports")
    await replaces(ann, new, old)
    for limit, where in product((1, 2, 5, 22), (None, ItemFilter(category="ports"))):
        found = await search.search(owner(ann), "opal", limit=limit, where=where)
        assert titles(found)[:2] == ["new", "old"][:limit]
        assert [hit.passage.superseded_by for hit in found.hits[1:2]] in ([], [new.entity_id])
    elsewhere = ItemFilter(category="harbours")
    assert titles(await search.search(owner(ann), "opal", where=elsewhere)) == []


async def test_a_chain_leads_past_what_is_wrong(ann: Library, search: Search) -> None:
    old, wrong, new = (
        await add(ann, "old", 0.9, status=SUPERSEDED),
        await add(ann, "wrong", 0.8, status=WRONG),
        await ann.add("mica", title="new"),
    )
    await replaces(ann, wrong, old)
    await replaces(ann, new, wrong)
    found = await search.search(owner(ann), "opal")
    assert titles(found) == ["new", "old"]
    assert [hit.passage.superseded_by for hit in found.hits] == [None, new.entity_id]


async def test_a_replacement_that_was_not_found_is_put_above_the_old(
    ann: Library, search: Search
) -> None:
    oldest, older = (
        await add(ann, "oldest", 0.9, status=SUPERSEDED),
        await ann.add("feldspar", title="older", status=SUPERSEDED),
    )
    newest = await ann.add("mica", title="newest")
    await add(ann, "other", 0.5)
    await replaces(ann, older, oldest)
    await replaces(ann, newest, older)
    found = titles(await search.search(owner(ann), "quartz", mode=Mode.SEMANTIC))
    assert found == ["newest", "older", "oldest", "other"]
    assert titles(await search.search(owner(ann), "quartz", limit=1, mode=Mode.SEMANTIC)) == [
        "newest"
    ]
    only_old = ItemFilter(statuses=(SUPERSEDED,))
    assert titles(
        await search.search(owner(ann), "quartz", mode=Mode.SEMANTIC, where=only_old)
    ) == ["older", "oldest"]


async def test_a_replacement_out_of_scope_is_not_told(ann: Library, search: Search) -> None:
    folder = await ann.folder("f")
    old = await ann.add("quartz", title="old", status=SUPERSEDED, folder=folder)
    await replaces(ann, await ann.add("mica", title="secret"), old)
    scoped = Caller(ann.id, ann.id, "reader", folders=frozenset({folder}))
    found = await search.search(scoped, "quartz", mode=Mode.KEYWORD)
    assert titles(found) == ["old"] and found.hits[0].passage.superseded_by is None


async def test_another_embedders_vectors_out_of_scope_are_not_told(
    ann: Library, search: Search
) -> None:
    folder = await ann.folder("f")
    await ann.add("quartz", vectors=[QUESTION], folder=folder)
    await ann.add("mica", vectors=[QUESTION], stamp="another")
    scoped = Caller(ann.id, ann.id, "reader", folders=frozenset({folder}))
    assert (await search.search(owner(ann), "quartz")).degraded == OTHER_EMBEDDER
    assert (await search.search(scoped, "quartz")).degraded is None


@pytest.mark.parametrize("one_scan", [0, 8_000])
@pytest.mark.parametrize("mode", Mode)
async def test_a_folder_is_searched_alike_however_much_lies_beside_it(
    ann: Library, search: Search, monkeypatch: pytest.MonkeyPatch, mode: Mode, one_scan: int
) -> None:
    """As a small part of a library and as nearly all of it, by signs and among many equals: same hits, same scores."""
    for module, name, value in (
        (snapshot, "EXACT_UP_TO", 8),
        (snapshot, "ONE_SCAN_UP_TO", one_scan),
        (snapshot, "RESCORED", 8),
        (snapshot, "MOST_RESCORED", 8),
        (snapshot, "PHRASED", 6),
        (postings, "LARGE_RUN", 16),
        (search_module, "CANDIDATES", 10),
    ):
        monkeypatch.setattr(module, name, value)
    dice, folder = random.Random(7), await ann.folder("f")
    words = ["quartz", "mica", "feldspar", "the mica quartz", "quartz quartz mica"]
    for n in range(40):
        await ann.add(
            f"{dice.choice(words)} {n % 4}",
            title=f"inside {n}",
            key=f"inside {n}",
            folder=folder,
            vectors=[unit([dice.gauss(0, 1) for _ in range(DIMENSIONS)])],
        )
    scoped, seen = Caller(ann.id, ann.id, "reader", folders=frozenset({folder})), []
    for outside in (0, 5, 400):
        for m in range(outside):
            await ann.add(
                "quartz mica " * (m % 7) + "granite",
                title="outside",
                key=f"outside {outside} {m}",
                vectors=[unit([dice.gauss(0, 1) for _ in range(DIMENSIONS)])],
            )
        seen.append(
            [
                [
                    (hit.passage.title, hit.score)
                    for hit in (await search.search(scoped, asked, limit=9, mode=mode)).hits
                ]
                for asked in ("quartz", "mica quartz", "feldspar 2")
            ]
        )
    assert all(len(hits) == 9 for hits in seen[0])
    assert seen[0] == seen[1] == seen[2]


async def test_two_that_replace_each_other_are_both_found(ann: Library, search: Search) -> None:
    one, other = (
        await add(ann, "one", 0.9, status=SUPERSEDED),
        await add(ann, "other", 0.5, status=SUPERSEDED),
    )
    await replaces(ann, one, other)
    # Nobody can say so any more; a restored backup may.
    await ann.store._db.write(insert_relation, Relation(ann.id, other.id, Kind.SUPERSEDES, one.id))
    assert set(titles(await search.search(owner(ann), "quartz"))) == {"one", "other"}


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
async def test_a_warm_search_reads_no_library(
    ann: Library, search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(ann, "warm", 0.9)
    await search.warm()
    monkeypatch.setattr(library_index, "_TERMS", "SELECT 'no section is read now'")
    monkeypatch.setattr(library_index, "_VECTORS", "SELECT 'nor any vector'")
    assert titles(await search.search(owner(ann), "quartz")) == ["warm"]
