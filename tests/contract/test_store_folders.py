"""Folders: names, scopes, and what goes with them when they go."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from types import NoneType

import pytest

from commonplace.errors import Invalid, NameTaken, NotFound
from commonplace.model import (
    ACTIVE,
    TO_READ,
    Folder,
    FolderImpact,
    ItemFilter,
    ItemRef,
    Scope,
    Token,
    folder_list,
    new_id,
    now,
)
from commonplace.store import Store
from tests.contract.library import Library

pytestmark = pytest.mark.anyio


async def test_names_are_unique_in_a_library_whatever_their_case(
    ann: Library, bob: Library
) -> None:
    await ann.folder("Straße")
    with pytest.raises(NameTaken):
        await ann.folder("STRASSE")
    await bob.folder("Straße")
    assert [f.name for f in await ann.store.folders.list_folders(ann.scope())] == ["Straße"]


async def test_folders_are_listed_by_name_within_the_scope_and_counted(
    ann: Library, bob: Library
) -> None:
    work, home, _ = await ann.folder("work"), await ann.folder("Home"), await bob.folder("bob's")
    await ann.add("one", folder=work)
    await ann.add("two", folder=work, in_kb=False)
    within = ann.store.folders.list_folders
    assert [(f.name, f.item_count) for f in await within(ann.scope())] == [("Home", 0), ("work", 2)]
    assert [(f.name, f.item_count) for f in await within(ann.scope(kb_only=True))] == [
        ("Home", 0),
        ("work", 1),
    ]
    assert [f.id for f in await within(ann.scope(home))] == [home]
    assert {f.id for f in await within(ann.scope(home, work))} == {home, work}
    assert await within(bob.scope(work)) == []


async def test_folders_count_what_their_lists_show(ann: Library) -> None:
    work = await ann.folder("work")
    one = await ann.add("one", folder=work)
    await ann.add("two", folder=work, entity_type="task")
    await ann.add("three", folder=work, archived=True)
    await ann.add("a note", folder=work, annotates=one.id)
    for counted in (ItemFilter(), ACTIVE, TO_READ, ItemFilter(archived=True)):
        [folder] = await ann.store.folders.list_folders(ann.scope(), counted)
        _, total = await ann.store.items.list_page(
            ann.scope(), replace(counted, folder_id=work), limit=1, offset=0
        )
        assert folder.item_count == total
    assert folder.item_count == 1
    [folder] = await ann.store.folders.list_folders(ann.scope())
    assert folder.item_count == 3
    changed = await ann.store.folders.change(ann.scope(), work, {"name": "Work"})
    assert changed.item_count == 3
    impact = await ann.store.folders.folder_impact(ann.scope(), work)
    assert (impact.items, impact.alone) == (3, 3), "notes go with what they are on"


async def test_a_folder_made_is_the_folder_read(ann: Library) -> None:
    folder = Folder(id=new_id(), library_id=ann.id, name="kept", created_at=now())
    await ann.store.folders.create(Scope(ann.id), folder)
    assert await ann.store.folders.list_folders(ann.scope()) == [folder]


async def test_renaming_minds_the_scope_and_the_other_names(ann: Library, bob: Library) -> None:
    work, home = await ann.folder("work"), await ann.folder("home")
    change = ann.store.folders.change
    assert (await change(ann.scope(), work, {"name": "WORK"})).name == "WORK", (
        "its own name is not taken"
    )
    with pytest.raises(NameTaken):
        await change(ann.scope(), work, {"name": "Home"})
    for scope in (ann.scope(home), bob.scope()):
        with pytest.raises(NotFound):
            await change(scope, work, {"name": "mine"})


async def test_deleting_a_folder_keeps_its_items_unless_asked(ann: Library) -> None:
    work, home = await ann.folder("work"), await ann.folder("home")
    await ann.add("quartz", title="kept", folder=work)
    await ann.store.folders.delete(ann.scope(), work, cascade_items=False)
    assert await ann.found("quartz") == ["kept"]
    assert [f.id for f in await ann.store.folders.list_folders(ann.scope())] == [home]
    items, _ = await ann.store.items.list_page(ann.scope(), ItemFilter(), limit=10, offset=0)
    assert [i.folders for i in items] == [()]


async def test_cascading_takes_only_items_that_lie_nowhere_else(ann: Library) -> None:
    work, home = await ann.folder("work"), await ann.folder("home")
    await ann.add("quartz alone", title="alone", folder=work)
    both = await ann.add("quartz both", title="both", folder=work)
    await ann.store.items.file(ann.scope(), ItemRef(id=both.id), [home], token_id=None)
    await ann.store.folders.delete(ann.scope(), work, cascade_items=True)
    assert await ann.found("quartz") == ["both"]
    assert await ann.found("quartz", ann.scope(home)) == ["both"]
    assert await ann.found("quartz", ann.scope(work)) == []


async def test_a_token_goes_with_its_last_folder(ann: Library) -> None:
    work, home = await ann.folder("work"), await ann.folder("home")
    await ann.token(work, digest="one")
    await ann.token(work, home, digest="two")
    await ann.token(digest="whole")
    by_digest = ann.store.tokens.by_digest

    async def revoked() -> list[bool]:
        return [
            t is not None and t.revoked_at is not None
            for t in [await by_digest(d) for d in ("one", "two", "whole")]
        ]

    await ann.store.folders.delete(ann.scope(), work, cascade_items=False)
    assert await revoked() == [True, False, False]
    two = await by_digest("two")
    assert two is not None and two.folders == {home}
    await ann.store.folders.delete(ann.scope(), home, cascade_items=False)
    assert await revoked() == [True, True, False]


async def test_no_token_is_left_without_folders_whoever_deletes_and_makes_them_at_once(
    ann: Library,
) -> None:
    for turn in range(8):
        folders = [await ann.folder(f"{turn}.{n}") for n in range(4)]
        await ann.token(*folders)
        outcomes = await asyncio.gather(
            *(
                ann.store.folders.delete(ann.scope(), folder, cascade_items=False)
                for folder in folders
            ),
            *(ann.token(folder) for folder in folders),
            return_exceptions=True,
        )
        assert {type(outcome) for outcome in outcomes} <= {NoneType, Token, NotFound}
    assert all(token.revoked_at for token in await ann.store.tokens.of_library(ann.id))


async def test_a_token_of_a_folder_that_was_just_deleted_is_not_made(ann: Library) -> None:
    work, home = await ann.folder("work"), await ann.folder("home")
    await ann.store.folders.delete(ann.scope(), work, cascade_items=False)
    with pytest.raises(NotFound) as caught:
        await ann.token(work, home)
    assert (
        caught.value.data == {"folder_ids": [work]}
        and await ann.store.tokens.of_library(ann.id) == []
    )


async def test_what_is_out_of_scope_cannot_be_deleted(ann: Library, bob: Library) -> None:
    work, home = await ann.folder("work"), await ann.folder("home")
    for scope in (ann.scope(home), bob.scope()):
        with pytest.raises(NotFound):
            await ann.store.folders.delete(scope, work, cascade_items=True)
    assert len(await ann.store.folders.list_folders(ann.scope())) == 2


async def test_what_goes_with_a_folder_is_known_beforehand(ann: Library, bob: Library) -> None:
    work, home = await ann.folder("work"), await ann.folder("home")
    both = await ann.add("one", folder=work)
    await ann.store.items.file(ann.scope(), ItemRef(id=both.id), [home], token_id=None)
    await ann.add("two", folder=work)
    await ann.add("three", folder=work, in_kb=False)
    for folders in ((work,), (work, home), ()):
        await ann.token(*folders)
    revoked = await ann.token(work)
    await ann.store.tokens.revoke(ann.id, revoked.id)
    assert await ann.store.folders.folder_impact(ann.scope(), work) == FolderImpact(
        items=3, alone=2, tokens=1
    )
    assert await ann.store.folders.folder_impact(ann.scope(), home) == FolderImpact(
        items=1, alone=0, tokens=0
    )
    for scope in (bob.scope(), ann.scope(home)):
        with pytest.raises(NotFound):
            await ann.store.folders.folder_impact(scope, work)


async def chain_of(ann: Library, *names: str) -> list[str]:
    """Make folders, each in the one before."""
    made: list[str] = []
    for name in names:
        made.append(await ann.folder(name, made[-1] if made else None))
    return made


async def labels(ann: Library, *scope: str) -> list[str]:
    found = await ann.store.folders.list_folders(ann.scope(*scope))
    return [node.label for node in folder_list(found)]


async def test_names_are_unique_only_among_siblings(ann: Library) -> None:
    work, home = await ann.folder("Work"), await ann.folder("Home")
    notes = await ann.folder("\u01f0otes", work)
    await ann.folder("\u01f0otes", home)
    with pytest.raises(NameTaken):
        await ann.folder("J\u030cOTES", work)
    with pytest.raises(NameTaken):
        await ann.store.folders.change(ann.scope(), notes, {"parent_id": home})
    assert await labels(ann) == ["Home", "Home / \u01f0otes", "Work", "Work / \u01f0otes"]
    with pytest.raises(NotFound):
        await ann.folder("Lost", "nowhere")


async def test_folders_are_counted_without_those_below(ann: Library) -> None:
    work, deep = await chain_of(ann, "Work", "Deep")
    await ann.add("one", folder=work)
    await ann.add("two", folder=deep)
    await ann.add("three", folder=deep)
    found = await ann.store.folders.list_folders(ann.scope())
    assert {f.name: f.item_count for f in found} == {"Work": 1, "Deep": 2}


async def test_nesting_is_eight_deep_and_never_a_cycle(ann: Library, bob: Library) -> None:
    made = await chain_of(ann, *"12345678")
    change = ann.store.folders.change
    with pytest.raises(Invalid, match="8 deep"):
        await ann.folder("9", made[-1])
    top, below = await chain_of(ann, "a", "b")
    with pytest.raises(Invalid, match="8 deep"):
        await change(ann.scope(), top, {"parent_id": made[6]})
    await change(ann.scope(), top, {"parent_id": made[5]})
    for inside in (made[2], made[3], made[7], below):
        with pytest.raises(Invalid, match="into itself"):
            await change(ann.scope(), made[2], {"parent_id": inside})
    with pytest.raises(NotFound):
        await change(ann.scope(), top, {"parent_id": await bob.folder("bob's")})
    await change(ann.scope(), made[2], {"parent_id": None})
    assert "3 / 4 / 5 / 6 / a / b" in await labels(ann)


async def test_a_scope_is_the_folders_it_lists_and_no_parent_shows(ann: Library) -> None:
    top, middle, low = await chain_of(ann, "top", "middle", "low")
    hidden = await ann.add("quartz", folder=middle)
    assert await labels(ann, top, low) == ["low", "top"]
    [alone] = await ann.store.folders.list_folders(ann.scope(low))
    assert alone.parent_id is None
    assert await labels(ann, middle, low) == ["middle", "middle / low"]
    assert await ann.found("quartz", ann.scope(top, low)) == []
    with pytest.raises(NotFound):
        await ann.store.items.get(ann.scope(top), ItemRef(id=hidden.id))


async def test_folders_in_a_deleted_one_move_up(ann: Library) -> None:
    top, middle = await chain_of(ann, "top", "middle")
    await ann.folder("Notes", top)
    await ann.folder("notes 2", top)
    notes = await ann.folder("notes", middle)
    await ann.folder("below", notes)
    kept = await ann.add("quartz", folder=notes)
    await ann.store.folders.delete(ann.scope(), middle, cascade_items=True)
    assert await labels(ann) == [
        *("top", "top / Notes", "top / notes 2", "top / notes 3", "top / notes 3 / below")
    ]
    assert (await ann.store.items.get(ann.scope(notes), ItemRef(id=kept.id))).folders == (notes,)
    await ann.store.folders.delete(ann.scope(), top, cascade_items=False)
    assert await labels(ann) == ["Notes", "notes 2", "notes 3", "notes 3 / below"]


async def test_moves_at_once_make_no_cycle_and_stay_within_the_depth(
    open_store: Callable[[], Awaitable[Store]], ann: Library
) -> None:
    """Each move alone is allowed; several stores are several processes."""
    stores = [await open_store() for _ in range(3)]
    for turn in range(6):
        rings = [await ann.folder(f"{turn}.{n}") for n in range(4)]
        left, right = [
            await chain_of(ann, *(f"{side}{turn}.{n}" for n in range(5))) for side in "lr"
        ]
        moves = [(rings[n], rings[(n + 1) % 4]) for n in range(4)]
        moves += [(left[0], right[2]), (right[0], left[2]), (right[3], left[4])]
        outcomes = await asyncio.gather(
            *(
                stores[n % 3].folders.change(ann.scope(), folder, {"parent_id": parent})
                for n, (folder, parent) in enumerate(moves)
            ),
            *(
                store.folders.create(
                    Scope(ann.id), Folder(new_id(), ann.id, f"new {turn}", now(), right[4])
                )
                for store in stores
            ),
            stores[0].folders.delete(ann.scope(), rings[0], cascade_items=False),
            return_exceptions=True,
        )
        assert {type(each) for each in outcomes} <= {NoneType, Folder, Invalid, NameTaken, NotFound}
        found = await ann.store.folders.list_folders(ann.scope())
        nodes = folder_list(found)
        assert len(nodes) == len(found), "no folder is in a cycle"
        assert max(len(node.names) for node in nodes) <= 8
        names = [(f.parent_id, f.name) for f in found]
        assert len(set(names)) == len(names)
