"""Feeds that are followed: what is new comes by itself, once, with the subscriber's rights."""

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from commonplace.core.people.tokens import NewToken
from commonplace.model import now
from tests.interfaces.house import House, open_house
from tests.webserver import WebServer, Wire, in_turn, page, raw, web_server

pytestmark = pytest.mark.anyio


def article(n: int) -> str:
    body = "".join(
        f"<p>Issue {n}, paragraph {k}: the otter swims along the river bank and looks for crayfish under the roots.</p>"
        for k in range(12)
    )
    return f"<html><head><title>Issue {n}</title></head><body><article><h1>Issue {n}</h1>{body}</article></body></html>"


def rss(base: str, numbers: list[int]) -> str:
    entries = "".join(
        f"<item><title>Issue {n}</title><link>{base}/{n}</link><guid>issue-{n}</guid>"
        f"<pubDate>Sat, {n:02} Mar 2025 08:00:00 GMT</pubDate></item>"
        for n in numbers
    )
    return f'<?xml version="1.0"?><rss version="2.0"><channel><title>River news</title>{entries}</channel></rss>'


class Newspaper:
    def __init__(self, web: WebServer) -> None:
        self.web = web
        self.url = f"{web.url}/feed.xml"

    def publish(self, *numbers: int) -> None:
        """The feed with these entries, newest last, as some write them."""
        self.web.pages |= {f"/{n}": page(article(n)) for n in numbers}
        self.web.pages["/feed.xml"] = page(rss(self.web.url, list(numbers)), "application/rss+xml")


@pytest.fixture
def newspaper() -> Iterator[Newspaper]:
    with web_server() as web:
        yield Newspaper(web)


@pytest.fixture
async def house(data_dir: Path, newspaper: Newspaper) -> AsyncIterator[House]:
    async with open_house(data_dir, fetch_allow_hosts=newspaper.web.host) as opened:
        yield opened


@pytest.fixture
async def owner(house: House) -> AsyncIterator[httpx.AsyncClient]:
    async with house.client("owner") as client:
        yield client


async def follow(client: httpx.AsyncClient, url: str, **more: Any) -> Any:
    response = await client.post("/api/v1/feeds", json={"url": url, **more})
    assert response.status_code == 201, response.text
    return response.json()


async def poll(house: House) -> int:
    visits = 0
    while await house.app.feeds.poll_next():
        visits += 1
        assert visits < 10
    return visits


def an_hour_later(monkeypatch: pytest.MonkeyPatch, hours: float = 2) -> None:
    for module in ("commonplace.store.feeds", "commonplace.core.items.feeds"):
        monkeypatch.setattr(f"{module}.now", lambda: now() + timedelta(hours=hours))


async def titles(client: httpx.AsyncClient, **query: Any) -> list[str]:
    return [
        item["title"] for item in (await client.get("/api/v1/items", params=query)).json()["items"]
    ]


def conditional(newspaper: Newspaper, etag: str = '"one"') -> list[int]:
    """The feed as servers with manners give it; the statuses that were answered."""
    given: list[int] = []
    whole = newspaper.web.pages["/feed.xml"]

    def answer(wire: Wire) -> None:
        known = wire.request.headers.get("if-none-match") == etag
        given.append(304 if known else 200)
        if known:
            raw(f"HTTP/1.1 304 Not Modified\r\nETag: {etag}\r\n\r\n".encode())(wire)
        else:
            with_etag = Wire(wire.request, _Labelled(wire.sock, etag), wire.closing)  # type: ignore[arg-type]
            whole(with_etag)

    newspaper.web.pages["/feed.xml"] = answer
    return given


class _Labelled:
    """A socket that adds the header to what is sent through it."""

    def __init__(self, sock: Any, etag: str) -> None:
        self._sock, self._etag = sock, etag

    def sendall(self, data: bytes) -> None:
        self._sock.sendall(data.replace(b"\r\n", f"\r\nETag: {self._etag}\r\n".encode(), 1))


async def test_a_feed_that_has_not_changed_is_not_sent_again(
    house: House, owner: httpx.AsyncClient, newspaper: Newspaper, monkeypatch: pytest.MonkeyPatch
) -> None:
    newspaper.publish(1)
    given = conditional(newspaper)
    await follow(owner, newspaper.url)
    for hours in (2, 4, 6):
        assert await poll(house) == 1
        an_hour_later(monkeypatch, hours)
    assert given == [200, 200, 304, 304], "one to look whether it is a feed, one to take it in"
    assert await titles(owner) == ["Issue 1"]
    [feed] = (await owner.get("/api/v1/feeds")).json()["feeds"]
    assert (feed["title"], feed["error"]) == ("River news", None)
    newspaper.publish(1, 2)
    given = conditional(newspaper, '"two"')
    assert await poll(house) == 1
    assert (given, await titles(owner)) == ([200], ["Issue 2", "Issue 1"])


async def test_what_could_not_be_had_is_tried_again_although_the_feed_has_not_changed(
    house: House, owner: httpx.AsyncClient, newspaper: Newspaper, monkeypatch: pytest.MonkeyPatch
) -> None:
    newspaper.publish(1)
    newspaper.web.pages["/1"] = in_turn(page("busy", status=500), page(article(1)))
    given = conditional(newspaper)
    await follow(owner, newspaper.url)
    await poll(house)
    assert await titles(owner) == []
    an_hour_later(monkeypatch)
    await poll(house)
    assert (given, await titles(owner)) == ([200, 200, 200], ["Issue 1"])


async def test_the_newest_come_first_and_then_only_what_is_new(
    house: House, owner: httpx.AsyncClient, newspaper: Newspaper, monkeypatch: pytest.MonkeyPatch
) -> None:
    newspaper.publish(1, 2, 3, 4)
    feed = await follow(owner, newspaper.url, newest=2)
    assert (feed["title"], feed["polled_at"], feed["error"]) == ("River news", None, None)
    assert await poll(house) == 1
    assert await titles(owner) == ["Issue 4", "Issue 3"]
    assert await poll(house) == 0, "before its time"
    newspaper.publish(3, 4, 5)
    an_hour_later(monkeypatch)
    assert await poll(house) == 1
    assert await titles(owner) == ["Issue 5", "Issue 4", "Issue 3"]


async def test_what_somebody_deleted_does_not_come_back(
    house: House, owner: httpx.AsyncClient, newspaper: Newspaper, monkeypatch: pytest.MonkeyPatch
) -> None:
    newspaper.publish(1)
    await follow(owner, newspaper.url)
    await poll(house)
    [item] = (await owner.get("/api/v1/items")).json()["items"]
    await owner.delete(f"/api/v1/items/{item['id']}")
    an_hour_later(monkeypatch)
    await poll(house)
    assert await titles(owner) == []


async def test_entries_are_filed_where_the_subscriber_says(
    house: House, owner: httpx.AsyncClient, newspaper: Newspaper
) -> None:
    newspaper.publish(1)
    await follow(owner, newspaper.url, folder_id=house.folders["Blue"])
    async with house.client("one_folder") as red:
        await follow(red, newspaper.url)
        assert await poll(house) == 2
        assert await titles(red) == ["Issue 1"]
    assert await titles(owner, folder_id=house.folders["Blue"]) == ["Issue 1"]


async def test_a_folder_out_of_scope_reads_like_none(house: House, newspaper: Newspaper) -> None:
    newspaper.publish(1)
    async with house.client("two_folder") as client:
        answers = [
            await client.post("/api/v1/feeds", json={"url": newspaper.url, "folder_id": folder})
            for folder in (house.folders["Green"], house.folders["Theirs"])
        ]
    assert [answer.status_code for answer in answers] == [404, 404]


async def test_following_again_is_the_same_feed_and_ending_it_ends_it(
    house: House, owner: httpx.AsyncClient, newspaper: Newspaper
) -> None:
    newspaper.publish(1)
    feed = await follow(owner, newspaper.url)
    assert (await follow(owner, newspaper.url))["id"] == feed["id"]
    assert (await owner.get("/api/v1/feeds")).json()["total"] == 1
    assert (await owner.delete(f"/api/v1/feeds/{feed['id']}")).status_code == 200
    assert (await owner.delete(f"/api/v1/feeds/{feed['id']}")).status_code == 404
    assert await poll(house) == 0


def site(*feeds: str) -> Any:
    links = "".join(
        f"<link rel=alternate type='application/rss+xml' href='{feed}'>" for feed in feeds
    )
    return page(f"<html><head><title>River</title>{links}</head><body>News</body></html>")


@pytest.mark.parametrize("path", ["/", "/about/us"])
async def test_the_feed_of_a_site_is_found_by_its_page(
    house: House, owner: httpx.AsyncClient, newspaper: Newspaper, path: str
) -> None:
    newspaper.publish(1)
    newspaper.web.pages[path] = site("/feed.xml", "/comments/feed")
    feed = await follow(owner, newspaper.web.url + path)
    assert (feed["url"], feed["title"]) == (newspaper.url, "River news")
    newspaper.web.pages[path] = site()  # it names none: the usual places
    assert (await follow(owner, newspaper.web.url + path))["id"] == feed["id"]


async def test_several_feeds_of_a_site_are_named(
    house: House, owner: httpx.AsyncClient, newspaper: Newspaper
) -> None:
    newspaper.web.pages["/"] = site("/news.xml", "/sport.xml")
    answer = await owner.post("/api/v1/feeds", json={"url": newspaper.web.url})
    assert (answer.status_code, answer.json()["error"]) == (422, "ingest_failed")
    named = [f"{newspaper.web.url}/{name}.xml" for name in ("news", "sport")]
    assert answer.json()["feeds"] == named
    assert all(url in answer.json()["message"] for url in named)


async def test_entries_bring_their_author_date_and_categories(
    house: House, owner: httpx.AsyncClient, newspaper: Newspaper
) -> None:
    newspaper.publish(1)
    said = "<dc:creator>Ada Heron</dc:creator><category>Rivers</category></item>"
    feed = rss(newspaper.web.url, [1]).replace("</item>", said)
    feed = feed.replace("<rss ", "<rss xmlns:dc='http://purl.org/dc/elements/1.1/' ")
    newspaper.web.pages["/feed.xml"] = page(feed, "application/rss+xml")
    await follow(owner, newspaper.url)
    await poll(house)
    [item] = (await owner.get("/api/v1/items")).json()["items"]
    assert (item["author"], item["published_at"][:10], item["tags"]) == (
        "Ada Heron",
        "2025-03-01",
        ["Rivers"],
    )


WHOLE = "<p>" + "The otter swims along the bank and looks for crayfish. " * 30 + "</p>"


@pytest.mark.parametrize("shown", [None, "<p>Subscribe to read on about the otter.</p>" * 9])
async def test_the_text_in_the_feed_is_kept_where_the_page_says_less(
    house: House, owner: httpx.AsyncClient, newspaper: Newspaper, shown: str | None
) -> None:
    newspaper.publish(1)
    content = f"<description><![CDATA[{WHOLE}]]></description></item>"
    newspaper.web.pages["/feed.xml"] = page(
        rss(newspaper.web.url, [1]).replace("</item>", content), "application/rss+xml"
    )
    if shown:
        newspaper.web.pages["/1"] = page(f"<title>Issue 1</title><article>{shown}</article>")
    else:
        del newspaper.web.pages["/1"]
    await follow(owner, newspaper.url)
    await poll(house)
    [item] = (await owner.get("/api/v1/items")).json()["items"]
    whole = (await owner.get(f"/api/v1/items/{item['user_item_id']}")).json()
    assert (whole["title"], whole["url"]) == ("Issue 1", f"{newspaper.web.url}/1")
    assert whole["text"].count("looks for crayfish") == 30
    assert (await owner.get("/api/v1/feeds")).json()["feeds"][0]["error"] is None


async def test_only_a_feed_can_be_followed(
    house: House, owner: httpx.AsyncClient, newspaper: Newspaper
) -> None:
    newspaper.web.pages["/page"] = page(article(1))
    for url in (
        f"{newspaper.web.url}/page",
        f"{newspaper.web.url}/nowhere",
        "http://10.0.0.1/feed",
    ):
        answer = await owner.post("/api/v1/feeds", json={"url": url})
        assert (answer.status_code, answer.json()["error"]) == (422, "ingest_failed"), url
    assert (await owner.get("/api/v1/feeds")).json()["total"] == 0


async def test_an_entry_that_cannot_be_had_is_told_of_tried_thrice_and_harms_no_other(
    house: House, owner: httpx.AsyncClient, newspaper: Newspaper, monkeypatch: pytest.MonkeyPatch
) -> None:
    newspaper.publish(1, 2)
    del newspaper.web.pages["/1"]
    await follow(owner, newspaper.url)
    for hours in range(5):
        an_hour_later(monkeypatch, 2.0 * hours)
        assert await poll(house) == 1
        asked = sum(request.path == "/1" for request in newspaper.web.requests)
        assert asked == min(hours + 1, 3)
        [feed] = (await owner.get("/api/v1/feeds")).json()["feeds"]
        assert ("Issue 1" in (feed["error"] or "")) == (hours < 3)
    assert await titles(owner) == ["Issue 2"]


async def test_a_feed_that_is_down_says_why_and_is_visited_again(
    house: House, owner: httpx.AsyncClient, newspaper: Newspaper, monkeypatch: pytest.MonkeyPatch
) -> None:
    newspaper.publish(1)
    await follow(owner, newspaper.url)
    newspaper.web.pages["/feed.xml"] = page("gone", status=500)
    await poll(house)
    assert "500" in (await owner.get("/api/v1/feeds")).json()["feeds"][0]["error"]
    newspaper.publish(1)
    an_hour_later(monkeypatch)
    await poll(house)
    [feed] = (await owner.get("/api/v1/feeds")).json()["feeds"]
    assert feed["error"] is None
    assert await titles(owner) == ["Issue 1"]


async def test_a_revoked_token_brings_nothing_in(
    house: House, owner: httpx.AsyncClient, newspaper: Newspaper
) -> None:
    newspaper.publish(1)
    token, secret = await house.app.people.create_token(house.owner, NewToken("feeder", write=True))
    async with house.client(token=secret) as client:
        await follow(client, newspaper.url)
    await house.app.people.revoke_token(house.owner, token.id)
    await poll(house)
    assert await titles(owner) == []
    assert "revoked" in (await owner.get("/api/v1/feeds")).json()["feeds"][0]["error"]


async def test_of_two_workers_one_visits(
    house: House, owner: httpx.AsyncClient, newspaper: Newspaper
) -> None:
    newspaper.publish(1)
    await follow(owner, newspaper.url)
    assert await house.app.store.feeds.lease(60) is not None
    assert await house.app.store.feeds.lease(60) is None
