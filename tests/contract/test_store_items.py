"""Items: written whole, read only through a scope, deduplicated, changed, deleted."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from commonplace.errors import Conflict, NotFound
from commonplace.model import (
    Item,
    ItemFilter,
    ItemRef,
    Job,
    Kind,
    Order,
    Relation,
    Scope,
    new_id,
    now,
)
from commonplace.store import Store
from tests.contract.library import STAMP, Library, cut

pytestmark = pytest.mark.anyio


async def page(
    library: Library,
    scope: Scope | None = None,
    *,
    limit: int = 50,
    offset: int = 0,
    **where: object,
) -> list[str]:
    items, total = await library.store.items.list_page(
        scope or library.scope(),
        ItemFilter(**where),  # type: ignore[arg-type]
        limit=limit,
        offset=offset,
    )
    assert total >= len(items)
    return [item.title for item in items]


async def test_an_item_comes_back_as_it_went_in_under_each_of_its_names(ann: Library) -> None:
    work = await ann.folder("work")
    added = await ann.add(
        "One.\n\nTwo.",
        title="日本 and “quotes”",
        folder=work,
        url="https://example.com/a?b=1",
        summary="s",
        key_points=("k1", "k2"),
        tags=("a", "b"),
        category="c",
        visibility="public",
        archived=True,
        transcription_status="done",
        metadata={"deep": [1, {"x": None}]},
        word_count=2,
        created_by="token",
        entity_type="decision",
        origin="web",
        annotates="other",
    )
    get = ann.store.items.get
    assert added.folders == (work,)
    for name in (added.id, added.public_id, added.entity_id):
        assert await get(ann.scope(), ItemRef.parse(name)) == added
    with pytest.raises(NotFound):
        await get(ann.scope(), ItemRef.parse(f"task_{added.public_id}"))
    assert await ann.store.items.text(added) == "One.\n\nTwo."
    assert [(s.position, s.text) for s in await ann.store.sections.of_item(added)] == [
        (0, "One."),
        (1, "Two."),
    ]


async def test_an_item_is_read_whole_as_far_as_the_scope_goes(ann: Library, bob: Library) -> None:
    work, home = await ann.folder("work"), await ann.folder("home")
    added = await ann.add("One.\n\nTwo.", folder=work)
    await ann.store.items.file(ann.scope(), ItemRef(id=added.id), [home], token_id=None)
    items = ann.store.items
    whole = await items.get_with_sections(ann.scope(), ItemRef.parse(added.entity_id))
    assert whole.item == await items.get(ann.scope(), ItemRef(id=added.id))
    assert (whole.text, list(whole.sections)) == (
        "One.\n\nTwo.",
        await ann.store.sections.of_item(added),
    )
    assert {folder.name for folder in whole.folders} == {"work", "home"}
    assert [
        f.name
        for f in (await items.get_with_sections(ann.scope(home), ItemRef(id=added.id))).folders
    ] == ["home"]
    unfiled = await ann.add("Three.", in_kb=False)
    assert (await items.get_with_sections(ann.scope(), ItemRef(id=unfiled.id))).folders == ()
    for scope in (bob.scope(), ann.scope(await ann.folder("other")), ann.scope(kb_only=True)):
        with pytest.raises(NotFound):
            await items.get_with_sections(scope, ItemRef(id=unfiled.id))


async def test_every_read_keeps_to_the_scope(ann: Library, bob: Library) -> None:
    work, home, other = (
        await ann.folder("work"),
        await ann.folder("home"),
        await ann.folder("other"),
    )
    await ann.add("one", title="in work", folder=work)
    await ann.add("two", title="in home", folder=home)
    await ann.add("three", title="unfiled")
    await ann.add("four", title="outside kb", folder=work, in_kb=False)
    await bob.add("five", title="bob's")
    expected = {
        ann.scope(): {"in work", "in home", "unfiled", "outside kb"},
        ann.scope(work): {"in work", "outside kb"},
        ann.scope(work, home): {"in work", "in home", "outside kb"},
        ann.scope(kb_only=True): {"in work", "in home", "unfiled"},
        ann.scope(work, kb_only=True): {"in work"},
        ann.scope(other): set(),
        Scope(ann.id, frozenset()): set(),
        bob.scope(): {"bob's"},
        bob.scope(work): set(),
    }
    everything = [
        *(await ann.store.items.list_page(ann.scope(), ItemFilter(), limit=50, offset=0))[0],
        *(await ann.store.items.list_page(bob.scope(), ItemFilter(), limit=50, offset=0))[0],
    ]
    for scope, titles in expected.items():
        items, total = await ann.store.items.list_page(scope, ItemFilter(), limit=50, offset=0)
        assert {i.title for i in items} == titles
        assert total == len(titles)
        for item in everything:
            assert await readable(ann.store, scope, item) == (item.title in titles)


async def readable(store: Store, scope: Scope, item: Item) -> bool:
    """Whether it can be read, changed or deleted: always all or none of them."""
    attempts: list[Callable[[], Awaitable[object]]] = [
        lambda: store.items.get(scope, ItemRef(id=item.id)),
        lambda: store.items.get(scope, ItemRef(public_id=item.public_id)),
        lambda: store.items.get_with_sections(scope, ItemRef(id=item.id)),
        lambda: store.items.update(
            scope, item.id, {}, expected_revision=None, sections=None, stamp=STAMP, jobs=()
        ),
        lambda: store.items.file(scope, ItemRef(id=item.id), [], token_id=None),
    ]
    answers = set()
    for attempt in attempts:
        try:
            await attempt()
            answers.add(True)
        except NotFound:
            answers.add(False)
    if answers == {False}:
        with pytest.raises(NotFound):
            await store.items.delete(scope, item.id)
        with pytest.raises(NotFound):
            await store.items.unfile(scope, ItemRef(id=item.id), "any")
    assert len(answers) == 1
    return answers.pop()


async def test_a_reader_sees_only_the_folders_of_its_scope_on_an_item(ann: Library) -> None:
    work, home = await ann.folder("work"), await ann.folder("home")
    item = await ann.add("one", folder=work)
    await ann.store.items.file(ann.scope(), ItemRef(id=item.id), [home], token_id=None)
    for scope, folders in [
        (ann.scope(), {work, home}),
        (ann.scope(work), {work}),
        (ann.scope(home, work), {work, home}),
    ]:
        assert set((await ann.store.items.get(scope, ItemRef(id=item.id))).folders) == folders
        assert (
            set(
                (await ann.store.items.list_page(scope, ItemFilter(), limit=1, offset=0))[0][
                    0
                ].folders
            )
            == folders
        )


async def test_pages_are_newest_first_and_filtered(ann: Library) -> None:
    work, start = await ann.folder("work"), now()
    for n in range(5):
        await ann.add(
            f"text {n}",
            title=f"t{n}",
            created_at=start + timedelta(seconds=n),
            folder=work if n < 2 else None,
            archived=n == 3,
            in_kb=n != 4,
            entity_type="task" if n == 0 else "document",
            tags=("50%_off!",) if n == 2 else (),
            url="https://Example.com/X" if n == 1 else None,
        )
    assert await page(ann) == ["t4", "t3", "t2", "t1", "t0"]
    assert await page(ann, limit=2, offset=1) == ["t3", "t2"]
    assert await page(ann, offset=9) == []
    assert await page(ann, folder_id=work) == ["t1", "t0"]
    assert await page(ann, folder_id=new_id()) == []
    assert await page(ann, archived=True) == ["t3"]
    assert await page(ann, archived=False, in_kb=True) == ["t2", "t1", "t0"]
    assert await page(ann, in_kb=False) == ["t4"]
    assert await page(ann, entity_types=("task", "plan")) == ["t0"]
    assert await page(ann, text="T3") == ["t3"]
    assert await page(ann, text="%_off!") == ["t2"]
    assert await page(ann, text="_") == ["t2"], (
        "what means something in LIKE is searched for as it stands"
    )
    assert await page(ann, text="example.COM/x") == ["t1"]


@pytest.mark.parametrize("title", ["Ärger im Büro", "Москва зимой", "ŁÓDŹ NOCĄ"])
async def test_part_of_a_title_is_found_whatever_its_case_in_every_script(
    ann: Library, title: str
) -> None:
    await ann.add("text", title=title)
    await ann.add("another", title="Else")
    for part in (title, title[:4], title[:4].lower(), title[:4].upper()):
        assert await page(ann, text=part) == [title]


async def test_the_same_content_type_and_title_is_one_item_within_the_scope(
    ann: Library, bob: Library
) -> None:
    work, home = await ann.folder("work"), await ann.folder("home")
    first, new = await ann.put("same", title="T", folder=work)
    assert new
    again, new = await ann.put("same", title="T")
    assert (again, new) == (first, False)
    for changes in ({"title": "other"}, {"title": "T", "entity_type": "decision"}):
        other, new = await ann.put("same", **changes)  # type: ignore[arg-type]
        assert new and other.content_id == first.content_id
    elsewhere, new = await ann.put("same", title="T", scope=ann.scope(home), folder=home)
    assert new, "an item that the scope does not see must not be given away"
    assert elsewhere.id != first.id
    shared, new = await bob.put("same", title="T", key=f"{ann.id}:x")
    assert new and shared.library_id == bob.id


async def test_a_public_source_is_kept_once_for_all_libraries(ann: Library, bob: Library) -> None:
    mine = await ann.add("page", key="url:https://example.com/")
    theirs = await bob.add("page", key="url:https://example.com/")
    assert mine.content_id == theirs.content_id
    await ann.store.items.delete(ann.scope(), mine.id, permanent=True)
    assert await bob.store.items.text(theirs) == "page"
    await bob.store.items.delete(bob.scope(), theirs.id, permanent=True)
    with pytest.raises(NotFound):
        await bob.store.items.text(theirs)


async def test_an_item_whose_folder_is_gone_is_not_added(ann: Library, bob: Library) -> None:
    for folder in (new_id(), await bob.folder("bob's")):
        with pytest.raises(NotFound, match="Folder"):
            await ann.add("quartz", folder=folder)
    assert await page(ann) == []
    assert await ann.found("quartz") == []


async def test_filing_tells_what_is_new_and_refuses_strange_folders(
    ann: Library, bob: Library
) -> None:
    work, home, theirs = (
        await ann.folder("work"),
        await ann.folder("home"),
        await bob.folder("theirs"),
    )
    item = await ann.add("quartz", title="T", folder=work)
    file, ref = ann.store.items.file, ItemRef(id=item.id)
    with pytest.raises(NotFound, match="Folder"):
        await file(ann.scope(), ref, [home, theirs], token_id=None)
    assert await ann.found("quartz", ann.scope(home)) == [], "all or nothing"
    assert await file(ann.scope(), ref, [work, home, home], token_id=None) == [home]
    assert await file(ann.scope(), ref, [home], token_id=None) == []
    assert await ann.found("quartz", ann.scope(home)) == ["T"]
    await ann.store.items.unfile(ann.scope(), ref, work)
    assert await ann.found("quartz", ann.scope(work)) == []
    assert await ann.found("quartz", ann.scope(work, home)) == ["T"]
    with pytest.raises(NotFound):
        await ann.store.items.unfile(ann.scope(), ref, work)


async def test_a_token_files_what_it_added_until_somebody_did(ann: Library) -> None:
    work, home = await ann.folder("work"), await ann.folder("home")
    item = await ann.add("quartz", created_by="token-1")
    file, ref, scope = ann.store.items.file, ItemRef(id=item.id), ann.scope(work)
    for token in (None, "token-2"):
        with pytest.raises(NotFound):
            await file(scope, ref, [work], token_id=token)
    assert await file(scope, ref, [work], token_id="token-1") == [work]
    await ann.store.items.unfile(ann.scope(), ref, work)
    await file(ann.scope(), ref, [home], token_id=None)
    with pytest.raises(NotFound):
        await file(scope, ref, [work], token_id="token-1")


async def test_an_update_changes_what_it_names_and_counts_revisions(ann: Library) -> None:
    item = await ann.add("quartz", title="before", tags=("a",))
    job = Job(id=new_id(), library_id=ann.id, item_id=item.id, kind="embed")
    after = await ann.store.items.update(
        ann.scope(),
        item.id,
        {"title": "after", "metadata": {"x": 1}, "archived": True},
        expected_revision=1,
        sections=cut("quartz"),
        stamp=STAMP,
        jobs=[job],
    )
    assert after == replace(
        item,
        title="after",
        metadata={"x": 1},
        archived=True,
        revision=2,
        updated_at=after.updated_at,
    )
    assert after == await ann.store.items.get(ann.scope(), ItemRef(id=item.id))
    assert (await ann.store.jobs.get(ann.scope(), job.id)).item_id == item.id
    with pytest.raises(Conflict) as conflict:
        await ann.store.items.update(
            ann.scope(),
            item.id,
            {"title": "late"},
            expected_revision=1,
            sections=None,
            stamp=STAMP,
            jobs=(),
        )
    assert conflict.value.data["revision"] == 2
    assert await ann.found("after") == ["after"]
    assert await ann.found("before") == []


async def test_new_sections_take_the_place_of_the_old(ann: Library) -> None:
    work = await ann.folder("work")
    item = await ann.add("quartz\n\nfeldspar", title="T", folder=work)
    await ann.store.items.update(
        ann.scope(), item.id, {}, expected_revision=None, sections=cut("mica"), stamp=STAMP, jobs=()
    )
    assert await ann.found("quartz feldspar") == []
    assert await ann.found("mica", ann.scope(work)) == ["T"]
    assert [s.text for s in await ann.store.sections.of_item(item)] == ["mica"]
    await ann.store.items.update(
        ann.scope(),
        item.id,
        {"in_kb": False},
        expected_revision=None,
        sections=[],
        stamp=STAMP,
        jobs=(),
    )
    assert await ann.found("mica") == []


async def test_a_deleted_item_leaves_nothing(ann: Library) -> None:
    work = await ann.folder("work")
    item = await ann.add("quartz", title="T", folder=work, job=True)
    await ann.store.items.delete(ann.scope(), item.id, permanent=True)
    with pytest.raises(NotFound):
        await ann.store.items.get(ann.scope(), ItemRef(id=item.id))
    with pytest.raises(NotFound):
        await ann.store.items.text(item)
    with pytest.raises(NotFound):
        await ann.store.items.delete(ann.scope(), item.id)
    assert await ann.found("quartz") == []
    assert await ann.store.jobs.lease("w", "embed", limit=5, seconds=60) == []
    assert [f.item_count for f in await ann.store.folders.list_folders(ann.scope())] == [0]
    assert (await ann.put("quartz", title="T"))[1], "and can be added again"


async def test_what_others_hold_too_is_deleted_only_where_the_scope_goes(ann: Library) -> None:
    work, home, other = [await ann.folder(name) for name in ("work", "home", "other")]
    item = await ann.add("quartz", title="T", folder=work)
    await ann.store.items.file(ann.scope(), ItemRef(id=item.id), [home, other], token_id=None)
    scope = ann.scope(work, home)
    with pytest.raises(Conflict):
        await ann.store.items.delete(scope, item.id, expected_revision=7)
    await ann.store.items.delete(scope, item.id)
    assert not await readable(ann.store, scope, item)
    assert await ann.found("quartz", scope) == []
    assert await ann.found("quartz", ann.scope(other)) == ["T"]
    assert (await ann.store.items.get(ann.scope(), ItemRef(id=item.id))).folders == (other,)
    await ann.store.items.delete(ann.scope(other), item.id)
    assert not await readable(ann.store, ann.scope(), item)


async def test_an_item_stays_with_a_note_in_its_margin_that_lies_where_the_scope_does_not_go(
    ann: Library,
) -> None:
    work, other = await ann.folder("work"), await ann.folder("other")
    item = await ann.add("quartz", folder=work)
    note = await ann.add("sparkles", title="note", folder=other, annotates=item.id)
    await ann.store.items.delete(ann.scope(work), item.id)
    assert not await readable(ann.store, ann.scope(work), item)
    assert await ann.found("sparkles", ann.scope(other)) == ["note"]
    await ann.store.items.delete(ann.scope(), item.id)
    assert not await readable(ann.store, ann.scope(), note)


async def test_of_two_who_change_one_revision_one_wins(ann: Library) -> None:
    item = await ann.add("quartz")

    async def change(n: int) -> bool:
        try:
            await ann.store.items.update(
                ann.scope(),
                item.id,
                {"title": f"by {n}"},
                expected_revision=1,
                sections=None,
                stamp=STAMP,
                jobs=(),
            )
            return True
        except Conflict:
            return False

    assert sum(await asyncio.gather(*(change(n) for n in range(8)))) == 1
    assert (await ann.store.items.get(ann.scope(), ItemRef(id=item.id))).revision == 2


async def test_many_who_add_the_same_at_once_get_one_item(ann: Library) -> None:
    answers = await asyncio.gather(*(ann.put("the same text", title="T") for _ in range(16)))
    assert sum(new for _, new in answers) == 1
    assert len({item.id for item, _ in answers}) == 1


async def test_adding_and_deleting_one_source_at_once_leaves_each_item_its_content(
    ann: Library,
) -> None:
    async def come_and_go(n: int) -> None:
        for _ in range(5):
            item = await ann.add("one source", title=f"T{n}", key="url:https://example.com/")
            await ann.store.items.delete(ann.scope(), item.id)

    await asyncio.gather(*(come_and_go(n) for n in range(6)))
    kept = await ann.add("one source", key="url:https://example.com/")
    assert await ann.store.items.text(kept) == "one source"


async def test_filing_at_once_loses_no_folder(ann: Library) -> None:
    item = await ann.add("quartz", title="T")
    folders = [await ann.folder(f"f{n}") for n in range(8)]
    await asyncio.gather(
        *(
            ann.store.items.file(ann.scope(), ItemRef(id=item.id), [f], token_id=None)
            for f in folders
        )
    )
    for folder in folders:
        assert await ann.found("quartz", ann.scope(folder)) == ["T"]


async def test_items_come_in_the_order_that_is_asked_for(ann: Library) -> None:
    early = now() - timedelta(days=2)
    await ann.add("b", title="beta", created_at=early, word_count=5, updated_at=now())
    await ann.add(
        "a", title="Alpha", created_at=early + timedelta(days=1), word_count=9, updated_at=early
    )
    orders = {
        Order.NEWEST: ["Alpha", "beta"],
        Order.OLDEST: ["beta", "Alpha"],
        Order.CHANGED: ["beta", "Alpha"],
        Order.TITLE: ["Alpha", "beta"],
        Order.LONGEST: ["Alpha", "beta"],
    }
    for order, expected in orders.items():
        found, _ = await ann.store.items.list_page(
            ann.scope(), ItemFilter(), limit=10, offset=0, order=order
        )
        assert [item.title for item in found] == expected, order


async def test_several_are_read_at_once_and_only_what_is_in_scope(ann: Library) -> None:
    folder = await ann.folder("mine")
    inside, outside = await ann.add("one", folder=folder), await ann.add("two")
    asked = {inside.id, outside.id, new_id()}
    assert (await ann.store.items.get_many(ann.scope(), asked)).keys() == {inside.id, outside.id}
    assert await ann.store.items.get_many(ann.scope(folder), asked) == {inside.id: inside}
    assert await ann.store.items.get_many(ann.scope(), []) == {}


async def test_notes_in_the_margin_lie_where_their_item_lies_and_go_with_it(ann: Library) -> None:
    work, home = await ann.folder("work"), await ann.folder("home")
    item = await ann.add("a text", title="text")
    note = await ann.add("quoted words", title="note", annotates=item.id)
    await ann.add("on the note", title="on it", annotates=note.id)
    beside = await ann.add("by itself", title="free", category="annotation")
    await ann.store.relations.put(
        ann.scope(), [Relation(ann.id, beside.id, Kind.ANNOTATES, item.id)]
    )
    await ann.store.items.file(ann.scope(), ItemRef(id=item.id), [work, home], token_id=None)
    assert await ann.found("quoted", ann.scope(work)) == ["note"]
    await ann.store.items.unfile(ann.scope(), ItemRef(id=item.id), work)
    assert await ann.found("quoted", ann.scope(work)) == []
    assert set(await ann.found("note", ann.scope(home))) == {"note", "on it"}
    await ann.store.items.delete(ann.scope(), item.id)
    assert await ann.found("quoted words note text") == []
    assert await ann.found("itself") == ["free"], "what stands for itself stays"


@pytest.mark.parametrize("order", Order)
async def test_each_item_knows_what_is_beside_it_in_a_list(ann: Library, order: Order) -> None:
    red, early = await ann.folder("Red"), now() - timedelta(days=1)
    for n, title in enumerate(["b", "A", "c", "a", "C", "b"]):
        at = early if n < 3 else now()
        await ann.add(
            f"{n}", title=title, folder=red if n else None, created_at=at, word_count=n % 2
        )
    for where in (ItemFilter(), ItemFilter(folder_id=red)):
        listed, total = await ann.store.items.list_page(
            ann.scope(), where, limit=9, offset=0, order=order
        )
        for n, item in enumerate(listed):
            before, after = await ann.store.items.beside(ann.scope(), where, order, item)
            assert (before and before.id) == (listed[n - 1].id if n else None)
            assert (after and after.id) == (listed[n + 1].id if n + 1 < total else None)
            assert await ann.store.items.count_before(ann.scope(), where, order, item) == n
