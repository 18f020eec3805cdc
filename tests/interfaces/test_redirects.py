"""One page is one content, by whichever of the addresses that lead to it it was added; on both engines."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.interfaces.house import House, open_house
from tests.webserver import WebServer, in_turn, page, redirect, web_server

pytestmark = pytest.mark.anyio

WORDS = "".join(
    f"<p>Paragraph {n}: the otter swims along the river bank and looks for crayfish under the roots.</p>"
    for n in range(12)
)
ARTICLE = f"<html><head><title>Otters</title></head><body><article><h1>Otters</h1>{WORDS}</article></body></html>"


@pytest.fixture
def web() -> Iterator[WebServer]:
    with web_server() as server:
        server.pages |= {
            "/otters": page(ARTICLE),
            "/otters/": redirect("/otters", 301),
            "/s/1": redirect("/s/2"),
            "/s/2": redirect("/otters", 307),
            "/app": page(ARTICLE),
            "/to-app": redirect("/app"),
            "/talk.mp3": page(b"ID3" + bytes(9000), "audio/mpeg"),
            "/t": redirect("/talk.mp3"),
        }
        yield server


@pytest.fixture
async def house(
    either_engine: dict[str, str], data_dir: Path, web: WebServer
) -> AsyncIterator[House]:
    async with open_house(data_dir, fetch_allow_hosts=web.host, **either_engine) as opened:
        yield opened


async def add(client: httpx.AsyncClient, url: str) -> Any:
    answer = await client.post("/api/v1/ingest", json={"kind": "url", "url": url})
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


async def count(client: httpx.AsyncClient) -> int:
    return int((await client.get("/api/v1/items")).json()["total"])


@pytest.mark.parametrize(
    "paths",
    [
        ("/otters", "/otters/", "/s/1"),
        ("/s/1", "/otters", "/otters/"),
        ("/otters/", "/s/1", "/otters"),
    ],
)
async def test_every_address_of_a_page_leads_to_one_item(
    house: House, web: WebServer, paths: tuple[str, ...]
) -> None:
    async with house.client("owner") as owner, house.client("stranger") as stranger:
        before = await count(owner)
        mine = [await add(owner, web.url + path) for path in paths]
        assert len({each["user_item_id"] for each in mine}) == 1
        assert await count(owner) == before + 1
        asked = len(web.requests)
        theirs = [await add(stranger, web.url + path) for path in reversed(paths)]
        assert len(web.requests) == asked, "all of them are known by now"
        assert {each["content_id"] for each in theirs} == {mine[0]["content_id"]}
        assert len({each["user_item_id"] for each in theirs} - {mine[0]["user_item_id"]}) == 1


async def test_added_by_several_addresses_at_the_same_moment(house: House, web: WebServer) -> None:
    async with house.client("owner") as owner, house.client("stranger") as stranger:
        paths = ("/otters", "/otters/", "/s/1", "/s/2")
        added = await asyncio.gather(
            *(add(client, web.url + path) for path in paths for client in (owner, stranger))
        )
    assert len({each["content_id"] for each in added}) == 1
    assert len({each["user_item_id"] for each in added}) == 2


async def test_recordings_are_one_by_all_their_addresses(house: House, web: WebServer) -> None:
    async with house.client("owner") as owner:
        first, second = await add(owner, f"{web.url}/t"), await add(owner, f"{web.url}/talk.mp3")
    assert first["user_item_id"] == second["user_item_id"]


async def test_a_link_whose_end_changes_is_still_one_item(house: House, web: WebServer) -> None:
    """As with links to files, whose ends carry a signature that is new each time."""
    web.pages |= {
        "/file": in_turn(redirect("/signed/1"), redirect("/signed/2")),
        "/signed/1": page(ARTICLE),
        "/signed/2": page(ARTICLE),
    }
    async with house.client("owner") as owner:
        assert (await add(owner, f"{web.url}/file"))["user_item_id"] == (
            await add(owner, f"{web.url}/file")
        )["user_item_id"]


async def test_pages_that_a_script_shows_stay_apart(house: House, web: WebServer) -> None:
    async with house.client("owner") as owner:
        routes = [
            await add(owner, f"{web.url}{path}")
            for path in ("/app#/one", "/app#/two", "/to-app#/one", "/app")
        ]
    one, two, again, plain = (each["user_item_id"] for each in routes)
    assert (len({one, two, plain}), again) == (3, one)


async def test_a_page_fetched_again_is_what_its_other_addresses_give(
    house: House, web: WebServer
) -> None:
    async with house.client("owner") as owner, house.client("stranger") as stranger:
        mine = await add(owner, f"{web.url}/s/1")
        web.pages["/otters"] = page(ARTICLE.replace("crayfish", "salmon"))
        renewed = (await owner.post(f"/api/v1/items/{mine['user_item_id']}/refresh")).json()
        assert renewed["content_id"] != mine["content_id"]
        for path in ("/s/1", "/otters"):
            assert (await add(owner, web.url + path))["user_item_id"] == mine["user_item_id"]
            assert (await add(stranger, web.url + path))["content_id"] == renewed["content_id"]


async def test_nothing_of_an_address_stays_when_its_last_item_is_deleted(
    house: House, web: WebServer
) -> None:
    async with house.client("owner") as owner:
        first = await add(owner, f"{web.url}/s/1")
        await owner.delete(f"/api/v1/items/{first['user_item_id']}?permanent=true")
        asked = len(web.requests)
        again = await add(owner, f"{web.url}/s/1")
    assert len(web.requests) > asked
    assert (again["user_item_id"], again["content_id"]) != (
        first["user_item_id"],
        first["content_id"],
    )


def named(path: str, words: str = WORDS, by: str = '<link rel="canonical" href="{}">') -> str:
    head = f"<title>Otters</title>{by.format(path)}"
    return f"<html><head>{head}</head><body><article><h1>Otters</h1>{words}</article></body></html>"


OG = '<meta property="og:url" content="{}">'


async def test_pages_that_name_one_canonical_address_are_one_item(
    house: House, web: WebServer
) -> None:
    web.pages |= {
        "/amp/otters": page(named("/otters")),
        "/print/otters": page(named(f"{web.url}/otters", by=OG)),
        "/short": redirect("/amp/otters", 308),
    }
    paths = ("/short", "/amp/otters", "/print/otters", "/otters")
    async with house.client("owner") as owner, house.client("stranger") as stranger:
        mine = [await add(owner, web.url + path) for path in paths]
        assert len({each["user_item_id"] for each in mine}) == 1
        asked = len(web.requests)
        again = [
            await add(client, web.url + path) for client in (owner, stranger) for path in paths
        ]
        assert len(web.requests) == asked, "all of them are known by now"
        assert {each["content_id"] for each in again} == {mine[0]["content_id"]}
        item_id = mine[0]["user_item_id"]
        web.pages["/otters"] = page(ARTICLE.replace("crayfish", "salmon"))
        renewed = (await owner.post(f"/api/v1/items/{item_id}/refresh")).json()
        assert "salmon" in (await owner.get(f"/api/v1/items/{item_id}")).json()["text"]
        found = [
            await add(client, web.url + path) for client in (owner, stranger) for path in paths
        ]
        assert {each["content_id"] for each in found[:4]} == {renewed["content_id"]}
        assert {each["content_id"] for each in found[4:]} == {mine[0]["content_id"]}


@pytest.mark.parametrize("target", ["/", "http://other.example/otters", "/gone", "javascript:x"])
async def test_a_canonical_address_elsewhere_is_ignored(
    house: House, web: WebServer, target: str
) -> None:
    web.pages |= {"/a": page(named(target)), "/b": page(named(target)), "/": page(ARTICLE)}
    async with house.client("owner") as owner:
        one, two = [await add(owner, web.url + path) for path in ("/a", "/b")]
    assert one["user_item_id"] != two["user_item_id"]


async def test_a_page_cannot_speak_for_the_page_that_it_names(house: House, web: WebServer) -> None:
    web.pages |= {
        "/~mallory/": page(named("/otters", WORDS.replace("crayfish", "poison"))),
        "/one": page(named("/two")),
        "/two": page(named("/one")),
    }
    async with house.client("owner") as owner, house.client("stranger") as stranger:
        await add(owner, f"{web.url}/~mallory/")
        added = await add(stranger, f"{web.url}/otters")
        text = (await stranger.get(f"/api/v1/items/{added['user_item_id']}")).json()["text"]
        assert "crayfish" in text and "poison" not in text
        circle = {
            (await add(owner, f"{web.url}{path}"))["user_item_id"] for path in ("/one", "/two")
        }
        assert len(circle) == 1
