"""What SQLite does for one item does not grow with the library: counted in steps of its machine, which no other load changes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from commonplace.model import (
    Content,
    Entry,
    Folder,
    Item,
    ItemFilter,
    ItemRef,
    Job,
    Person,
    Scope,
    Section,
    Words,
    new_id,
    new_public_id,
    now,
)
from commonplace.settings import Settings
from commonplace.store import Store, make_store

pytestmark = pytest.mark.anyio


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One for each step of any connection: which thread reads is not for us to say."""
    counted: list[int] = []

    def count(connection: apsw.Connection) -> None:
        connection.set_progress_handler(lambda: bool(counted.append(1)), 1)

    monkeypatch.setattr(apsw, "connection_hooks", [count])
    return counted


@asynccontextmanager
async def library(
    items: int, folder: Path, later: int = 2
) -> AsyncIterator[tuple[Store, Scope, list[Entry]]]:
    """Of so many items, and some more that are not added yet."""
    store = make_store(Settings(data_dir=folder))
    await store.open()
    person = Person(new_id(), "a", "a@example.com", now())
    await store.people.create(person)
    whole, folders = (
        Scope(person.id),
        [Folder(new_id(), person.id, f"folder {n}", now()) for n in range(20)],
    )
    for one in folders:
        await store.folders.create(Scope(one.library_id), one)
    entries = [_entry(person, n, folders[n % 20].id) for n in range(items + later)]
    await store.items.import_entries(entries[:items], scope=whole, stamp="none")
    yield store, whole, entries
    await store.close()


async def steps_for_one(items: int, folder: Path, steps: list[int]) -> dict[str, int]:
    """Of reading, adding and deleting one item in a library of so many."""
    async with library(items, folder) as (store, whole, entries):
        taken = {}
        for name, does in {
            "get": lambda n: store.items.get(whole, ItemRef(id=entries[n].item.id)),
            "read": lambda n: store.items.get_with_sections(whole, ItemRef(id=entries[n].item.id)),
            "add": lambda n: store.items.import_entries(
                [entries[items + n]], scope=whole, stamp="none"
            ),
            "delete": lambda n: store.items.delete(whole, entries[n].item.id),
        }.items():
            await does(0)
            steps.clear()
            await does(1)
            taken[name] = len(steps)
    return taken


def _entry(person: Person, n: int, folder_id: str) -> Entry:
    item = Item(
        new_id(),
        person.id,
        new_public_id(),
        new_id(),
        "document",
        "text",
        f"note {n}",
        folders=(folder_id,),
    )
    return Entry(
        item,
        Content(item.content_id, f"{person.id}:{item.id}", f"words {n}"),
        (Section(0, f"words {n}"),),
    )


async def test_one_item_takes_as_many_steps_in_a_large_library(
    tmp_path: Path, steps: list[int]
) -> None:
    few = await steps_for_one(40, tmp_path / "few", steps)
    many = await steps_for_one(1_200, tmp_path / "many", steps)
    for name in few:
        # A thread that has no connection yet makes one, in about a thousand; each filing or item read is eight and more.
        assert 0 < many[name] < few[name] + 2_000, (name, few, many)


async def test_a_search_follows_many_new_items_one_by_one_and_not_each_with_each(
    tmp_path: Path, steps: list[int]
) -> None:
    async with library(20, tmp_path, later=400) as (store, whole, entries):
        for _ in range(2):  # one of the threads that read has a connection already
            assert len(await store.sections.keyword(whole, Words((("words",),)), 500)) == 20
        await store.items.import_entries(entries[20:], scope=whole, stamp="none")
        steps.clear()
        assert len(await store.sections.keyword(whole, Words((("words",),)), 500)) == 420
        assert len(steps) < 100 * 400


async def test_items_are_counted_again_only_when_something_was_written(
    tmp_path: Path, steps: list[int]
) -> None:
    async with library(1_200, tmp_path) as (store, whole, entries):
        taken = []
        for _ in range(6):  # more than there are threads that read, each of which counts once
            steps.clear()
            assert (await store.items.list_page(whole, ItemFilter(), limit=1, offset=0))[1] == 1_200
            taken.append(len(steps))
        assert min(taken) < 1_200
        await store.items.import_entries(entries[1_200:], scope=whole, stamp="none")
        for _ in range(6):
            assert (await store.items.list_page(whole, ItemFilter(), limit=1, offset=0))[1] == 1_202


async def test_a_worker_finds_its_next_jobs_without_looking_at_all_that_wait(
    tmp_path: Path, steps: list[int]
) -> None:
    async with library(40, tmp_path) as (store, whole, entries):
        item_id = entries[0].item.id
        await store.jobs.enqueue(
            [Job(new_id(), whole.library_id, item_id, "transform") for _ in range(2_000)]
        )
        for kind, found in (("link", 0), ("transform", 5)):
            for _ in range(4):  # the last of them by threads that have a connection
                steps.clear()
                assert len(await store.jobs.lease("w", kind, limit=5, seconds=60)) == found
            assert len(steps) < 2_000, kind
        steps.clear()
        item = replace(entries[1].item, content_id=entries[1].content.id)
        await store.contents.set_progress(item, 0.5)
        assert len(steps) < 2_000


async def test_a_statement_is_not_compiled_again_for_other_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which an engine with STAT4 does unless it is told not to, at twice the cost of reading an item."""
    compiled: list[str] = []

    def watch(connection: apsw.Connection) -> None:
        connection.authorizer = lambda *what: (
            compiled.append(str(what)) or apsw.SQLITE_OK
        )  # asked whenever one is compiled

    monkeypatch.setattr(apsw, "connection_hooks", [watch])
    async with library(20, tmp_path) as (store, whole, entries):
        await store.items.get_with_sections(whole, ItemRef(id=entries[0].item.id))
        assert compiled
        compiled.clear()
        for entry in entries[1:20]:
            await store.items.get_with_sections(whole, ItemRef(id=entry.item.id))
    assert compiled == []
