"""Counts for those who look after a library."""

from datetime import timedelta

import pytest

from commonplace.model import Event, now
from tests.contract.library import Library

pytestmark = pytest.mark.anyio


async def test_totals_and_days_are_of_the_scope(ann: Library, bob: Library) -> None:
    folder = await ann.folder("Red")
    await ann.add("one\n\ntwo", folder=folder, word_count=2)
    await ann.add("three", word_count=1, entity_type="idea", created_at=now() - timedelta(days=3))
    await bob.add("theirs", word_count=9)
    figures = ann.store.figures
    totals = await figures.totals(ann.scope())
    assert (totals.items, totals.words, totals.sections, totals.by_type) == (2, 3, 3, {"document": 1, "idea": 1})
    assert totals.characters == len("one\n\ntwo") + len("three")
    assert (await figures.totals(ann.scope(folder))).items == 1
    today, before = now().date().isoformat(), (now() - timedelta(days=3)).date().isoformat()
    assert await figures.added(ann.scope(), now() - timedelta(days=9)) == {today: 1, before: 1}
    assert await figures.added(ann.scope(), now() - timedelta(days=1)) == {today: 1}
    assert await figures.size() > 0


async def test_calls_are_counted_by_day(ann: Library, bob: Library) -> None:
    token = await ann.token()
    await ann.store.tokens.record([Event(ann.id, token.id, "search", None, True) for _ in range(3)])
    assert await ann.store.figures.calls(ann.id, now() - timedelta(days=1)) == {now().date().isoformat(): 3}
    assert await ann.store.figures.calls(bob.id, now() - timedelta(days=1)) == {}
