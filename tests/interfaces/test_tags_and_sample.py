"""Tags of the whole library, and the sample that one adds and removes at once."""

import pytest

from commonplace.errors import CapabilityDenied, ForbiddenScope, Invalid
from commonplace.model import EVERYTHING, Caller, Item
from tests.interfaces.house import House

pytestmark = pytest.mark.anyio


async def items(house: House) -> dict[str, Item]:
    found, _ = await house.app.library.page(house.owner, EVERYTHING, limit=100)
    return {item.title: item for item in found}


async def tagged(house: House, title: str, *tags: str, folder: str | None = None) -> None:
    item_id, _ = await house.add(title, folder=folder)
    await house.app.library.update(house.owner, item_id, {"tags": list(tags)})


async def caller(house: House, character: str) -> Caller:
    return await house.app.access.identify(house.tokens[character])


async def test_tags_are_renamed_merged_and_deleted_in_the_callers_scope(house: House) -> None:
    tags = house.app.tags
    await tagged(house, "One", "owl", "night", folder="Red")
    await tagged(house, "Two", "owls")
    one = await caller(house, "one_folder")
    assert [each.name for each in await tags.list_tags(one)] == ["night", "owl"]
    assert await tags.rename(one, ["owl", "owls"], "  birds of  prey ") == 1
    assert {title: item.tags for title, item in (await items(house)).items()} == {
        "One": ("birds of prey", "night"),
        "Two": ("owls",),
    }
    assert await tags.rename(house.owner, ["owls", "night"], "birds of prey") == 2
    [only] = await tags.list_tags(house.owner)
    assert (only.name, only.items) == ("birds of prey", 2)
    assert await tags.delete(house.owner, ["birds of prey", "never"]) == 2
    assert await tags.list_tags(house.owner) == []
    for name in (" ", "a,b", "x" * 101):
        with pytest.raises(Invalid):
            await tags.rename(house.owner, ["owls"], name)
    reader = await caller(house, "reader")
    for change in (tags.rename(reader, ["owls"], "birds"), tags.delete(reader, ["owls"])):
        with pytest.raises(CapabilityDenied):
            await change


async def test_tags_of_many_items_are_replaced(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("commonplace.core.items.tags.AT_ONCE", 2)
    for n in range(5):
        await tagged(house, f"Note {n}", "old")
    assert await house.app.tags.rename(house.owner, ["old"], "new") == 5
    assert {item.tags for item in (await items(house)).values()} == {("new",)}


async def test_the_sample_comes_and_goes_and_leaves_what_is_ones_own(house: House) -> None:
    app, owner = house.app, house.owner
    mine, _ = await house.add("My own note")
    folder = await app.samples.add(owner)
    assert (await app.samples.add(owner)).id == folder.id, "a second click adds nothing"
    sample = [item for title, item in (await items(house)).items() if title != "My own note"]
    assert len(sample) == 6 and all(item.folders == (folder.id,) and item.tags for item in sample)
    found = await app.search.search(owner, "how much does the water tank cost")
    assert found.hits[0].passage.title == "Meeting: plan for spring"
    assert await app.samples.remove(owner) == 6
    assert list(await items(house)) == ["My own note"]
    assert folder.id not in {each.id for each in await app.folders.list_folders(owner)}

    folder = await app.samples.add(owner)
    await app.folders.file(owner, mine, [folder.id])
    [edited] = [item for title, item in (await items(house)).items() if title == "Start here"]
    await app.library.update(owner, edited.id, {"text": "This is mine now, and it stays."})
    assert await app.samples.remove(owner) == 5
    assert sorted(await items(house)) == ["My own note", "Start here"]
    assert (await app.folders.get(owner, folder.id)).item_count == 2
    with pytest.raises(ForbiddenScope):
        await app.samples.add(await caller(house, "one_folder"))


async def test_folders_count_what_their_list_returns(house: House) -> None:
    red = house.folders["Red"]
    for n in range(3):
        item_id, _ = await house.add(f"Note {n}", folder="Red", in_kb=n > 0)
    await house.app.library.update(house.owner, item_id, {"archived": True})
    await house.app.annotations.add(house.owner, item_id, "Why?", quote="the zebra", position=0)
    for character, expected in (("owner", 3), ("one_folder", 3), ("kb_only", 2)):
        async with house.client(character) as client:
            listed = (await client.get("/api/v1/items", params={"folder_id": red})).json()
            folder = (await client.get(f"/api/v1/folders/{red}")).json()
            assert folder["item_count"] == listed["total"] == expected
