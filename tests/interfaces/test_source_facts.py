"""Author, date and language of what was saved: shown by every interface, and filters of search."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.interfaces.house import House, call_tool, open_house
from tests.interfaces.test_ingest import ARTICLE, BODY
from tests.webserver import WebServer, page, web_server

pytestmark = pytest.mark.anyio

HEAD = '<meta name="author" content="Ann Bee"><meta property="article:published_time" content="2019-03-02">'
GERMAN = (
    "<html><head><title>Otter</title></head><body><article><h1>Otter</h1>"
    + "<p>Der Fischotter schwimmt am Ufer entlang und sucht Krebse unter den Wurzeln der Erlen.</p>"
    * 12
    + "</article></body></html>"
)


@pytest.fixture
def web() -> Iterator[WebServer]:
    with web_server() as server:
        server.pages |= {
            "/otters": page(ARTICLE.replace("<head>", f"<head>{HEAD}")),
            "/german": page(GERMAN),
        }
        yield server


@pytest.fixture
async def house(data_dir: Path, web: WebServer) -> AsyncIterator[House]:
    async with open_house(data_dir, fetch_allow_hosts=web.host) as house:
        yield house


async def test_a_page_tells_author_date_and_language_and_is_found_by_them(
    house: House, web: WebServer
) -> None:
    async with house.client("owner") as client:
        added = await client.post(
            "/api/v1/ingest", json={"kind": "url", "url": f"{web.url}/otters"}
        )
        item_id = added.json()["user_item_id"]
        item = (await client.get(f"/api/v1/items/{item_id}")).json()
        assert (item["author"], item["language"]) == ("Ann Bee", "en")
        assert item["published_at"].startswith("2019-03-02")
        tool = await call_tool(client, "get_item", {"item_id": item_id})
        tool = tool["result"]["structuredContent"]
        assert (tool["author"], tool["language"]) == ("Ann Bee", "en")
        for wanted, found in (
            ({"author": "bee"}, 1),
            ({"author": "cy"}, 0),
            ({"published_after": "2019-03-01", "published_before": "2019-03-03"}, 1),
            ({"published_after": "2019-03-03"}, 0),
            ({"text_language": "en"}, 1),
            ({"text_language": "de"}, 0),
        ):
            answer = await client.post("/api/search", json={"query": "otter", **wanted})
            assert answer.json()["total"] == found, wanted


async def test_the_language_is_read_off_the_text_where_it_is_not_declared(
    house: House, web: WebServer
) -> None:
    async with house.client("owner") as client:
        await client.post("/api/v1/ingest", json={"kind": "url", "url": f"{web.url}/german"})
        text = "Der Eisvogel sitzt auf einem Ast über dem Bach und wartet auf kleine Fische."
        note = {"kind": "text", "title": "Eisvogel", "text": text}
        added = (await client.post("/api/v1/ingest", json=note)).json()
        found = await client.post("/api/search", json={"query": "Ufer", "text_language": "de"})
        assert found.json()["total"] == 2
        english = "The kingfisher sits on a branch above the brook and waits for small fish."
        item_id = added["user_item_id"]
        changed = await client.patch(f"/api/v1/items/{item_id}", json={"text": english})
        assert changed.json()["language"] == "en"


async def test_refresh_takes_over_what_the_page_says_now(house: House, web: WebServer) -> None:
    async with house.client("owner") as client:
        added = await client.post(
            "/api/v1/ingest", json={"kind": "url", "url": f"{web.url}/otters"}
        )
        item_id = added.json()["user_item_id"]
        again = HEAD.replace("Ann Bee", "Bo Cy")
        web.pages["/otters"] = page(
            f"<html lang=en><head>{again}</head><body>{BODY * 2}</body></html>"
        )
        refreshed = (await client.post(f"/api/v1/items/{item_id}/refresh")).json()
        assert refreshed["author"] == "Bo Cy"
