"""One folder, token or feed, as its list shows it; what is out of reach reads like absent."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from commonplace.errors import CapabilityDenied, ForbiddenScope, NotFound
from commonplace.model import Caller, Item, Subscription, new_id, now
from tests.interfaces.house import House, open_house

pytestmark = pytest.mark.anyio


@pytest.fixture
async def house(data_dir: Path) -> AsyncIterator[House]:
    async with open_house(data_dir) as opened:
        yield opened


async def caller(house: House, character: str) -> Caller:
    return await house.app.access.identify(house.tokens[character])


async def refused(read: Callable[..., Awaitable[Any]], *args: Any) -> str:
    with pytest.raises(NotFound) as error:
        await read(*args)
    return error.value.message


async def test_a_folder(house: House) -> None:
    folders = house.app.folders
    await house.add("Zebra", folder="Red")
    [red] = [one for one in await folders.list_folders(house.owner) if one.name == "Red"]
    assert await folders.get(house.owner, red.id) == red and red.item_count == 1
    one = await caller(house, "one_folder")
    assert (await folders.get(one, red.id)).name == "Red"
    assert {
        await refused(folders.get, one, house.folders["Green"]),
        await refused(folders.get, house.owner, house.folders["Theirs"]),
        await refused(folders.get, house.owner, "nothing"),
    } == {"Folder not found"}


async def test_a_token(house: House) -> None:
    people = house.app.people
    for token in await people.tokens(house.owner):
        assert await people.token(house.owner, token.id) == token
    theirs = (await people.tokens(house.stranger))[0]
    assert await refused(people.token, house.owner, theirs.id) == "Token not found"
    with pytest.raises(CapabilityDenied):
        await people.token(await caller(house, "reader"), theirs.id)
    with pytest.raises(ForbiddenScope):
        await people.token(await caller(house, "one_folder"), theirs.id)


async def test_a_feed(house: House) -> None:
    one = await caller(house, "one_folder")
    for by in (house.owner, one):
        await house.app.store.feeds.create(
            Subscription(
                new_id(), by.library_id, f"https://{new_id()}/", "Feed", by.person_id, by.token_id
            )
        )
    feeds = house.app.feeds
    all_of_them, [own] = await feeds.all(house.owner), await feeds.all(one)
    for feed in all_of_them:
        assert await feeds.get(house.owner, feed.id) == feed
    assert await feeds.get(one, own.id) == own
    [other] = [feed for feed in all_of_them if feed.id != own.id]
    for by, feed_id in ((one, other.id), (house.stranger, own.id), (house.owner, "nothing")):
        assert await refused(feeds.get, by, feed_id) == "Feed not found"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2026-03-01", "2026-03-01T00:00:00+00:00"),
        ("2026-03-01T10:00:00+00:00", "2026-03-01T10:00:00+00:00"),
        ("last week", None),
        (7, None),
        (None, None),
    ],
)
async def test_the_date_of_a_source(house: House, written: Any, read: str | None) -> None:
    item_id, _ = await house.add("Zebra")
    await house.app.store.items.update(
        house.owner.scope,
        item_id,
        {"metadata": {"published_at": written}},
        expected_revision=None,
        sections=None,
        stamp=house.app.embedder.stamp,
        jobs=(),
    )
    [hit] = (await house.app.search.search(house.owner, "zebra")).hits
    [disk] = await house.app.disks.hits(house.owner, [(hit.score, hit.passage)])
    item: Item = (await house.app.library.read(house.owner, item_id)).item
    for each in (hit.passage, disk, item):
        assert (each.published_at and each.published_at.isoformat()) == read
    assert (disk.item_id, disk.created_at, disk.url) == (item_id, item.created_at, None)
    assert item.created_at <= now()
