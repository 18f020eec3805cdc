"""The trash: what was deleted is nowhere else, and comes back as it was."""

import re
from dataclasses import replace
from datetime import datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from commonplace.database.sqlite import SqliteTx
from commonplace.errors import Conflict, NotFound
from commonplace.model import (
    EVERYTHING,
    Candidate,
    CandidateState,
    Capture,
    Content,
    Item,
    ItemRef,
    Job,
    Kind,
    Proposal,
    Relation,
    Scope,
    Trashed,
    Upload,
    new_id,
    new_public_id,
    now,
)
from commonplace.store.trash import kept_rows
from tests.contract.library import STAMP, Library, cut, unit

pytestmark = pytest.mark.anyio
UP = unit([1, *[0] * 15])
LONG_AGO = datetime.fromisoformat("2000-01-01T00:00:00+00:00")
# What changes for good: logs, and numbers that are never used twice.
LOGS = {"changes", "event_log", "event_counters", "sections", "forgotten"}
PROPOSAL = Proposal("claim", "Birds fly", "Birds fly south.", 0.9, "why", ())


async def trashed(library: Library, scope: Scope | None = None) -> list[Trashed]:
    found, total = await library.store.trash.list_page(
        scope or library.scope(), LONG_AGO, limit=50, offset=0
    )
    assert total == len(found)
    return found


async def titles(library: Library, scope: Scope | None = None) -> list[str]:
    return [entry.title for entry in await trashed(library, scope)]


async def restore(library: Library, item: Item, scope: Scope | None = None) -> Item:
    return await library.store.items.restore(
        scope or library.scope(), ItemRef(id=item.id), LONG_AGO
    )


async def everything(library: Library, but: frozenset[str] = frozenset()) -> dict[str, Any]:
    """All rows of all tables about items."""
    tables = [*kept_rows.TABLES, "contents", "folders", "trash", "trash_rows", "uploads"]
    found = {
        table: await library.store._db.read(
            lambda tx, table=table: tx.all(f"SELECT * FROM {table}")
        )
        for table in tables
        if table not in but
    }
    found["passages"] = await library.store._db.read(
        lambda tx: tx.all("SELECT item_id, position, title, text, key_points FROM sections")
    )
    return {
        table: sorted(repr(sorted(dict(row).items())) for row in rows)
        for table, rows in found.items()
    }


async def relate(library: Library, a: Item, kind: str, b: Item) -> None:
    await library.store.relations.put(library.scope(), [Relation(library.id, a.id, kind, b.id)])


async def test_a_deleted_item_is_nowhere_and_comes_back_with_all_its_rows(ann: Library) -> None:
    store, scope = ann.store, ann.scope()
    work, home = await ann.folder("work"), await ann.folder("home")
    item = Item(
        new_id(), ann.id, new_public_id(), new_id(), "claim", "text", "T", tags=("a",), word_count=2
    )
    capture = Capture(new_id(), ann.id, item.id, "T", "quartz\n\nmica", "me", "key")
    item, _ = await store.items.add(
        item,
        Content(item.content_id, f"{ann.id}:1", "quartz\n\nmica"),
        cut("quartz\n\nmica", [UP, UP]),
        scope=scope,
        folder_id=work,
        stamp=STAMP,
        jobs=[Job(new_id(), ann.id, item.id, "embed"), Job(new_id(), ann.id, item.id, "link")],
        capture=capture,
    )
    await store.items.file(scope, ItemRef(id=item.id), [home], token_id=None)
    item = await store.items.replace_content(
        scope,
        item.id,
        Content(new_id(), f"{ann.id}:1", "quartz\n\nopal"),
        {"word_count": 2},
        sections=cut("quartz\n\nopal", [UP, UP]),
        stamp=STAMP,
        jobs=[],
    )
    note = await ann.add("a note", title="N", annotates=item.id, folder=work)
    other, source = await ann.add("other", title="O"), await ann.add("source", title="S")
    await relate(ann, item, Kind.RELATED_TO, other)
    await relate(ann, note, "ANNOTATES", item)
    candidate = Candidate(new_id(), ann.id, source.id, "me", PROPOSAL)
    await store.candidates.put([candidate])
    await store.candidates.decide(ann.scope(), None, candidate.id, CandidateState.ACCEPTED, item.id)
    assert await store.idempotency.claim(ann.id, "me", "k", "digest") is None
    await store.idempotency.finish(ann.id, "me", "k", 201, "{}", item.id)
    upload = Upload(new_id(), ann.id, "me", "f", "text/plain", 1, now(), now() + timedelta(days=1))
    await store.uploads.create(upload)
    await store.uploads.finish(upload, item.id)
    before = await everything(ann)
    near = await store.sections.nearest(scope, UP, STAMP, 10)
    assert len(near) == 2

    await store.items.delete(replace(scope, actor=ann.id), item.id)
    for ref in (item.id, item.public_id, item.entity_id):
        with pytest.raises(NotFound):
            await store.items.get(scope, ItemRef.parse(ref))
    assert await ann.found("quartz") == await ann.found("note") == []
    assert await store.sections.nearest(scope, UP, STAMP, 10) == []
    assert [
        i.title for i in (await store.items.list_page(scope, EVERYTHING, limit=9, offset=0))[0]
    ] == ["S", "O"]
    assert await store.relations.of_items(scope, [item.id, other.id]) == []
    assert await store.captures.by_key(ann.id, "me", "key") is None
    assert [f.item_count for f in await store.folders.list_folders(scope)] == [0, 0]
    assert (await store.figures.totals(scope)).items == 2
    assert await store.uploads.list_disposable(now(), keep=True) == []  # it may come back
    [entry] = await trashed(ann)
    assert (entry.id, entry.public_id, entry.entity_type) == (item.id, item.public_id, "claim")
    assert (entry.title, entry.deleted_by) == ("T", "ann")

    assert (await restore(ann, item)) == item
    assert await everything(ann) == before
    assert await trashed(ann) == []
    assert await ann.found("quartz") == ["T"]
    assert len(await store.sections.nearest(scope, UP, STAMP, 10)) == 2
    with pytest.raises(NotFound):
        await restore(ann, item)


def test_every_table_that_is_deleted_with_an_item_is_kept_or_known() -> None:
    schema = files("commonplace.database").joinpath("schema", "sqlite.sql").read_text()
    dependent = {
        created.group(1)
        for created in re.finditer(r"CREATE TABLE (\w+) \((.*?)\n\)", schema, re.DOTALL)
        if "REFERENCES items" in created.group(2)
    }
    # Views of published disks end; sections are written with their index.
    assert dependent == {*kept_rows.TABLES} - {"items"} | {"published", "sections", "trash_folders"}


async def test_what_nobody_needs_any_more_goes_with_the_entry(ann: Library) -> None:
    kept, gone = await ann.add("kept", title="kept"), await ann.add("gone", title="gone")
    note = await ann.add("note", title="note", annotates=gone.id)
    for item in (kept, gone):
        await ann.store.items.delete(ann.scope(), item.id)
    await ann.store.trash.delete(ann.scope(), ItemRef.parse(gone.entity_id), LONG_AGO)
    for item in (gone, note):
        with pytest.raises(NotFound):
            await ann.store.items.text(item)
    assert await ann.store.items.text(kept) == "kept"
    with pytest.raises(NotFound):
        await ann.store.trash.delete(ann.scope(), ItemRef(id=gone.id), LONG_AGO)
    with pytest.raises(NotFound):
        await restore(ann, note)
    assert await ann.store.trash.expire(now() - timedelta(hours=1)) == 0
    assert await ann.store.trash.expire(now()) == 1
    assert await everything(ann, frozenset({"folders", "uploads"})) == {
        table: [] for table in [*kept_rows.TABLES, "contents", "trash", "trash_rows", "passages"]
    }


async def test_what_has_expired_is_not_there_even_before_it_is_deleted(ann: Library) -> None:
    item = await ann.add("one")
    await ann.store.items.delete(ann.scope(), item.id)
    later = now() + timedelta(seconds=1)
    assert await ann.store.trash.list_page(ann.scope(), later, limit=9, offset=0) == ([], 0)
    with pytest.raises(NotFound):
        await ann.store.items.restore(ann.scope(), ItemRef(id=item.id), later)


async def test_a_scope_sees_and_restores_what_was_in_it(ann: Library, bob: Library) -> None:
    red, blue = await ann.folder("red"), await ann.folder("blue")
    await bob.store.items.delete(bob.scope(), (await bob.add("bob's", title="bob's")).id)
    items = {
        "both": await ann.add("1", title="both", folder=red),
        "red": await ann.add("2", title="red", folder=red),
        "aside": await ann.add("3", title="aside", folder=red, in_kb=False),
        "loose": await ann.add("4", title="loose"),
    }
    await ann.store.items.file(ann.scope(), ItemRef(id=items["both"].id), [blue], token_id=None)
    for item in items.values():
        await ann.store.items.delete(replace(ann.scope(), actor=ann.id), item.id)
    seen = {
        ann.scope(): {*items},
        ann.scope(red): {"both", "red", "aside"},
        ann.scope(blue): {"both"},
        ann.scope(red, kb_only=True): {"both", "red"},
        ann.scope(kb_only=True): {"both", "red", "loose"},
        ann.scope(await ann.folder("other")): set(),
        bob.scope(): {"bob's"},
    }
    for scope, expected in seen.items():
        assert {*await titles(ann, scope)} == expected
        for title, item in items.items():
            if title not in expected:
                with pytest.raises(NotFound):
                    await restore(ann, item, scope)
    assert {entry.deleted_by for entry in await trashed(ann, ann.scope(blue))} == {None}
    assert (await restore(ann, items["both"], ann.scope(blue))).folders == (blue,)
    assert (await ann.store.items.get(ann.scope(), ItemRef(id=items["both"].id))).folders == tuple(
        sorted((red, blue))
    )
    # Of a folder that is gone nobody sees anything, and what lay in it comes back without it.
    await ann.store.folders.delete(ann.scope(), red, cascade_items=False)
    assert (await restore(ann, items["red"])).folders == ()


async def test_what_a_scope_deletes_of_an_item_that_others_have_is_in_its_trash_alone(
    ann: Library,
) -> None:
    red, blue, green = [await ann.folder(name) for name in ("red", "blue", "green")]
    item = await ann.add("one", title="one", folder=red)
    note = await ann.add("note", title="note", annotates=item.id, folder=red)
    files = [blue, green]
    await ann.store.items.file(ann.scope(), ItemRef(id=item.id), files, token_id=None)
    await ann.store.items.delete(ann.scope(red), item.id)
    assert await titles(ann, ann.scope(red)) == ["one"]
    for scope in (ann.scope(), ann.scope(blue), ann.scope(red, blue)):
        assert await titles(ann, scope) == []
        with pytest.raises(NotFound):
            await restore(ann, item, scope)
    await ann.store.items.delete(ann.scope(blue), item.id)
    assert await titles(ann, ann.scope(red, blue)) == ["one"]  # once, though deleted twice
    assert (await restore(ann, item, ann.scope(red))).folders == (red,)
    held = await ann.store.items.get_many(ann.scope(), [item.id, note.id])
    assert {each.folders for each in held.values()} == {tuple(sorted((red, green)))}
    assert await titles(ann, ann.scope(red)) == []
    assert await titles(ann, ann.scope(blue)) == ["one"]
    await ann.store.items.file(ann.scope(), ItemRef(id=item.id), [blue], token_id=None)
    await ann.store.items.unfile(ann.scope(), ItemRef(id=item.id), blue)
    assert await titles(ann, ann.scope(blue)) == []  # nobody deleted it since
    # Whoever deletes it for all puts it into the trash of those who still had it.
    await ann.store.items.delete(ann.scope(green), item.id)
    await ann.store.items.delete(ann.scope(), item.id)
    assert await titles(ann) == await titles(ann, ann.scope(red)) == ["one"]
    assert await titles(ann, ann.scope(green)) == []


async def test_what_a_token_forgets_of_an_item_that_others_have_comes_back_with_it(
    ann: Library,
) -> None:
    red, blue = await ann.folder("red"), await ann.folder("blue")
    owner = (await ann.token(red)).id
    item = Item(new_id(), ann.id, new_public_id(), new_id(), "claim", "text", "T")
    item, _ = await ann.store.items.add(
        item,
        Content(item.content_id, f"{ann.id}:1", "quartz"),
        cut("quartz"),
        scope=ann.scope(),
        folder_id=red,
        stamp=STAMP,
        jobs=[],
        capture=Capture(new_id(), ann.id, item.id, "T", "quartz", owner, "key"),
    )
    await ann.store.items.file(ann.scope(), ItemRef(id=item.id), [blue], token_id=None)
    await ann.store.candidates.put([Candidate(new_id(), ann.id, item.id, owner, PROPOSAL)])
    assert await ann.store.idempotency.claim(ann.id, owner, "k", "digest") is None
    await ann.store.idempotency.finish(ann.id, owner, "k", 201, "{}", item.id)
    before = await everything(ann)
    await ann.store.items.delete(ann.scope(red), item.id)
    assert await ann.store.captures.by_key(ann.id, owner, "key") is None
    after = await everything(ann)
    assert after["candidates"] == after["idempotency_keys"] == []
    await restore(ann, item, ann.scope(red))
    assert await everything(ann) == before
    assert await ann.found("quartz", ann.scope(red)) == ["T"]


async def test_relations_come_back_when_both_ends_are_there(ann: Library) -> None:
    a, b = await ann.add("a", title="a"), await ann.add("b", title="b")
    await relate(ann, a, Kind.RELATED_TO, b)
    before = await everything(ann)
    for first, second in ((a, b), (b, a)):
        await ann.store.items.delete(ann.scope(), a.id)
        await ann.store.items.delete(ann.scope(), b.id)
        await restore(ann, first)
        assert await ann.store.relations.of_items(ann.scope(), [a.id, b.id]) == []
        await restore(ann, second)
        assert await everything(ann) == before
    await ann.store.items.delete(ann.scope(), a.id)
    await ann.store.items.delete(ann.scope(), b.id)
    await ann.store.trash.delete(ann.scope(), ItemRef(id=b.id), LONG_AGO)
    await restore(ann, a)
    assert await ann.store.relations.of_items(ann.scope(), [a.id]) == []


async def test_restoring_keeps_what_was_decided_meanwhile(ann: Library) -> None:
    a, b, c = [await ann.add(t, title=t, entity_type="task") for t in "abc"]
    old, new = [await ann.add(t, title=t, entity_type="project") for t in ("old", "new")]
    await relate(ann, a, Kind.DEPENDS_ON, b)
    await relate(ann, b, Kind.DEPENDS_ON, c)
    await relate(ann, a, Kind.BELONGS_TO, old)
    await ann.store.items.delete(ann.scope(), b.id)
    await ann.store.items.delete(ann.scope(), old.id)
    await relate(ann, c, Kind.DEPENDS_ON, a)  # a -> b -> c -> a would be a cycle
    await relate(ann, a, Kind.BELONGS_TO, new)
    await restore(ann, b)
    await restore(ann, old)
    found = await ann.store.relations.of_items(ann.scope(), [a.id, b.id, c.id])
    assert {(r.from_id, r.kind, r.to_id) for r in found if r.kind == Kind.BELONGS_TO} == {
        (a.id, Kind.BELONGS_TO, new.id)
    }
    waits = {(r.from_id, r.to_id) for r in found if r.kind == Kind.DEPENDS_ON}
    assert (c.id, a.id) in waits and len(waits) == 2


async def test_a_chain_of_replaced_memories_is_as_it_was(ann: Library) -> None:
    first, second, third = [
        await ann.add(t, title=t, entity_type="claim", metadata={"own": t}) for t in "abc"
    ]
    for new, old in ((second, first), (third, second)):
        await ann.store.relations.put(
            ann.scope(), [Relation(ann.id, new.id, Kind.SUPERSEDES, old.id)]
        )
        now_old = await ann.store.items.get(ann.scope(), ItemRef(id=old.id))
        await ann.store.items.update(
            ann.scope(),
            old.id,
            {"metadata": now_old.metadata | {"correction": {"reason": old.title}}},
            expected_revision=None,
            sections=None,
            stamp=STAMP,
            jobs=[],
        )

    async def state() -> list[object]:
        items = await ann.store.items.get_many(ann.scope(), [first.id, second.id, third.id])
        joined = await ann.store.relations.of_items(ann.scope(), [*items])
        return [
            {(i.title, i.status, str(i.metadata)) for i in items.values()},
            {(r.from_id, r.to_id, r.created_at) for r in joined},
        ]

    before = await state()
    for item in (first, second, third):
        await ann.store.items.delete(ann.scope(), item.id)
        assert await state() != before
        await restore(ann, item)
        assert await state() == before


async def test_adding_and_importing_again_makes_new_items(ann: Library) -> None:
    page = await ann.add("page", title="page", key="https://example.org/", kind="url")
    await ann.store.items.delete(ann.scope(), page.id)
    again, created = await ann.put("page", title="page", key="https://example.org/", kind="url")
    assert created and again.id != page.id
    back = await restore(ann, page)  # beside it, with a text that nobody shares
    assert back.content_id == page.content_id != again.content_id
    await ann.store.items.delete(ann.scope(), page.id)
    imported = await ann.add("other", title="imported", id=page.id, public_id=page.public_id)
    with pytest.raises(Conflict, match="import"):
        await restore(ann, page)
    assert await titles(ann) == ["page"]
    await ann.store.items.delete(ann.scope(), imported.id)
    assert await titles(ann) == ["imported"]
    taken = await ann.add("taken", title="taken", public_id=page.public_id)
    back = await restore(ann, imported)
    assert back.id == page.id and back.public_id != taken.public_id


async def test_folders_with_their_items_go_to_the_trash(ann: Library) -> None:
    work, home = await ann.folder("work"), await ann.folder("home")
    alone, both = await ann.add("1", title="1", folder=work), await ann.add("2", folder=work)
    await ann.add("note", title="note", annotates=alone.id, folder=work)
    await ann.store.items.file(ann.scope(), ItemRef(id=both.id), [home], token_id=None)
    await ann.store.folders.delete(ann.scope(), work, cascade_items=True)
    assert await titles(ann) == ["1"]
    assert (await restore(ann, alone)).folders == ()


async def test_a_folder_of_many_items_goes_to_the_trash(ann: Library) -> None:
    full = await ann.folder("full")
    items = [await ann.add(f"{n}", title=f"{n}", folder=full) for n in range(12)]
    await ann.store.folders.delete(ann.scope(), full, cascade_items=True)
    assert sorted(await titles(ann), key=int) == [f"{n}" for n in range(12)]
    assert (await restore(ann, items[7])).title == "7"


async def test_deleting_does_not_look_through_the_trash(
    ann: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    if ann.store._db.engine != "sqlite":
        pytest.skip("reads plans of SQLite")
    asked: list[tuple[str, dict[str, Any]]] = []
    execute = SqliteTx._execute
    monkeypatch.setattr(
        SqliteTx,
        "_execute",
        lambda tx, sql, values: (asked.append((sql, values)), execute(tx, sql, values))[1],
    )
    await ann.store.items.delete(ann.scope(), (await ann.add("a")).id)
    plans = await ann.store._db.read(
        lambda tx: [tx.all(f"EXPLAIN QUERY PLAN {sql}", **values) for sql, values in [*asked]]
    )
    steps = [step["detail"] for plan in plans for step in plan]
    of_trash = [step for step in steps if " trash" in step]
    assert of_trash
    assert not [step for step in of_trash if "(library_id=?)" in step or step.startswith("SCAN")]


async def test_jobs_that_were_open_are_open_again(ann: Library) -> None:
    item = await ann.add("one", job=True)
    [job] = await ann.store.jobs.lease("w", "embed", limit=5, seconds=600)
    await ann.store.items.delete(ann.scope(), item.id)
    assert await ann.store.jobs.lease("x", "embed", limit=5, seconds=60) == []
    await restore(ann, item)
    assert [j.id for j in await ann.store.jobs.lease("x", "embed", limit=5, seconds=60)] == [job.id]


async def test_the_trash_is_in_backups(ann: Library, tmp_path: Path) -> None:
    red, blue = await ann.folder("red"), await ann.folder("blue")
    item, shared = await ann.add("one", title="one", vectors=[UP]), await ann.add("two", folder=red)
    await ann.store.items.file(ann.scope(), ItemRef(id=shared.id), [blue], token_id=None)
    before = await everything(ann)
    await ann.store.items.delete(ann.scope(), item.id)
    await ann.store.items.delete(ann.scope(blue), shared.id)
    await ann.store.dump(tmp_path / "backup")
    await ann.store.load(tmp_path / "backup", replace=True)
    await restore(ann, item)
    await restore(ann, shared, ann.scope(blue))
    assert await everything(ann) == before
    assert len(await ann.store.sections.nearest(ann.scope(), UP, STAMP, 10)) == 1
