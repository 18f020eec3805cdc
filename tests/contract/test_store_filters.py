"""Searches that keep to a filter: what is found is what a plain reading of the items says, and never less than asked."""

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from commonplace.model import Item, ItemFilter, ItemRef, Kind, Relation, Scope
from commonplace.ports import Question
from commonplace.text.query_terms import parse_query
from tests.contract.library import DIMENSIONS, STAMP, Library, unit

pytestmark = pytest.mark.anyio

START = datetime(2026, 1, 1, tzinfo=UTC)
PUBLISHED, HOUR = datetime(2020, 5, 5, tzinfo=UTC), timedelta(hours=1)
METADATA = (
    {},
    {"author": "Åsa Berg", "language": "de-AT", "published_at": "2020-05-05T03:30:00+02:00"},
    {"author": "Bo", "language": "de", "published_at": "2020-05-05"},
    {"author": 7, "language": ["de"], "published_at": "soon"},
    {"author": "Cy and ÅSA", "language": "EN", "published_at": "2020-05-05T03:00:00Z"},
)
FILTERS: dict[str, tuple[ItemFilter, Callable[[Item], bool]]] = {
    "nothing asked": (ItemFilter(), lambda i: True),
    "types": (
        ItemFilter(entity_types=("task", "claim")),
        lambda i: i.entity_type in ("task", "claim"),
    ),
    "statuses": (ItemFilter(statuses=("wrong",)), lambda i: i.status == "wrong"),
    "not statuses": (ItemFilter(not_statuses=("wrong",)), lambda i: i.status != "wrong"),
    "not two statuses": (ItemFilter(not_statuses=("wrong", "")), lambda i: i.status == "doing"),
    "tag": (ItemFilter(tag="red"), lambda i: "red" in i.tags),
    "category": (ItemFilter(category="stones"), lambda i: i.category == "stones"),
    "notes": (ItemFilter(notes=True), lambda i: i.annotates is not None),
    "no notes": (ItemFilter(notes=False), lambda i: i.annotates is None),
    "language": (ItemFilter(language="python"), lambda i: "python" in i.languages),
    "assignee": (ItemFilter(assignee="bo"), lambda i: "bo" in i.assignees),
    "since": (
        ItemFilter(since=START + timedelta(days=20)),
        lambda i: i.created_at >= START + timedelta(days=20),
    ),
    "text language": (ItemFilter(text_language="de"), lambda i: i.text_language == "de"),
    "author": (ItemFilter(author="ÅSA"), lambda i: "åsa" in i.author.lower()),
    "published": (
        ItemFilter(published_after=PUBLISHED, published_before=PUBLISHED + timedelta(hours=3)),
        lambda i: bool(i.published_at and timedelta() <= i.published_at - PUBLISHED < 3 * HOUR),
    ),
    "several": (
        ItemFilter(entity_types=("task",), not_statuses=("wrong",), tag="red"),
        lambda i: i.entity_type == "task" and i.status != "wrong" and "red" in i.tags,
    ),
    "what nothing has": (ItemFilter(category="none such"), lambda i: False),
}


@pytest.mark.usefixtures("plan")
async def test_both_sides_of_a_search_keep_to_the_filter(ann: Library, bob: Library) -> None:
    dice, vectors = random.Random(3), np.random.default_rng(3)
    folder = await ann.folder("some")
    items: list[tuple[Item, bool]] = []
    for n in range(40):
        filed = dice.random() < 0.4
        items.append(
            (
                await ann.add(
                    f"quartz {n}\n\nquartz again",
                    title=f"t{n}",
                    folder=folder if filed else None,
                    vectors=[unit(vectors.normal(size=DIMENSIONS)) for _ in range(2)],
                    created_at=START + timedelta(days=n),
                    entity_type=dice.choice(["task", "claim", "document"]),
                    status=dice.choice(["", "wrong", "doing"]),
                    tags=("red", "reddish") if dice.random() < 0.5 else ("reddish",),
                    category=dice.choice(["stones", ""]),
                    annotates=dice.choice(["another", None]),
                    languages=("python",) if dice.random() < 0.3 else (),
                    assignees=("bo",) if dice.random() < 0.3 else ("bob",),
                    metadata=METADATA[n % len(METADATA)],
                ),
                filed,
            )
        )
    await bob.add(
        "quartz",
        title="bob's",
        vectors=[unit(vectors.normal(size=DIMENSIONS))],
        entity_type="task",
        tags=("red",),
    )
    gone, _ = items.pop(5)
    await ann.store.items.delete(ann.scope(), gone.id)
    for name, (where, fits) in FILTERS.items():
        for scope in (ann.scope(), ann.scope(folder), Scope(ann.id, frozenset())):
            expected = {
                item.title
                for item, filed in items
                if fits(item) and (scope.folders is None or (filed and folder in scope.folders))
            }
            sections = ann.store.sections
            found = await sections.keyword(scope, parse_query("quartz"), 100, where)
            near = await sections.nearest(
                scope, unit(vectors.normal(size=DIMENSIONS)), STAMP, 100, where
            )
            few = await sections.nearest(
                scope, unit(vectors.normal(size=DIMENSIONS)), STAMP, 3, where
            )
            for hits in (found, near):
                passages = await sections.passages(scope, [hit.section_id for hit in hits])
                assert {p.title for p in passages} == expected, name
                assert len(hits) == 2 * len(expected), name
            assert len(few) == min(3, 2 * len(expected)), name
            both = await sections.matches(
                scope, Question(parse_query("quartz"), near_any(), STAMP, 100), where
            )
            assert set(both.ids) == {hit.section_id for hit in near}, name
            assert (both.keyword > 0).all(), name
            assert not np.isnan(both.cosines).any(), name


async def test_a_filter_follows_what_metadata_says(ann: Library) -> None:
    item = await ann.add("quartz", metadata={"author": "Bo", "published_at": "2020-05-05"})
    where = ItemFilter(author="cy", published_after=PUBLISHED + timedelta(days=1))
    words = parse_query("quartz")
    assert await ann.store.sections.keyword(ann.scope(), words, 9, where) == []
    await ann.store.items.update(
        ann.scope(),
        item.id,
        {"metadata": {"author": "Cy", "published_at": "2021-01-01"}},
        expected_revision=None,
        sections=None,
        stamp=STAMP,
        jobs=(),
    )
    assert len(await ann.store.sections.keyword(ann.scope(), words, 9, where)) == 1


def near_any() -> np.ndarray:
    return unit(range(1, DIMENSIONS + 1))


async def test_a_filter_sees_changes_that_touch_no_text(ann: Library) -> None:
    project = await ann.add("about it", title="project", entity_type="project")
    item = await ann.add("quartz", title="stone")
    of_project = ItemFilter(project_id=project.id)
    find = ann.store.sections.keyword
    assert (
        len(await find(ann.scope(), parse_query("quartz"), 5, ItemFilter(not_statuses=("wrong",))))
        == 1
    )
    assert await find(ann.scope(), parse_query("quartz"), 5, of_project) == []
    await ann.store.items.update(
        ann.scope(),
        item.id,
        {"status": "wrong"},
        expected_revision=None,
        sections=None,
        stamp=STAMP,
        jobs=(),
    )
    await ann.store.relations.put(
        ann.scope(), [Relation(ann.id, item.id, Kind.BELONGS_TO, project.id)]
    )
    assert (
        await find(ann.scope(), parse_query("quartz"), 5, ItemFilter(not_statuses=("wrong",))) == []
    )
    assert len(await find(ann.scope(), parse_query("quartz"), 5, of_project)) == 1


async def test_openings_are_the_first_passages_within_scope_and_filter(
    ann: Library, bob: Library
) -> None:
    work = await ann.folder("work")
    item = await ann.add(
        "one\n\ntwo",
        title="filed",
        folder=work,
        tags=("red",),
        category="c",
        metadata={"a": 1},
        status="doing",
    )
    other, theirs = await ann.add("three", title="unfiled"), await bob.add("four")
    ids = [item.id, other.id, theirs.id]
    openings = ann.store.sections.first_passages
    assert {(p.title, p.text) for p in await openings(ann.scope(), ids)} == {
        ("filed", "one"),
        ("unfiled", "three"),
    }
    [passage] = await openings(ann.scope(work), ids)
    kept = await ann.store.items.get(ann.scope(), ItemRef(id=item.id))
    assert (
        passage.tags,
        passage.category,
        passage.metadata,
        passage.status,
        passage.created_at,
    ) == (("red",), "c", {"a": 1}, "doing", kept.created_at)
    assert await openings(ann.scope(), ids, ItemFilter(tag="blue")) == []
