"""Pages that are fetched again: unchanged ones cost nothing, and what was found is told with its date."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.interfaces.house import House, open_house
from tests.interfaces.test_redirects import ARTICLE, add
from tests.interfaces.test_web_people import browser
from tests.webserver import Behaviour, WebServer, Wire, page, redirect, web_server

pytestmark = pytest.mark.anyio


def tagged(text: str, tag: str) -> Behaviour:
    """A page that is sent only to those who do not have it."""

    def answer(wire: Wire) -> None:
        known = wire.request.headers.get("if-none-match") == tag
        (page("", status=304, ETag=tag) if known else page(text, ETag=tag))(wire)

    return answer


@pytest.fixture
def web() -> Iterator[WebServer]:
    with web_server() as server:
        server.pages |= {"/otters": tagged(ARTICLE, '"1"'), "/short": redirect("/otters", 301)}
        yield server


@pytest.fixture
async def house(
    either_engine: dict[str, str], data_dir: Path, web: WebServer
) -> AsyncIterator[House]:
    async with open_house(data_dir, fetch_allow_hosts=web.host, **either_engine) as opened:
        yield opened


@pytest.fixture
def embedded(house: House, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    calls = list[Any]()
    documents = house.app.embedder.documents

    async def count(texts: Any) -> Any:
        calls.append(texts)
        return await documents(texts)

    monkeypatch.setattr(house.app.embedder, "documents", count)
    return calls


async def refresh(client: httpx.AsyncClient, item_id: str) -> Any:
    return (await client.post(f"/api/v1/items/{item_id}/refresh")).json()


@pytest.mark.parametrize("path", ["/otters", "/short"])
async def test_an_unchanged_page_costs_neither_body_nor_vectors(
    house: House, web: WebServer, embedded: list[Any], path: str
) -> None:
    async with house.client("owner") as owner:
        item = await add(owner, web.url + path)
        embedded.clear()
        for _ in range(2):
            found = await refresh(owner, item["user_item_id"])
            assert (found["source_status"], found["content_id"]) == (
                "unchanged",
                item["content_id"],
            )
        assert found["source_status_since"] < found["source_checked_at"]
        assert web.requests[-1].headers["if-none-match"] == '"1"'
        # another answer with the same text
        web.pages["/otters"] = tagged(ARTICLE.replace("</body>", "<!-- new --></body>"), '"2"')
        found = await refresh(owner, item["user_item_id"])
        assert found["source_status"] == "unchanged" and not embedded
        assert (await refresh(owner, item["user_item_id"]))["source_status"] == "unchanged"
        assert web.requests[-1].headers["if-none-match"] == '"2"'
        assert not (await owner.get(f"/api/v1/items/{item['user_item_id']}/versions")).json()[
            "versions"
        ]


async def test_what_was_found_is_told(house: House, web: WebServer) -> None:
    async with house.client("owner") as owner:
        item_id = (await add(owner, f"{web.url}/otters"))["user_item_id"]
        item = (await owner.get(f"/api/v1/items/{item_id}")).json()
        assert (item["source_status"], item["source_checked_at"]) == (None, None)
        web.pages["/otters"] = tagged(ARTICLE.replace("crayfish", "salmon"), '"2"')
        assert (await refresh(owner, item_id))["source_status"] == "changed"
        web.pages |= {"/otters": redirect("/new", 301), "/new": page(ARTICLE)}
        assert (await refresh(owner, item_id))["source_status"] == "moved"
        web.pages["/otters"] = page("gone", status=410)
        failed = await refresh(owner, item_id)
        assert failed["error"] == "ingest_failed" and "410" in failed["message"]
        item = (await owner.get(f"/api/v1/items/{item_id}")).json()
        assert item["source_status"] == "gone" and "crayfish" in item["text"]
    async with await browser(house, house.owner.person_id) as person:
        assert "page gone" in (await person.get(f"/items/{item_id}")).text


async def test_all_pages_are_refreshed_and_those_gone_twice_are_archived(
    house: House, web: WebServer
) -> None:
    async with house.client("owner") as owner:
        ids = {}
        for path in ("/otters", "/herons"):
            web.pages[path] = tagged(ARTICLE.replace("Otters", path[1:]), f'"{path}"')
            ids[path] = (await add(owner, web.url + path))["user_item_id"]
        web.pages["/herons"] = page("gone", status=404)
        updates, seen = house.app.page_updates, list[tuple[int, int]]()
        for archived in (0, 1):
            done = await updates.refresh_all(
                house.owner, lambda done, total: seen.append((done, total)), pause=0
            )
            assert done.counts == {"unchanged": 1, "gone": 1} and done.archived == archived
        assert seen == [(1, 2), (2, 2)] * 2
        item = (await owner.get(f"/api/v1/items/{ids['/herons']}")).json()
        assert item["archived"] and item["text"]
        assert not (await owner.get(f"/api/v1/items/{ids['/otters']}")).json()["archived"]


# -- pages that a browser sent


def sent(html: str, path: str = "http://127.0.0.1:9/club") -> dict[str, str]:
    return {"kind": "url", "url": path, "html": html}


async def test_a_page_of_a_browser_is_private_and_not_fetched(house: House, web: WebServer) -> None:
    url = f"{web.url}/otters"
    club = ARTICLE.replace("crayfish", "secret eels")
    async with house.client("owner") as owner, house.client("stranger") as stranger:
        answer = await owner.post("/api/v1/ingest", json=sent(club, url))
        assert answer.status_code == 201 and not web.requests
        mine = answer.json()
        item = (await owner.get(f"/api/v1/items/{mine['user_item_id']}")).json()
        assert "secret eels" in item["text"] and (item["url"], item["title"]) == (url, "Otters")
        theirs = await add(stranger, url)
        assert theirs["content_id"] != mine["content_id"]
        text = (await stranger.get(f"/api/v1/items/{theirs['user_item_id']}")).json()["text"]
        assert "crayfish" in text and "secret" not in text
        assert (await add(owner, url))["user_item_id"] == mine["user_item_id"]
        assert (await owner.get(f"/api/v1/items/{mine['user_item_id']}/page")).text == club
        page = f"/api/v1/items/{theirs['user_item_id']}/page"
        assert "secret" not in (await stranger.get(page)).text


async def test_a_page_of_a_browser_becomes_a_version(house: House, web: WebServer) -> None:
    url = f"{web.url}/otters"
    async with house.client("owner") as owner:
        first = await add(owner, url)
        club = ARTICLE.replace("crayfish", "eels")
        for _ in range(2):
            again = await owner.post("/api/v1/ingest", json=sent(club, url))
            assert again.status_code == 200
            assert again.json()["user_item_id"] == first["user_item_id"]
        path = f"/api/v1/items/{first['user_item_id']}"
        assert "eels" in (await owner.get(path)).json()["text"]
        [version] = (await owner.get(f"{path}/versions")).json()["versions"]
        old = (await owner.get(f"{path}/versions/{version['revision']}")).json()
        assert "crayfish" in old["text"]


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "text", "title": "A", "text": "x" * 30, "html": "<p>a"},
        sent(""),
        sent("é" * 4_100_000),
        sent("<p></p>"),
        sent(ARTICLE, "file:///etc/passwd"),
    ],
    ids=["text", "empty", "large", "nothing", "file"],
)
async def test_pages_that_are_refused(house: House, body: dict[str, str]) -> None:
    async with house.client("owner") as owner:
        before = (await owner.get("/api/v1/items")).json()["total"]
        answer = await owner.post("/api/v1/ingest", json=body)
        assert 400 <= answer.status_code < 500, answer.text
        assert (await owner.get("/api/v1/items")).json()["total"] == before


async def test_the_largest_page_is_taken(house: House) -> None:
    comment = "<!--" + "x" * (7_900_000 - len(ARTICLE)) + "-->"
    async with house.client("owner") as owner:
        answer = await owner.post("/api/v1/ingest", json=sent(ARTICLE + comment))
        assert answer.status_code == 201, answer.text
