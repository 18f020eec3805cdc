"""The event log: written with the change, numbered in the order of commits, seen by scope."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from commonplace.database.transaction import Tx
from commonplace.model import EventType, ItemRef, Job, LibraryEvent, Scope, new_id, now
from commonplace.settings import Settings
from commonplace.store import Store, make_store
from commonplace.store.events import log
from tests.contract.library import STAMP, Library

pytestmark = pytest.mark.anyio


async def events(library: Library, scope: Scope | None = None) -> list[LibraryEvent]:
    page = await library.store.events.list_after(scope or library.scope(), 0, 1000)
    return page.events


async def told(library: Library, scope: Scope | None = None) -> list[tuple[str, str]]:
    return [(each.type.value, each.item_id) for each in await events(library, scope)]


async def test_each_change_is_recorded_once(ann: Library, bob: Library) -> None:
    item = await ann.add("one")
    queued = await ann.add("two", ingest_status="queued")
    task = await ann.add("three", entity_type="task")
    for each in (item, task):
        await ann.store.items.update(
            ann.scope(),
            each.id,
            {"summary": "changed"},
            expected_revision=1,
            sections=None,
            stamp=STAMP,
            jobs=(),
        )
    await ann.store.items.delete(ann.scope(), item.id)
    assert await told(ann) == [
        ("item.added", item.id),
        ("item.ready", item.id),
        ("item.added", queued.id),
        ("item.added", task.id),
        ("item.ready", task.id),
        ("item.changed", item.id),
        ("task.changed", task.id),
        ("item.deleted", item.id),
    ]
    assert [each.seq for each in await events(ann)] == list(range(1, 9))
    assert await told(bob) == []


async def test_a_write_that_fails_leaves_no_event(ann: Library) -> None:
    def fail(tx: Tx) -> None:
        log.record(tx, EventType.CHANGED, ann.id, ["x"], None)
        tx.run_deferred()
        raise RuntimeError

    await ann.add("one")
    with pytest.raises(RuntimeError):
        await ann.store._db.write(fail)
    await ann.add("two")
    assert [each.seq for each in await events(ann)] == [1, 2, 3, 4]


async def test_a_source_that_cannot_be_read_is_an_event(ann: Library) -> None:
    item = await ann.add("one", ingest_status="queued")
    job = Job(new_id(), ann.id, item.id, "ingest")
    await ann.store.jobs.enqueue([job])
    await ann.store.jobs.lease("worker", "ingest", limit=1, seconds=60)
    await ann.store.jobs.fail("worker", job, "gone", now())
    assert await told(ann) == [("item.added", item.id)]
    await ann.store.jobs.lease("worker", "ingest", limit=1, seconds=60)
    await ann.store.jobs.fail("worker", job, "gone", None)
    assert await told(ann) == [("item.added", item.id), ("item.failed", item.id)]


async def test_scopes_see_what_was_theirs(ann: Library) -> None:
    red, blue = await ann.folder("red"), await ann.folder("blue")
    item = await ann.add("one", folder=red)
    other = await ann.add("two", folder=blue)
    store = ann.store.items
    await store.file(ann.scope(), ItemRef(id=item.id), [blue], token_id=None)
    await store.unfile(ann.scope(), ItemRef(id=item.id), red)
    seen = [("item.added", item.id), ("item.ready", item.id), ("item.changed", item.id)]
    assert await told(ann, ann.scope(red)) == [*seen, ("item.deleted", item.id)]
    await store.delete(ann.scope(), item.id)
    await store.delete(ann.scope(), other.id)
    assert await told(ann, ann.scope(red)) == [*seen, ("item.deleted", item.id)], (
        "what happens after an item has left is not told"
    )
    assert {each for each in await told(ann, ann.scope(blue)) if each[0] == "item.deleted"} == {
        ("item.deleted", item.id),
        ("item.deleted", other.id),
    }
    assert await told(ann, ann.scope("no such folder")) == []
    assert [each[0] for each in await told(ann)].count("item.deleted") == 2


async def test_who_deletes_from_a_folder_is_told_of_a_deletion(ann: Library) -> None:
    red, blue = await ann.folder("red"), await ann.folder("blue")
    item = await ann.add("one", folder=red)
    await ann.store.items.file(ann.scope(), ItemRef(id=item.id), [blue], token_id=None)
    await ann.store.items.delete(ann.scope(red), item.id)
    assert (await told(ann, ann.scope(red)))[-1] == ("item.deleted", item.id)
    assert (await told(ann))[-1] == ("item.changed", item.id)
    assert ("item.deleted", item.id) not in await told(ann, ann.scope(blue))


async def test_an_item_taken_out_of_the_kb_is_gone_for_who_sees_only_that(ann: Library) -> None:
    item, hidden = await ann.add("one"), await ann.add("two", in_kb=False)
    await ann.store.items.update(
        ann.scope(),
        item.id,
        {"in_kb": False},
        expected_revision=None,
        sections=None,
        stamp=STAMP,
        jobs=(),
    )
    await ann.store.items.delete(ann.scope(), hidden.id)
    told_to_kb = await told(ann, ann.scope(kb_only=True))
    assert told_to_kb[-1] == ("item.deleted", item.id)
    assert hidden.id not in dict(told_to_kb).values()
    assert ("item.deleted", item.id) not in await told(ann)


async def test_only_callers_of_the_whole_library_learn_who_else_acted(ann: Library) -> None:
    red = await ann.folder("red")
    await ann.add("one", folder=red, scope=Scope(ann.id, actor="ann's token"))
    await ann.add("two", folder=red, scope=Scope(ann.id, actor="red token"))
    mine = Scope(ann.id, frozenset([red]), actor="red token")
    assert {each.actor for each in await events(ann)} == {"ann's token", "red token"}
    assert [each.actor for each in await events(ann, mine)] == [None] * 2 + ["red token"] * 2


async def test_pages_continue_where_they_ended(ann: Library) -> None:
    items = [await ann.add(f"text {n}") for n in range(5)]
    after, seen = 0, []
    while (page := await ann.store.events.list_after(ann.scope(), after, 3)).events:
        seen += [each.item_id for each in page.events if each.type is EventType.ADDED]
        after = page.after
    assert seen == [item.id for item in items]
    late = await ann.store.events.list_after(ann.scope(), 10_000, 100)
    assert len(late.events) == 10, "a number of the future comes from before a restore"
    assert (await ann.store.events.list_after(ann.scope(), None, 100)).events == []


async def test_old_events_are_pruned(ann: Library) -> None:
    await ann.add("one")
    await ann.store.events.prune(now() - timedelta(days=7))
    assert len(await events(ann)) == 2
    await ann.store.events.prune(now())
    assert await events(ann) == []
    await ann.add("two")
    assert [each.seq for each in await events(ann)] == [3, 4]


async def test_a_slow_write_does_not_put_events_behind_a_reader(
    data_dir: object, postgres_url: str, postgres_schema: str
) -> None:
    """A writer that began first and commits last, with quick ones and a reader meanwhile."""
    store = make_store(Settings(database_url=postgres_url, database_schema=postgres_schema))
    await store.open()
    ann = await Library.create(store)
    noted, go_on = threading.Event(), threading.Event()

    def slow(tx: Tx) -> None:
        tx.run("UPDATE libraries SET name = 'slow' WHERE id = :id", id=ann.id)
        log.record(tx, EventType.CHANGED, ann.id, ["slow"], None)
        noted.set()
        assert go_on.wait(30)

    writing = asyncio.create_task(store._db.write(slow))
    await asyncio.to_thread(noted.wait, 30)
    quick = await ann.add("quick")
    page = await store.events.list_after(ann.scope(), 0, 100)
    assert [each.item_id for each in page.events] == [quick.id] * 2
    go_on.set()
    await writing
    rest = await store.events.list_after(ann.scope(), page.after, 100)
    assert [each.item_id for each in rest.events] == ["slow"]
    await store.close()


async def test_a_reader_misses_nothing_that_many_writers_write(
    ann: Library, open_store: Callable[[], Awaitable[Store]]
) -> None:
    """Two processes with eight writers each, and a reader that never looks back."""
    stores = [ann.store, await open_store()]
    running = True

    async def read() -> list[str]:
        after, seen = 0, []
        while True:
            last = not running
            page = await stores[1].events.list_after(ann.scope(), after, 100)
            seen += [each.item_id for each in page.events if each.type is EventType.ADDED]
            after = page.after
            if last and not page.events:
                return seen

    async def write(store: Store, name: str) -> list[str]:
        library = Library(store, ann.id)
        return [(await library.add(f"{name} {n}", title=f"{name} {n}")).id for n in range(6)]

    reading = asyncio.create_task(read())
    written = await asyncio.gather(*(write(stores[n % 2], f"writer {n}") for n in range(16)))
    running = False
    seen = await reading
    assert len(seen) == len(set(seen))
    assert set(seen) == {item_id for ids in written for item_id in ids}


async def test_each_change_of_open_jobs_is_a_new_mark(ann: Library) -> None:
    item = await ann.add("one")
    events, marks = ann.store.events, list[str]()

    async def look() -> None:
        marks.append((await events.latest([ann.id]))[ann.id][1])

    await look()
    await ann.store.jobs.enqueue([Job(new_id(), item.library_id, item.id, "link")])
    await look()
    [job] = await ann.store.jobs.lease("worker", "link", limit=1, seconds=60)
    await look()
    await ann.store.jobs.finish("worker", [job])
    await look()
    assert len({*marks}) == 3 and marks[0] == marks[-1]
