"""Published items and saves, on both engines."""

from dataclasses import replace

import pytest

from commonplace.errors import NotFound
from commonplace.model import (
    Annotation,
    Audience,
    Content,
    DiskFilter,
    Item,
    ItemRef,
    OutlinedSection,
    RedactedDisk,
    new_id,
)
from commonplace.store import Store
from tests.contract.library import STAMP, Library

pytestmark = pytest.mark.anyio

VIEW = RedactedDisk(
    "Shown",
    "About foxes.",
    "Science",
    ("foxes", "night"),
    None,
    False,
    9,
    (OutlinedSection(1, 9, ("foxes",), "foxes"),),
)


async def publish(library: Library, item: Item, view: RedactedDisk = VIEW) -> None:
    await library.store.disks.publish(library.scope(), item, Audience.ANYONE, view)


async def test_others_find_what_is_published_by_every_name_and_by_its_view(
    store: Store, ann: Library, bob: Library
) -> None:
    item = await ann.add("The fox hunts at night.", title="Real title")
    for name in (item.id, item.public_id, item.entity_id):
        with pytest.raises(NotFound):
            await store.disks.find(ItemRef.parse(name), bob.id)
    await publish(ann, item)
    for name in (item.id, item.public_id, item.entity_id):
        found = await store.disks.find(ItemRef.parse(name), bob.id)
        assert (found.view, found.stale, found.saved_at, found.owner_id, found.owner_name) == (
            VIEW,
            False,
            None,
            ann.id,
            "ann",
        )
    with pytest.raises(NotFound):
        await store.disks.find(ItemRef.parse(f"episode_{item.public_id}"), bob.id)
    assert (await store.items.get(ann.scope(), ItemRef(id=item.id))).visibility == "published"
    assert list(await store.disks.of_items(ann.id, [item.id])) == [item.id]
    assert await store.disks.of_items(bob.id, [item.id]) == {}


async def test_publishing_is_for_those_who_see_the_item(
    store: Store, ann: Library, bob: Library
) -> None:
    item = await ann.add("The fox hunts at night.")
    with pytest.raises(NotFound):
        await store.disks.publish(bob.scope(), item, Audience.ANYONE, VIEW)
    await publish(ann, item)
    with pytest.raises(NotFound):
        await store.disks.unpublish(bob.scope(), item.id)
    assert (await store.disks.find(ItemRef(id=item.id), None)).view == VIEW


async def test_a_save_is_inactive_while_the_item_is_private_and_goes_with_it(
    store: Store, ann: Library, bob: Library
) -> None:
    item = await ann.add("The fox hunts at night.")
    await publish(ann, item)
    saved = await store.disks.save(
        bob.id, bob.id, await store.disks.find(ItemRef(id=item.id), bob.id)
    )
    assert saved.saved_at is not None
    assert (await store.disks.save(bob.id, bob.id, saved)).saved_at == saved.saved_at
    await store.disks.unpublish(ann.scope(), item.id)
    assert await store.disks.list_saved(bob.id, DiskFilter(), limit=10, offset=0) == ([], 0)
    with pytest.raises(NotFound):
        await store.disks.find(ItemRef(id=item.id), bob.id)
    with pytest.raises(NotFound):
        await store.disks.save(bob.id, bob.id, saved)
    await publish(ann, item)
    [found], total = await store.disks.list_saved(bob.id, DiskFilter(), limit=10, offset=0)
    assert (found.item_id, found.saved_at, total) == (item.id, saved.saved_at, 1)
    await store.items.delete(ann.scope(), item.id)
    assert await store.disks.list_saved(bob.id, DiskFilter(), limit=10, offset=0) == ([], 0)
    with pytest.raises(NotFound):
        await store.disks.unsave(bob.id, ItemRef(id=item.id))


async def test_unsaving_works_for_what_is_private_by_now_and_once(
    store: Store, ann: Library, bob: Library
) -> None:
    item = await ann.add("The fox hunts at night.")
    await publish(ann, item)
    await store.disks.save(bob.id, bob.id, await store.disks.find(ItemRef(id=item.id), bob.id))
    await store.disks.unpublish(ann.scope(), item.id)
    await store.disks.unsave(bob.id, ItemRef.parse(item.public_id))
    with pytest.raises(NotFound):
        await store.disks.unsave(bob.id, ItemRef.parse(item.public_id))
    await publish(ann, item)
    assert (await store.disks.list_saved(bob.id, DiskFilter(), limit=10, offset=0))[1] == 0


@pytest.mark.parametrize("how", ["update", "annotate", "renew"])
async def test_whoever_changes_the_item_its_view_is_known_to_be_old(
    store: Store, ann: Library, bob: Library, how: str
) -> None:
    item = await ann.add("The fox hunts at night.")
    await publish(ann, item)
    before = await store.disks.save(
        bob.id, bob.id, await store.disks.find(ItemRef(id=item.id), bob.id)
    )
    assert await store.disks.list_stale(bob.id) == []
    match how:
        case "update":
            await store.items.update(
                ann.scope(),
                item.id,
                {"tags": ("new",)},
                expected_revision=None,
                sections=None,
                stamp=STAMP,
                jobs=[],
            )
        case "annotate":
            await store.items.set_derived(
                [Annotation(item, {"summary": "Another."}, (("point",),))]
            )
        case "renew":
            await store.items.replace_content(
                ann.scope(),
                item.id,
                Content(new_id(), new_id(), "Another text."),
                {},
                sections=[],
                stamp=STAMP,
                jobs=[],
            )
    [stale] = await store.disks.list_stale(bob.id)
    assert stale.stale and stale.item_id == item.id
    newer = replace(VIEW, summary="About owls.")
    await store.disks.set_view(
        before, replace(VIEW, summary="Too late.")
    )  # of the change before: it is old when it comes
    assert (await store.disks.find(ItemRef(id=item.id), None)).stale
    await store.disks.set_view(stale, newer)
    found = await store.disks.find(ItemRef(id=item.id), None)
    assert (found.view, found.stale) == (newer, False)
    await store.disks.set_view(before, VIEW)
    assert (await store.disks.find(ItemRef(id=item.id), None)).view == newer


async def test_an_item_that_changed_while_its_view_was_derived_is_published_as_old(
    store: Store, ann: Library
) -> None:
    item = await ann.add("The fox hunts at night.")
    await store.items.set_derived([Annotation(item, {"summary": "Another."})])
    assert (await store.disks.publish(ann.scope(), item, Audience.MEMBERS, VIEW)).stale


async def test_lists_of_saved_disks_are_filtered_by_what_is_shown(
    store: Store, ann: Library, bob: Library
) -> None:
    for n in range(3):
        item = await ann.add(
            f"Text number {n}.", title=f"Secret {n}", tags=("hidden",), category="Hidden"
        )
        await publish(
            ann, item, replace(VIEW, title=f"Shown {n}", tags=("foxes", f"n{n}", f'a "quoted{n}'))
        )
        await store.disks.save(bob.id, bob.id, await store.disks.find(ItemRef(id=item.id), bob.id))

    async def titles(where: DiskFilter, limit: int = 10, offset: int = 0) -> tuple[list[str], int]:
        found, total = await store.disks.list_saved(bob.id, where, limit=limit, offset=offset)
        return [one.view.title for one in found], total

    assert await titles(DiskFilter()) == (["Shown 2", "Shown 1", "Shown 0"], 3)
    assert await titles(DiskFilter(), 1, 1) == (["Shown 1"], 3)
    assert await titles(DiskFilter(tag="n1")) == (["Shown 1"], 1)
    assert await titles(DiskFilter(tag="n")) == ([], 0)
    assert await titles(DiskFilter(tag='a "quoted1')) == (["Shown 1"], 1)
    assert await titles(DiskFilter(tag="quoted1")) == await titles(DiskFilter(tag=", ")) == ([], 0)
    assert await titles(DiskFilter(category="Science", text="shown 0")) == (["Shown 0"], 1)
    assert await titles(DiskFilter(category="Hidden")) == ([], 0)
    assert await titles(DiskFilter(tag="hidden")) == ([], 0)
    assert await titles(DiskFilter(text="secret")) == ([], 0)


async def test_vectors_of_views_are_of_the_view_that_is_there(
    store: Store, ann: Library, bob: Library
) -> None:
    item = await ann.add("The fox hunts at night.")
    await publish(ann, item)
    published = await store.disks.save(
        bob.id, bob.id, await store.disks.find(ItemRef(id=item.id), bob.id)
    )
    await store.disks.set_vector(published, STAMP, b"\0\1" * 16)
    assert await store.disks.view_vector(published, STAMP) == b"\0\1" * 16
    assert await store.disks.view_vector(published, "another") is None
    assert await store.disks.saved_vectors(bob.id, STAMP, 10) == [
        (item.public_id, "Shown", b"\0\1" * 16)
    ]
    await store.items.set_derived([Annotation(item, {"summary": "Another."})])
    assert await store.disks.saved_vectors(bob.id, STAMP, 10) == []
    stale = await store.disks.find(ItemRef(id=item.id), None)
    await store.disks.set_view(stale, VIEW)
    assert await store.disks.view_vector(stale, STAMP) is None
