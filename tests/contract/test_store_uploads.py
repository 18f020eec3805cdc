"""Uploads and feeds in the store, on both engines."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from commonplace.errors import NotFound
from commonplace.model import Subscription, Upload, new_id, now
from commonplace.store import Store
from tests.contract.library import Library

pytestmark = pytest.mark.anyio


def upload_of(library: Library, hours: float = 1) -> Upload:
    return Upload(
        new_id(),
        library.id,
        "token",
        "notes.md",
        "text/markdown",
        3_000_000_000,
        now() + timedelta(hours=hours),
    )


def feed_of(library: Library, **changes: object) -> Subscription:
    return replace(
        Subscription(new_id(), library.id, "https://example.org/feed", "News", library.id),
        **changes,
    )  # type: ignore[arg-type]


async def test_an_upload_comes_back_as_it_was_promised(store: Store, ann: Library) -> None:
    upload = upload_of(ann)
    await store.uploads.create(upload)
    assert await store.uploads.get(upload.id) == upload
    with pytest.raises(NotFound):
        await store.uploads.get(new_id())


async def test_the_first_item_that_came_of_it_stays(store: Store, ann: Library) -> None:
    upload = upload_of(ann)
    await store.uploads.create(upload)
    assert [await store.uploads.finish(upload, item) for item in ("first", "second")] == [
        "first",
        "first",
    ]
    with pytest.raises(NotFound):
        await store.uploads.finish(upload_of(ann), "first")


async def test_only_what_is_to_be_queued_is_awaited_until_it_has_an_item(
    store: Store, ann: Library, bob: Library
) -> None:
    uploads = [replace(upload_of(ann), on_arrival={"folder": ""}) for _ in range(3)] + [
        upload_of(ann)
    ]
    for upload in uploads:
        await store.uploads.create(upload)
    assert await store.uploads.get(uploads[0].id) == uploads[0]
    await store.uploads.finish(uploads[0], "first", {"status": "ready"})
    assert (await store.uploads.get(uploads[0].id)).answer == {"status": "ready"}
    assert {upload.id for upload in await store.uploads.list_awaited()} == {
        uploads[1].id,
        uploads[2].id,
    }
    await store.uploads.expire(bob.id)
    assert len(await store.uploads.list_awaited()) == 2
    await store.uploads.expire(ann.id)
    assert await store.uploads.list_awaited() == []


async def test_what_is_spent_and_what_is_not(store: Store, ann: Library) -> None:
    read, written, waiting = [
        await ann.add(name, transcription_status=status)
        for name, status in (("read", None), ("written", "done"), ("waiting", "queued"))
    ]
    uploads = {
        name: upload_of(ann, hours)
        for name, hours in (
            ("open", 1),
            ("expired", -1),
            ("read", -1),
            ("written", 1),
            ("waiting", -1),
            ("deleted", 1),
        )
    }
    for upload in uploads.values():
        await store.uploads.create(upload)
    for name, item in (
        ("read", read.id),
        ("written", written.id),
        ("waiting", waiting.id),
        ("deleted", new_id()),
    ):
        await store.uploads.finish(uploads[name], item)

    async def spent(keep: bool) -> set[str]:
        ids = {upload.id for upload in await store.uploads.list_disposable(now(), keep=keep)}
        return {name for name, upload in uploads.items() if upload.id in ids}

    assert await spent(keep=False) == {"expired", "read", "written", "deleted"}
    assert await spent(keep=True) == {"expired", "deleted"}
    await store.uploads.expire(new_id())
    assert await spent(keep=True) == {"expired", "deleted"}
    await store.uploads.expire(ann.id)
    assert await spent(keep=True) == {"open", "expired", "deleted"}
    await store.uploads.delete([uploads["open"]])
    await store.uploads.delete([uploads["expired"], uploads["deleted"]])
    assert await spent(keep=True) == set()


async def test_a_feed_is_one_for_its_address_folder_and_token(
    store: Store, ann: Library, bob: Library
) -> None:
    folder = await ann.folder("work")
    first = await store.feeds.create(feed_of(ann))
    assert await store.feeds.create(feed_of(ann)) == first
    filed = await store.feeds.create(feed_of(ann, folder_id=folder, token_id="t"))
    await store.feeds.create(feed_of(bob))
    assert await store.feeds.list_feeds(ann.id, None) == [first, filed]
    assert await store.feeds.list_feeds(ann.id, "t") == [filed]
    await store.folders.delete(ann.scope(), folder, cascade_items=False)
    assert await store.feeds.list_feeds(ann.id, None) == [first]
    await store.feeds.delete(first)
    with pytest.raises(NotFound):
        await store.feeds.delete(first)


async def test_a_feed_is_leased_once_when_its_time_has_come(store: Store, ann: Library) -> None:
    feed = await store.feeds.create(feed_of(ann, poll_at=now() - timedelta(seconds=1)))
    await store.feeds.create(
        feed_of(ann, url="https://example.org/later", poll_at=now() + timedelta(hours=1))
    )
    leased = await store.feeds.lease(60)
    assert leased == feed
    assert await store.feeds.lease(60) is None
    await store.feeds.record_poll(
        feed, title="New title", error="Down", poll_at=now() - timedelta(seconds=1), validators={}
    )
    again = await store.feeds.lease(60)
    assert again and (again.id, again.title, again.error, again.polled_at is not None) == (
        feed.id,
        "New title",
        "Down",
        True,
    )


async def test_entries_are_taken_when_they_came_or_were_tried_often(
    store: Store, ann: Library
) -> None:
    feed = await store.feeds.create(feed_of(ann))
    await store.feeds.record_entries(feed, ["good", "old"], ok=True)
    for _ in range(2):
        await store.feeds.record_entries(feed, ["bad"], ok=False)
    await store.feeds.record_entries(feed, ["worse"], ok=False)
    assert await store.feeds.handled_entries(feed, tries=2) == {"good", "old", "bad"}
    await store.feeds.delete(feed)
    await store.feeds.record_entries(feed, ["late"], ok=True)
    assert await store.feeds.handled_entries(feed, tries=1) == set()


async def test_a_backup_holds_them(store: Store, ann: Library, tmp_path: Path) -> None:
    upload, feed = upload_of(ann), await store.feeds.create(feed_of(ann))
    await store.uploads.create(upload)
    await store.feeds.record_entries(feed, ["seen"], ok=True)
    await store.dump(tmp_path / "backup")
    await store.load(tmp_path / "backup", replace=True)
    assert await store.uploads.get(upload.id) == upload
    assert await store.feeds.list_feeds(ann.id, None) == [feed]
    assert await store.feeds.handled_entries(feed, tries=1) == {"seen"}
