"""Putting many items at once: new, the same again, brought up to date; all of them or none."""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from commonplace.database.postgres import ANALYZE_FROM
from commonplace.errors import NotFound
from commonplace.model import (
    Annotation,
    Content,
    Entry,
    Item,
    ItemRef,
    Job,
    Outcome,
    digest,
    new_id,
    new_public_id,
)
from commonplace.settings import Settings
from commonplace.store import make_store
from tests.contract.library import STAMP, Library, cut
from tests.contract.test_store_disks import publish

pytestmark = pytest.mark.anyio


def entry(
    library: Library, text: str, *, title: str = "Untitled", once: bool = True, **fields: Any
) -> Entry:
    item = Item(
        **{
            "id": new_id(),
            "library_id": library.id,
            "public_id": new_public_id(),
            "content_id": "",
            "entity_type": "document",
            "kind": "text",
            "title": title,
        }
        | fields
    )
    content = Content(
        new_id(), f"text:{library.id}:{hashlib.sha256(text.encode()).hexdigest()}", text
    )
    return Entry(
        item, content, tuple(cut(text)), (Job(new_id(), library.id, item.id, "embed"),), once
    )


async def put(library: Library, *entries: Entry) -> Sequence[Outcome]:
    return await library.store.items.import_entries(entries, scope=library.scope(), stamp=STAMP)


async def titles(library: Library, query: str, *folders: str) -> list[str]:
    return sorted(await library.found(query, library.scope(*folders)))


async def test_many_are_found_by_words_and_have_jobs(ann: Library) -> None:
    folder = await ann.folder("work")
    entries = [
        entry(ann, f"zebra number {n}", title=f"t{n}", folders=(folder,) if n else ())
        for n in range(3)
    ]
    assert await put(ann, *entries) == [Outcome.ADDED] * 3
    assert await titles(ann, "zebra") == ["t0", "t1", "t2"]
    assert await titles(ann, "zebra", folder) == ["t1", "t2"]
    assert (await ann.store.jobs.counts())["queued"] == 3


async def test_the_same_again_is_there_already_unless_it_is_its_own(ann: Library) -> None:
    folder = await ann.folder("work")
    await put(ann, entry(ann, "zebra", title="t"))
    assert await put(ann, entry(ann, "zebra", title="t")) == [Outcome.UNCHANGED]
    assert await put(ann, entry(ann, "zebra", title="t", folders=(folder,))) == [Outcome.CHANGED]
    assert await titles(ann, "zebra", folder) == ["t"]
    assert await put(
        ann, entry(ann, "zebra", title="t", once=False), entry(ann, "zebra", title="t", once=False)
    ) == [Outcome.ADDED, Outcome.ADDED]
    assert await titles(ann, "zebra") == ["t", "t", "t"]


async def test_what_is_there_already_under_another_key_is_not_kept_twice(ann: Library) -> None:
    page = await ann.add(
        "zebras graze", title="t", key="url:https://example.org/zebras", kind="url"
    )
    again = entry(ann, "zebras graze", title="t")
    assert await put(ann, again) == [Outcome.UNCHANGED]
    await ann.store.items.delete(ann.scope(), page.id)
    assert await ann.store.contents.existing_keys(ann.id, [again.content.key]) == set(), (
        "the text stays in the database for nobody"
    )


async def test_a_known_id_is_brought_up_to_date(ann: Library) -> None:
    first = entry(ann, "zebras graze", title="Before", tags=("a",))
    await put(ann, first)
    assert await put(ann, replace(first, jobs=())) == [Outcome.UNCHANGED]
    again = entry(ann, "walruses swim", title="After", id=first.item.id, tags=("b",))
    assert await put(ann, again) == [Outcome.CHANGED]
    item = await ann.store.items.get(ann.scope(), ItemRef(id=first.item.id))
    assert (item.title, item.tags, item.revision, item.public_id) == (
        "After",
        ("b",),
        2,
        first.item.public_id,
    )
    assert await ann.store.items.text(item) == "walruses swim"
    assert (await titles(ann, "zebras"), await titles(ann, "walruses")) == ([], ["After"])


async def test_what_was_made_of_a_text_outlives_the_same_import_and_not_another_text(
    ann: Library,
) -> None:
    first = entry(ann, "zebras graze", title="t", metadata={"path": "a.md"})
    await put(ann, first)
    item = await ann.store.items.get(ann.scope(), ItemRef(id=first.item.id))
    made = {
        "summary": "Zebras.",
        "key_points": ("They graze.",),
        "category": "nature",
        "tags": ("zebra",),
    }
    await ann.store.items.set_derived([Annotation(item, made | {"auto_tags": ("zebra",)})])
    assert await put(ann, replace(first, jobs=())) == [Outcome.UNCHANGED]
    moved = replace(first, item=replace(first.item, metadata={"path": "b.md"}), jobs=())
    assert await put(ann, moved) == [Outcome.CHANGED]
    item = await ann.store.items.get(ann.scope(), ItemRef(id=first.item.id))
    assert (item.summary, item.tags, item.metadata) == (
        "Zebras.",
        ("zebra",),
        {"path": "b.md"},
    )
    tagged = replace(moved, item=replace(moved.item, tags=("own",)))
    assert await put(ann, tagged) == [Outcome.CHANGED]
    item = await ann.store.items.get(ann.scope(), ItemRef(id=first.item.id))
    assert (item.summary, item.tags, item.metadata) == ("Zebras.", ("own",), {"path": "b.md"})
    assert await put(ann, tagged) == [Outcome.UNCHANGED]
    assert await put(
        ann, entry(ann, "walruses swim", title="t", id=first.item.id, metadata={"path": "b.md"})
    ) == [Outcome.CHANGED]
    item = await ann.store.items.get(ann.scope(), ItemRef(id=first.item.id))
    assert (item.summary, item.key_points, item.category, item.tags) == ("", (), "", ())


async def test_a_public_id_leads_to_one_disk_of_the_server(ann: Library, bob: Library) -> None:
    first, early = entry(ann, "zebra"), entry(bob, "walrus")
    twin = entry(bob, "zebra", public_id=first.item.public_id)
    await put(ann, first)
    assert await put(bob, twin) == [Outcome.ADDED]
    await publish(ann, first.item)
    disk = await ann.store.disks.find(ItemRef(public_id=first.item.public_id), None)
    assert disk.item_id == first.item.id
    late = entry(bob, "mica", public_id=first.item.public_id)
    await put(bob, early, late)
    found = await bob.store.items.get(bob.scope(), ItemRef(id=late.item.id))
    assert found.public_id != first.item.public_id, "a disk has it"
    await publish(bob, twin.item)
    known = await bob.store.items.get(bob.scope(), ItemRef(public_id=first.item.public_id))
    assert known.id == twin.item.id, "the id that it had still leads to it in its library"
    assert known.public_id != first.item.public_id
    disk = await ann.store.disks.find(ItemRef(public_id=known.public_id), None)
    assert (disk.library_id, disk.item_id) == (bob.id, twin.item.id)


async def test_all_or_none(ann: Library) -> None:
    with pytest.raises(NotFound):
        await put(ann, entry(ann, "zebra"), entry(ann, "walrus", folders=("no such folder",)))
    assert await titles(ann, "zebra") == []
    assert await ann.store.jobs.counts() == {}


async def test_a_lot_knows_what_it_brought_itself(ann: Library) -> None:
    new = [entry(ann, f"zebra number {n}", title=f"t{n}") for n in range(5)]
    same, grown = (
        entry(ann, "zebra number 0", title="t0"),
        entry(ann, "walrus", title="t1", id=new[1].item.id),
    )
    renamed, rival = (
        entry(ann, "zebra number 2", title="t5"),
        entry(ann, "zebra", title="t6", public_id=new[3].item.public_id),
    )
    assert await put(ann, *new, same, grown, renamed, rival) == [Outcome.ADDED] * 5 + [
        Outcome.UNCHANGED,
        Outcome.CHANGED,
        Outcome.ADDED,
        Outcome.ADDED,
    ]
    assert await titles(ann, "zebra") == ["t0", "t2", "t3", "t4", "t5", "t6"]
    assert await titles(ann, "walrus") == ["t1"]
    one, other = [
        await ann.store.items.get(ann.scope(), ItemRef(id=each.item.id))
        for each in (new[2], renamed)
    ]
    assert one.content_id == other.content_id


async def test_postgres_has_counted_what_an_import_brought(
    data_dir: Path, postgres_url: str, postgres_schema: str
) -> None:
    """Else it plans for empty tables until it does so by itself, a minute later."""
    store = make_store(
        Settings(data_dir=data_dir, database_url=postgres_url, database_schema=postgres_schema)
    )
    await store.open()
    ann = await Library.create(store)
    folder = await ann.folder("work")
    with psycopg.connect(postgres_url) as vacuuming:
        vacuuming.execute(f"LOCK TABLE {postgres_schema}.sequences IN SHARE UPDATE EXCLUSIVE MODE")
        async with asyncio.timeout(30):  # nobody waits for whoever has such a lock
            for start in range(0, ANALYZE_FROM, 100):
                await put(
                    ann,
                    *(
                        entry(ann, f"zebra number {n}", folders=(folder,))
                        for n in range(start, start + 100)
                    ),
                )
    await store.close()
    with psycopg.connect(postgres_url) as connection:
        counted = dict(
            connection.execute(
                "SELECT relname, reltuples FROM pg_class WHERE relnamespace = %s::regnamespace",
                [postgres_schema],
            ).fetchall()
        )
    assert {
        counted[table]
        for table in ("items", "contents", "sections", "section_words", "folder_items")
    } == {ANALYZE_FROM}


async def test_what_says_the_same_is_one_only_by_path_and_date(ann: Library) -> None:
    def dated(day: int, path: str, *, is_dated: bool = True) -> Entry:
        made = entry(
            ann,
            "Nothing new.",
            title="Standup",
            created_at=datetime(2024, 3, day, tzinfo=UTC),
            metadata={"path": path},
        )
        return replace(
            made,
            content=replace(made.content, hash=digest("Nothing new.")),
            once=True,
            dated=is_dated,
        )

    for once_more in (Outcome.ADDED, Outcome.UNCHANGED):
        for each in (dated(1, "a.md"), dated(2, "a.md"), dated(1, "b.md")):
            assert await put(ann, each) == [once_more]
    assert await put(ann, dated(9, "a.md", is_dated=False)) == [Outcome.UNCHANGED]
