"""Counts for those who look after a library."""

from datetime import timedelta

import pytest

from commonplace.model import Event, ItemRef, Relation, now
from tests.contract.library import STAMP, Library, packed, unit

pytestmark = pytest.mark.anyio


async def test_totals_and_days_are_of_the_scope(ann: Library, bob: Library) -> None:
    folder = await ann.folder("Red")
    await ann.add("one\n\ntwo", folder=folder, word_count=2)
    await ann.add("three", word_count=1, entity_type="idea", created_at=now() - timedelta(days=3))
    await bob.add("theirs", word_count=9)
    figures = ann.store.figures
    totals = await figures.totals(ann.scope())
    assert (totals.items, totals.words, totals.sections, totals.by_type) == (
        2,
        3,
        3,
        {"document": 1, "idea": 1},
    )
    assert totals.characters == len("one\n\ntwo") + len("three")
    assert (await figures.totals(ann.scope(folder))).items == 1
    today, before = now().date().isoformat(), (now() - timedelta(days=3)).date().isoformat()
    assert await figures.added_by_day(ann.scope(), now() - timedelta(days=9)) == {
        today: 1,
        before: 1,
    }
    assert await figures.added_by_day(ann.scope(), now() - timedelta(days=1)) == {today: 1}
    assert await figures.size() > 0


async def test_calls_are_counted_by_day(ann: Library, bob: Library) -> None:
    token = await ann.token()
    await ann.store.tokens.record([Event(ann.id, token.id, "search", None, True) for _ in range(3)])
    assert await ann.store.figures.calls_by_day(ann.id, now() - timedelta(days=1)) == {
        now().date().isoformat(): 3
    }
    assert await ann.store.figures.calls_by_day(bob.id, now() - timedelta(days=1)) == {}


async def test_the_state_changes_with_whatever_a_map_shows(ann: Library, bob: Library) -> None:
    figures, items = ann.store.figures, ann.store.items
    seen = [await figures.state(ann.id)]

    async def is_new() -> bool:
        seen.append(await figures.state(ann.id))
        return seen[-1] not in seen[:-1]

    one, two = await ann.add("quartz"), await ann.add("mica", in_kb=False)
    assert await is_new()
    await bob.add("granite")
    assert not await is_new(), "another library's business"
    await items.update(
        ann.scope(),
        two.id,
        {"title": "Mica"},
        expected_revision=None,
        sections=None,
        stamp=STAMP,
        jobs=(),
    )
    assert await is_new()
    await ann.store.relations.put(ann.scope(), [Relation(ann.id, one.id, "REQUIRES", two.id)])
    assert await is_new()
    await ann.store.relations.delete(ann.scope(), one.id, "REQUIRES", two.id)
    folder = await ann.folder("Rocks")
    await items.file(ann.scope(), ItemRef(id=one.id), [folder], token_id=None)
    assert await is_new()
    await ann.store.sections.set_vectors(
        STAMP, {ann.id: [(n, packed(unit([1] * 16))) for n in await ann.section_ids(one)]}
    )
    assert await is_new()
    await items.delete(ann.scope(), two.id)
    assert await is_new()


async def test_openings_have_their_vectors_within_the_scope(ann: Library, bob: Library) -> None:
    folder = await ann.folder("Rocks")
    one = await ann.add(
        "quartz\n\nmore", vectors=[unit([1] + [0] * 15), unit([0, 1] + [0] * 14)], folder=folder
    )
    two = await ann.add("mica", vectors=[unit([0, 0, 1] + [0] * 13)])
    bare, theirs = await ann.add("basalt"), await bob.add("granite", vectors=[unit([1] * 16)])
    every = [each.id for each in (one, two, bare, theirs)]
    ids, rows = await ann.store.sections.first_vectors(ann.scope(), every, STAMP)
    assert {each: int(row.argmax()) for each, row in zip(ids, rows, strict=True)} == {
        one.id: 0,
        two.id: 2,
    }
    assert (await ann.store.sections.first_vectors(ann.scope(folder), every, STAMP))[0] == [one.id]
    assert (await ann.store.sections.first_vectors(ann.scope(), every, "another"))[0] == []
