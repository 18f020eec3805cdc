"""Questions that name a time, on both engines: what is from then comes first, and nothing is hidden."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from commonplace.core.search import search as search_module
from commonplace.core.search.search import Search
from commonplace.model import Caller, Item, ItemFilter, Mode
from tests.contract.library import DIMENSIONS, Library, unit
from tests.contract.test_search import owner, search, titles

__all__ = ["search"]
pytestmark = pytest.mark.anyio

NOW = datetime(2026, 11, 18, 15, tzinfo=UTC)
LAST_WEEK = datetime(2026, 11, 11, 10, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _clock(search: Search) -> None:
    search.clock = lambda: NOW


async def add(
    library: Library, title: str, at: datetime, nearness: float = 0.6, **changes: object
) -> Item:
    vector = unit([nearness, (1 - nearness**2) ** 0.5] + [0] * (DIMENSIONS - 2))
    return await library.add(
        f"quartz {title}", title=title, key=title, vectors=[vector], created_at=at, **changes
    )


@pytest.mark.parametrize("mode", Mode)
async def test_what_is_from_the_time_comes_first_and_the_rest_stays(
    ann: Library, search: Search, mode: Mode
) -> None:
    await add(ann, "old", datetime(2025, 2, 1, tzinfo=UTC), 0.7)
    await add(ann, "recent", LAST_WEEK, 0.6)
    await add(ann, "today", NOW, 0.7)
    found = titles(await search.search(owner(ann), "quartz last week", mode=mode))
    assert found[0] == "recent" and sorted(found) == ["old", "recent", "today"]
    assert titles(await search.search(owner(ann), "quartz in February 2025", mode=mode))[0] == "old"
    assert titles(await search.search(owner(ann), "quartz on 18 November 2026"))[0] == "today"


async def test_what_is_far_better_stays_above(ann: Library, search: Search) -> None:
    await add(ann, "old", datetime(2025, 2, 1, tzinfo=UTC), 0.95)
    await add(ann, "recent", LAST_WEEK, 0.3)
    found = await search.search(owner(ann), "quartz last week", mode=Mode.SEMANTIC)
    assert titles(found) == ["old", "recent"]


async def test_a_time_with_nothing_from_it_changes_nothing(ann: Library, search: Search) -> None:
    for n in range(5):
        await add(ann, f"{n}", NOW - timedelta(days=3 * n), 0.9 - n / 10)
    plain = await search.search(owner(ann), "quartz", mode=Mode.SEMANTIC)
    timed = await search.search(owner(ann), "quartz in 1648", mode=Mode.SEMANTIC)
    assert [(hit.passage.title, hit.score) for hit in plain.hits] == [
        (hit.passage.title, hit.score) for hit in timed.hits
    ]


async def test_a_question_without_a_time_asks_for_no_dates(
    ann: Library, search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(ann, "old", datetime(2025, 2, 1, tzinfo=UTC))
    monkeypatch.setattr(ann.store.sections, "dates", None)
    for question in ("may quartz march", "quartz 3.11.2", "the second quartz of the day"):
        assert titles(await search.search(owner(ann), question)) == ["old"]


async def test_what_is_from_the_time_is_found_beyond_the_candidates(
    ann: Library, search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_module, "CANDIDATES", 4)
    for n in range(30):
        await add(ann, f"old {n}", datetime(2025, 2, 1, tzinfo=UTC), 0.7)
    await add(ann, "recent", LAST_WEEK, 0.6)
    found = await search.search(owner(ann), "quartz last week", limit=3, mode=Mode.SEMANTIC)
    assert titles(found)[0] == "recent" and len(found.hits) == 3


async def test_publication_and_the_date_in_a_title_count(ann: Library, search: Search) -> None:
    published = {"published_at": LAST_WEEK.isoformat()}
    await add(ann, "article", datetime(2026, 1, 1, tzinfo=UTC), 0.5, metadata=published)
    await add(ann, "2025-06-07 standup", LAST_WEEK, 0.6)
    await add(ann, "other", datetime(2026, 1, 1, tzinfo=UTC), 0.7)
    asked = "quartz last week"
    assert titles(await search.search(owner(ann), asked, mode=Mode.SEMANTIC))[0] == "article"
    asked = "quartz in June 2025"
    found = titles(await search.search(owner(ann), asked, mode=Mode.SEMANTIC))
    assert found[0] == "2025-06-07 standup"


async def test_an_event_is_dated_by_the_library(ann: Library, search: Search) -> None:
    await add(ann, "after", datetime(2026, 6, 1, tzinfo=UTC), 0.8)
    await add(ann, "Release 2.0", datetime(2026, 5, 12, tzinfo=UTC), 0.4)
    await add(ann, "before", datetime(2026, 2, 1, tzinfo=UTC), 0.7)
    for question, first in (
        ("what did we say of quartz before the release?", "before"),
        ("what did we say of quartz after the release?", "after"),
        ("what did we say of quartz before the wedding?", "after"),
    ):
        assert titles(await search.search(owner(ann), question, mode=Mode.SEMANTIC))[0] == first


async def test_filters_and_scopes_hold(ann: Library, search: Search) -> None:
    """Scores of a scope do not depend on what is beside it, nor do dates."""
    folder = await ann.folder("f")
    await add(ann, "old", datetime(2025, 2, 1, tzinfo=UTC), 0.7, folder=folder)
    await add(ann, "recent", LAST_WEEK, 0.6, folder=folder, category="stones")
    scoped = Caller(ann.id, ann.id, "reader", folders=frozenset({folder}))
    questions = ("quartz last week", "what did we say of quartz before the release?")

    async def seen() -> list[list[tuple[str, float]]]:
        return [
            [
                (hit.passage.title, hit.score)
                for hit in (await search.search(scoped, question, mode=mode)).hits
            ]
            for question in questions
            for mode in Mode
        ]

    alone = await seen()
    await add(ann, "Release 2.0", datetime(2026, 5, 12, tzinfo=UTC), 0.9)
    await add(ann, "secret", LAST_WEEK, 0.9, category="stones")
    assert await seen() == alone
    where = ItemFilter(category="stones")
    assert titles(await search.search(scoped, questions[0], where=where)) == ["recent"]
    hard = replace(where, since=NOW)
    assert titles(await search.search(scoped, questions[0], where=hard)) == []
