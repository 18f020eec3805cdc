"""Relations, filters and captures, on every engine."""

import asyncio
from dataclasses import replace

import pytest

from commonplace.errors import Conflict, NotFound
from commonplace.model import (
    Capture,
    Content,
    Item,
    ItemChange,
    ItemFilter,
    ItemRef,
    Relation,
    new_id,
    now,
)
from tests.contract.library import STAMP, Library

pytestmark = pytest.mark.anyio


def joined(
    library: Library, a: str, b: str, kind: str = "RELATED_TO", **changes: object
) -> Relation:
    return replace(Relation(library.id, a, kind, b), **changes)  # type: ignore[arg-type]


async def test_a_relation_is_seen_from_both_ends(ann: Library) -> None:
    a, b = await ann.add("one"), await ann.add("two")
    assert await ann.store.relations.put(ann.scope(), [joined(ann, a.id, b.id)]) == 1
    assert await ann.store.relations.put(ann.scope(), [joined(ann, a.id, b.id)]) == 0
    for end in (a, b):
        (found,) = await ann.store.relations.of_items(ann.scope(), [end.id])
        assert (found.from_id, found.kind, found.to_id) == (a.id, "RELATED_TO", b.id)
    assert await ann.store.relations.of_items(ann.scope(), [a.id], ["DEPENDS_ON"]) == []


async def test_finding_links_anew_keeps_what_somebody_said(ann: Library) -> None:
    a, b, c = [await ann.add(text, entity_type="pattern") for text in ("one", "two", "three")]
    await ann.add("a document")
    found, said = joined(ann, a.id, b.id, explicit=False), joined(ann, b.id, c.id)
    relations = ann.store.relations
    await relations.put(ann.scope(), [found, said])
    other = joined(ann, a.id, c.id, explicit=False)
    assert await relations.replace_discovered(ann.scope(), [found, said], [other, said]) == 1
    kept = await relations.of_items(ann.scope(), [a.id, b.id, c.id])
    assert {(each.to_id, each.from_id) for each in kept} == {(c.id, a.id), (c.id, b.id)}
    assert await ann.store.jobs.enqueue_linking() == 3
    assert [each.from_id for each in await relations.of_items(ann.scope(), [c.id])] == [b.id]
    jobs = await ann.store.jobs.lease("w", "link", limit=9, seconds=60)
    assert {job.item_id for job in jobs} == {a.id, b.id, c.id}
    assert all(job.payload == {"folders": None, "kb_only": False} for job in jobs)


async def test_what_somebody_said_outlasts_what_was_found(ann: Library) -> None:
    a, b = await ann.add("one"), await ann.add("two")
    said, found = (
        joined(ann, a.id, b.id, weight=1.0),
        joined(ann, a.id, b.id, weight=0.8, explicit=False),
    )
    for order in ([said, found], [found, said]):
        await ann.store.relations.put(ann.scope(), order)
        (kept,) = await ann.store.relations.of_items(ann.scope(), [a.id])
        assert kept.explicit and kept.weight == 1.0


async def test_a_relation_needs_both_ends_in_scope(ann: Library) -> None:
    folder = await ann.folder("mine")
    inside, outside = await ann.add("one", folder=folder), await ann.add("two")
    with pytest.raises(NotFound):
        await ann.store.relations.put(ann.scope(folder), [joined(ann, inside.id, outside.id)])
    await ann.store.relations.put(ann.scope(), [joined(ann, inside.id, outside.id)])
    assert await ann.store.relations.of_items(ann.scope(folder), [inside.id]) == []
    with pytest.raises(NotFound):
        await ann.store.relations.delete(ann.scope(folder), inside.id, "RELATED_TO", outside.id)
    await ann.store.relations.delete(ann.scope(), inside.id, "RELATED_TO", outside.id)
    assert await ann.store.relations.of_items(ann.scope(), [inside.id]) == []


async def test_relations_and_captures_go_with_their_items(ann: Library) -> None:
    a, b = await ann.add("one"), await ann.add("two")
    await ann.store.relations.put(ann.scope(), [joined(ann, a.id, b.id)])
    await ann.store.items.delete(ann.scope(), b.id)
    assert await ann.store.relations.of_items(ann.scope(), [a.id]) == []


async def test_an_item_comes_with_its_relations_and_its_capture_or_not_at_all(ann: Library) -> None:
    a = await ann.add("one")
    item = replace(a, id=new_id(), public_id=new_id(), title="two")
    content = Content(new_id(), new_id(), "said so")
    capture = Capture(new_id(), ann.id, item.id, "two", "said so", owner="me", idempotency_key="k")

    async def add(target: str) -> None:
        await ann.store.items.add(
            item,
            content,
            [],
            scope=ann.scope(),
            folder_id=None,
            stamp=STAMP,
            jobs=[],
            relations=[joined(ann, item.id, target)],
            capture=capture,
            once=False,
        )

    with pytest.raises(NotFound):
        await add(new_id())
    assert await ann.store.captures.by_key(ann.id, "me", "k") is None
    await add(a.id)
    assert (await ann.store.captures.by_key(ann.id, "me", "k")) == capture
    assert (await ann.store.captures.of_item(ann.scope(), item.id)).hash == capture.hash
    assert len(await ann.store.relations.of_items(ann.scope(), [a.id])) == 1
    await ann.store.items.delete(ann.scope(), item.id)
    assert await ann.store.captures.by_key(ann.id, "me", "k") is None


async def test_every_part_of_a_filter_keeps_to_what_it_says(ann: Library) -> None:
    project = await ann.add("p", entity_type="project")
    task = await ann.add(
        "t",
        entity_type="task",
        status="doing",
        category="work",
        tags=("api", "a%b"),
        priority="high",
        languages=("python",),
        assignees=("ann",),
        visibility="published",
    )
    await ann.store.relations.put(
        ann.scope(),
        [
            joined(ann, task.id, project.id, "BELONGS_TO"),
            joined(ann, task.id, project.id, "PART_OF"),
        ],
    )
    for where in (
        ItemFilter(entity_types=("task",)),
        ItemFilter(not_entity_types=("project",)),
        ItemFilter(statuses=("doing",)),
        ItemFilter(not_statuses=("",)),
        ItemFilter(category="work"),
        ItemFilter(priority="high"),
        ItemFilter(tag="api"),
        ItemFilter(tag="a%b"),
        ItemFilter(language="python"),
        ItemFilter(assignee="ann"),
        ItemFilter(project_id=project.id),
        ItemFilter(epic_id=project.id),
        ItemFilter(visibility="published"),
        ItemFilter(text="a%"),
        ItemFilter(since=task.created_at),
        ItemFilter(entity_types=("task",), statuses=("doing",), tag="api"),
    ):
        found, total = await ann.store.items.list_page(ann.scope(), where, limit=10, offset=0)
        assert [item.id for item in found] == [task.id] and total == 1, where
    for where in (
        ItemFilter(tag="ap"),
        ItemFilter(tag="API"),
        ItemFilter(category="Work"),
        ItemFilter(since=now()),
        ItemFilter(until=project.created_at, entity_types=("task",)),
        ItemFilter(project_id=task.id),
    ):
        assert await ann.store.items.list_page(ann.scope(), where, limit=10, offset=0) == ([], 0), (
            where
        )


async def test_an_item_and_its_relations_change_together_or_not_at_all(ann: Library) -> None:
    a, b, c = await ann.add("one"), await ann.add("two"), await ann.add("three")
    old, new = joined(ann, a.id, b.id), joined(ann, a.id, c.id)
    await ann.store.relations.put(ann.scope(), [old])

    async def change(expected: int, relations: list[Relation]) -> None:
        await ann.store.items.update(
            ann.scope(),
            a.id,
            {"status": "doing"},
            expected_revision=expected,
            sections=None,
            stamp=STAMP,
            jobs=[],
            relations=relations,
            dropped=[old],
        )

    for failing in (change(2, [new]), change(1, [joined(ann, a.id, new_id())])):
        with pytest.raises((Conflict, NotFound)):
            await failing
        assert (await ann.store.items.get(ann.scope(), ItemRef(id=a.id))).status == ""
        assert [r.to_id for r in await ann.store.relations.of_items(ann.scope(), [a.id])] == [b.id]
    await change(1, [new])
    await change(2, [new])
    assert [r.to_id for r in await ann.store.relations.of_items(ann.scope(), [a.id])] == [c.id]


async def test_whether_an_epic_has_tasks_in_a_state_is_told_within_the_scope(
    ann: Library, bob: Library
) -> None:
    folder = await ann.folder("mine")
    epic = await ann.add("epic", entity_type="epic", folder=folder)
    tasks = [
        await ann.add("one", entity_type="task", status="doing", folder=folder),
        await ann.add("two", entity_type="task", status="done"),
        await ann.add("three", entity_type="decision", status="open"),
    ]
    await ann.add("four", entity_type="task", status="blocked")
    await ann.store.relations.put(
        ann.scope(), [joined(ann, task.id, epic.id, "PART_OF") for task in tasks]
    )

    async def has(
        *statuses: str, library: Library = ann, within: str | None = None, **how: bool
    ) -> bool:
        return await ann.store.relations.has_task(
            library.scope(within) if within else library.scope(), epic.id, statuses, **how
        )

    assert await has("done") and await has("blocked", "doing") and await has("doing", but=True)
    assert (
        not await has("open")
        and not await has("blocked")
        and not await has("doing", "done", but=True)
    )
    assert await has("doing", within=folder) and not await has("done", within=folder)
    assert not await has("doing", library=bob)


async def test_what_is_superseded_says_so_but_tasks_keep_their_state(ann: Library) -> None:
    old, new = await ann.add("one"), await ann.add("two")
    task = await ann.add("three")
    await ann.store.items.update(
        ann.scope(),
        task.id,
        {"entity_type": "task", "status": "doing"},
        expected_revision=None,
        sections=None,
        stamp=STAMP,
        jobs=(),
    )
    await ann.store.relations.put(
        ann.scope(), [joined(ann, new.id, end.id, "SUPERSEDES") for end in (old, task)]
    )
    statuses = {
        item.id: item.status
        for item in (await ann.store.items.list_page(ann.scope(), ItemFilter(), limit=9, offset=0))[
            0
        ]
    }
    assert statuses == {old.id: "superseded", new.id: "", task.id: "doing"}


async def status_of(library: Library, *items: Item) -> list[str]:
    found = await library.store.items.get_many(library.scope(), [item.id for item in items])
    return [found[item.id].status for item in items]


async def mark(library: Library, item: Item, status: str) -> None:
    await library.store.items.update(
        library.scope(),
        item.id,
        {"status": status},
        expected_revision=None,
        sections=None,
        stamp=STAMP,
        jobs=(),
    )


async def test_what_was_replaced_counts_again_when_nothing_that_holds_replaces_it(
    ann: Library,
) -> None:
    first, second, third = [await ann.add(name) for name in ("one", "two", "three")]
    await ann.store.relations.put(
        ann.scope(),
        [
            joined(ann, second.id, first.id, "SUPERSEDES"),
            joined(ann, third.id, second.id, "SUPERSEDES"),
        ],
    )
    assert await status_of(ann, first, second, third) == ["superseded", "superseded", ""]
    await mark(ann, second, "wrong")
    assert await status_of(ann, first, second, third) == [
        "superseded",
        "wrong",
        "",
    ]  # the third replaces what the second did
    await mark(ann, third, "stale")
    assert await status_of(ann, first, second, third) == ["", "wrong", "stale"]
    await mark(ann, third, "")
    assert await status_of(ann, first, second, third) == ["superseded", "wrong", ""]
    await ann.store.items.delete(ann.scope(), second.id)
    assert await status_of(ann, first, third) == ["superseded", ""]
    await ann.store.items.delete(ann.scope(), third.id)
    assert await status_of(ann, first) == [""]


async def test_who_looked_before_it_was_replaced_sees_that_it_has_changed(ann: Library) -> None:
    old, new = await ann.add("one"), await ann.add("two")
    await ann.store.relations.put(ann.scope(), [joined(ann, new.id, old.id, "SUPERSEDES")])
    with pytest.raises(Conflict):
        await ann.store.items.update(
            ann.scope(),
            old.id,
            {"status": "stale"},
            expected_revision=old.revision,
            sections=None,
            stamp=STAMP,
            jobs=(),
        )


async def test_a_stale_memory_is_stale_again_when_nothing_replaces_it(ann: Library) -> None:
    old, new = (
        await ann.add("one", status="stale", metadata={"correction": {"status": "stale"}}),
        await ann.add("two"),
    )
    await ann.store.relations.put(ann.scope(), [joined(ann, new.id, old.id, "SUPERSEDES")])
    assert await status_of(ann, old) == ["superseded"]
    await ann.store.items.delete(ann.scope(), new.id)
    assert await status_of(ann, old) == ["stale"]


async def test_a_task_has_one_epic_and_one_project_and_a_memory_as_many_as_it_likes(
    ann: Library,
) -> None:
    folder = await ann.folder("mine")
    task, memory = await ann.add("t", entity_type="task", folder=folder), await ann.add("m")
    hidden = [await ann.add(f"hidden {kind}", entity_type=kind) for kind in ("project", "epic")]
    new = [
        await ann.add(f"new {kind}", entity_type=kind, folder=folder)
        for kind in ("project", "epic")
    ]
    kinds = ("BELONGS_TO", "PART_OF")
    await ann.store.relations.put(
        ann.scope(),
        [joined(ann, task.id, end.id, kind) for end, kind in zip(hidden, kinds, strict=True)],
    )
    await ann.store.relations.put(
        ann.scope(folder),
        [joined(ann, task.id, end.id, kind) for end, kind in zip(new, kinds, strict=True)],
    )
    assert {r.to_id for r in await ann.store.relations.of_items(ann.scope(), [task.id], kinds)} == {
        end.id for end in new
    }
    await ann.store.relations.put(
        ann.scope(), [joined(ann, memory.id, end.id, "BELONGS_TO") for end in (hidden[0], new[0])]
    )
    assert len(await ann.store.relations.of_items(ann.scope(), [memory.id], ["BELONGS_TO"])) == 2


async def test_of_many_who_move_a_task_at_once_one_is_the_last(ann: Library) -> None:
    task = await ann.add("t", entity_type="task")
    epics = [await ann.add(f"epic {n}", entity_type="epic") for n in range(8)]
    await asyncio.gather(
        *(
            ann.store.relations.put(ann.scope(), [joined(ann, task.id, epic.id, "PART_OF")])
            for epic in epics
        )
    )
    assert len(await ann.store.relations.of_items(ann.scope(), [task.id], ["PART_OF"])) == 1


async def test_an_item_and_what_becomes_of_another_are_written_together_or_not_at_all(
    ann: Library,
) -> None:
    old = await ann.add("one")
    item, content = (
        replace(old, id=new_id(), public_id=new_id(), title="two"),
        Content(new_id(), new_id(), "said so"),
    )

    async def add(expected: int) -> None:
        await ann.store.items.add(
            item,
            content,
            [],
            scope=ann.scope(),
            folder_id=None,
            stamp=STAMP,
            jobs=[],
            once=False,
            relations=[joined(ann, item.id, old.id, "SUPERSEDES")],
            beside=ItemChange(old.id, {"status": "superseded", "category": "past"}, expected),
        )

    with pytest.raises(Conflict):
        await add(old.revision + 1)
    assert await ann.store.items.get_many(ann.scope(), [item.id]) == {}
    assert await status_of(ann, old) == [""]
    await add(old.revision)
    changed = await ann.store.items.get(ann.scope(), ItemRef(id=old.id))
    assert (changed.status, changed.category, changed.revision) == (
        "superseded",
        "past",
        old.revision + 1,
    )
