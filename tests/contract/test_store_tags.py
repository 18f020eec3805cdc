"""Tags of a whole library: how many items have each, and other tags in their place."""

import pytest

from commonplace.model import ACTIVE, EventType, Item, ItemFilter
from commonplace.model.tags import TagCount
from tests.contract.library import Library

pytestmark = pytest.mark.anyio


async def tags_of(ann: Library) -> dict[str, tuple[str, ...]]:
    items, _ = await ann.store.items.list_page(ann.scope(), ItemFilter(), limit=99, offset=0)
    return {item.title: item.tags for item in items}


async def counted(ann: Library, *scope: str) -> list[tuple[str, int]]:
    found = await ann.store.tags.list_tags(ann.scope(*scope), ACTIVE)
    return [(each.name, each.items) for each in found]


async def test_tags_are_counted_in_scope_and_all_are_listed(ann: Library, bob: Library) -> None:
    red = await ann.folder("Red")
    await ann.add("one", tags=("owls", 'a "quote"'), folder=red)
    await ann.add("two", tags=("owls", "Straße", "[x], y\\"))
    await ann.add("three", tags=("old",), archived=True)
    await ann.add("four", tags=("rocks",), in_kb=False)
    await bob.add("five", tags=("theirs",))
    assert await counted(ann) == [
        ("[x], y\\", 1),
        ('a "quote"', 1),
        ("old", 0),
        ("owls", 2),
        ("rocks", 1),
        ("Straße", 1),
    ]
    assert await counted(ann, red) == [('a "quote"', 1), ("owls", 1)]
    within = await ann.store.tags.list_tags(ann.scope(kb_only=True), ACTIVE)
    assert TagCount("rocks", 1) not in within and TagCount("owls", 2) in within


async def test_tags_are_replaced_in_scope_and_told_as_changes(ann: Library) -> None:
    red = await ann.folder("Red")
    one = await ann.add("one", title="one", tags=("bird", "owl", "night"), folder=red)
    await ann.add("two", title="two", tags=("owls", "Bird"))
    after = (await ann.store.events.list_after(ann.scope(), None, 10)).after
    replace = ann.store.tags.replace_tags
    assert await replace(ann.scope(red), {"bird", "owl", "Bird"}, "birds", limit=9) == 1
    assert await tags_of(ann) == {"one": ("birds", "night"), "two": ("owls", "Bird")}
    assert await replace(ann.scope(red), {"Bird"}, "birds", limit=9) == 0, "out of scope"
    log = await ann.store.events.list_after(ann.scope(), after, 10)
    assert [(each.type, each.item_id) for each in log.events] == [(EventType.CHANGED, one.id)]
    assert await replace(ann.scope(), {"birds", "owls"}, None, limit=1) == 1
    assert await replace(ann.scope(), {"birds", "owls"}, None, limit=1) == 1
    assert await replace(ann.scope(), {"birds", "owls"}, None, limit=1) == 0
    assert await tags_of(ann) == {"one": ("night",), "two": ("Bird",)}


async def test_replaced_tags_stay_away_and_the_new_one_is_chosen(ann: Library) -> None:
    async def read() -> Item:
        items, _ = await ann.store.items.list_page(ann.scope(), ItemFilter(), limit=9, offset=0)
        return items[0]

    await ann.add("one", tags=("own", "auto", "more"), auto_tags=("auto", "more", "away"))
    await ann.store.tags.replace_tags(ann.scope(), {"auto"}, "away", limit=9)
    item = await read()
    assert item.tags == ("own", "away", "more") and item.own_tags == ("own", "away")
    assert item.auto_tags == ("auto", "more") and item.revision == 2
    await ann.store.tags.replace_tags(ann.scope(), {"own"}, None, limit=9)
    item = await read()
    assert item.tags == ("away", "more") and "own" in item.auto_tags
