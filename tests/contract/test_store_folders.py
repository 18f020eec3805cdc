"""Folders: names, scopes, and what goes with them when they go."""

import asyncio
from types import NoneType

import pytest

from commonplace.errors import NameTaken, NotFound
from commonplace.model import Folder, FolderImpact, ItemFilter, ItemRef, Token, new_id, now
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


async def test_a_folder_made_is_the_folder_read(ann: Library) -> None:
    folder = Folder(id=new_id(), library_id=ann.id, name="kept", created_at=now())
    await ann.store.folders.create(folder)
    assert await ann.store.folders.list_folders(ann.scope()) == [folder]


async def test_renaming_minds_the_scope_and_the_other_names(ann: Library, bob: Library) -> None:
    work, home = await ann.folder("work"), await ann.folder("home")
    rename = ann.store.folders.rename
    assert (await rename(ann.scope(), work, "WORK")).name == "WORK", "its own name is not taken"
    with pytest.raises(NameTaken):
        await rename(ann.scope(), work, "Home")
    for scope in (ann.scope(home), bob.scope()):
        with pytest.raises(NotFound):
            await rename(scope, work, "mine")


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
