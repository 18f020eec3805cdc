"""Crawls of sites: every page once, politely, within the site; again only what has changed."""

import gzip
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from commonplace.model import now
from commonplace.ports import Embedder
from tests.interfaces.house import House, call_tool, open_house
from tests.webserver import Behaviour, WebServer, Wire, page, redirect, web_server

pytestmark = pytest.mark.anyio

LIST = "application/xml"


def sitemap(*urls: str, modified: str = "", nested: bool = False) -> str:
    outer, inner = ("sitemapindex", "sitemap") if nested else ("urlset", "url")
    dated = f"<lastmod>{modified}</lastmod>" if modified else ""
    entries = "".join(f"<{inner}><loc>{url}</loc>{dated}</{inner}>" for url in urls)
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return f'<?xml version="1.0"?><{outer} xmlns="{space}">{entries}</{outer}>'


def text_of(name: str) -> str:
    return " ".join(
        f"Sentence {n} of {name} tells how the otter of chapter {name} swims along the river bank."
        for n in range(8)
    )


class Site:
    """A documentation site on this machine, that says 304 to those who know a page."""

    def __init__(self, web: WebServer) -> None:
        self.web, self.url = web, web.url
        self.versions: dict[str, int] = {}
        self.answered: list[int] = []
        web.pages.clear()
        self.robots("")

    def robots(self, text: str) -> None:
        self.web.pages["/robots.txt"] = page(f"User-agent: *\n{text}", "text/plain")

    def add(self, path: str, *links: str, head: str = "", body: str = "", **headers: str) -> None:
        self.versions[path] = self.versions.get(path, 0) + 1
        version = self.versions[path]
        shown = "".join(f'<li><a href="{link}">{link}</a></li>' for link in links)
        html = (
            f"<html><head><title>Page {path} {version}</title>{head}</head><body><article>"
            f"<h1>Page {path}</h1><p>{body or text_of(f'{path} {version}')}</p>"
            f"<ul>{shown}</ul></article></body></html>"
        )
        self.web.pages[path] = self.tagged(html, f'"{path}-{version}"', **headers)

    def tagged(self, html: str, etag: str, **headers: str) -> Behaviour:
        def answer(wire: Wire) -> None:
            same = wire.request.headers.get("if-none-match") == etag
            self.answered.append(304 if same else 200)
            page("" if same else html, status=304 if same else 200, ETag=etag, **headers)(wire)

        return answer

    def file(self, path: str, body: str | bytes, kind: str = LIST, **headers: str) -> None:
        self.web.pages[path] = page(body, kind, **headers)

    @property
    def asked(self) -> Counter[str]:
        return Counter(request.path for request in self.web.requests)


@pytest.fixture
def site() -> Iterator[Site]:
    with web_server() as web:
        yield Site(web)


@asynccontextmanager
async def opened(data_dir: Path, site: Site, **settings: Any) -> AsyncIterator[House]:
    async with open_house(data_dir, fetch_allow_hosts=site.web.host, **settings) as house:
        house.app.crawler._site.pause = 0
        yield house


@pytest.fixture
async def house(data_dir: Path, site: Site) -> AsyncIterator[House]:
    async with opened(data_dir, site) as house:
        yield house


@pytest.fixture
async def owner(house: House) -> AsyncIterator[httpx.AsyncClient]:
    async with house.client("owner") as client:
        yield client


async def begin(client: httpx.AsyncClient, url: str, **more: Any) -> Any:
    response = await client.post("/api/v1/crawls", json={"url": url, **more})
    assert response.status_code == 201, response.text
    return response.json()


async def finish(house: House) -> None:
    turns = 0
    while await house.app.crawler.crawl_next():
        turns += 1
        assert turns < 100


async def crawl(house: House, client: httpx.AsyncClient, url: str, **more: Any) -> Any:
    begun = await begin(client, url, **more)
    await finish(house)
    return (await client.get(f"/api/v1/crawls/{begun['id']}")).json()


async def pages_of(client: httpx.AsyncClient, crawl: Any, **query: Any) -> list[str]:
    """The paths of the pages in the folder of a crawl."""
    query = {"folder_id": crawl["folder_id"], "per_page": 100, **query}
    items = (await client.get("/api/v1/items", params=query)).json()["items"]
    return sorted("/" + item["url"].split("/", 3)[3] for item in items)


def reasons(crawl: Any) -> dict[str, str]:
    return {"/" + each["url"].split("/", 3)[3]: each["reason"] for each in crawl["problems"]}


def embeddings(house: House, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    counts: list[int] = []
    embedder: Embedder = house.app.embedder
    documents = embedder.documents

    async def counted(texts: Any) -> Any:
        counts.append(len(texts))
        return await documents(texts)

    monkeypatch.setattr(embedder, "documents", counted)
    return counts


async def test_crawl_keeps_each_page_once_and_nothing_else(
    data_dir: Path, site: Site, either_engine: dict[str, str]
) -> None:
    site.robots("Disallow: /docs/private\nSitemap: " + f"{site.url}/docs/maps.xml")
    site.file("/docs/maps.xml", sitemap(f"{site.url}/docs/map1.xml.gz", nested=True))
    site.file("/docs/map1.xml.gz", gzip.compress(sitemap(f"{site.url}/docs/mapped").encode()))
    site.web.pages["/docs"] = redirect("/docs/")
    site.add(
        "/docs/",
        "a",
        "a#part",
        "a?utm_source=mail",
        "a?sessionid=1",
        "a;jsessionid=2",
        "b",
        "private/x",
        "../outside",
        "https://elsewhere.example/x",
        "picture.png",
        "loop/loop/loop/x",
        "moved",
        "away",
        "hidden",
        "silent",
        "copy",
        "broken",
        "draft/1",
        "header",
    )
    site.add("/docs/a", "deep/1")
    site.add("/docs/deep/1", "2")
    site.add("/docs/deep/2", "3")
    site.add("/docs/deep/3")
    site.add("/docs/b", ".")
    site.web.pages["/docs/moved"] = redirect("/docs/target")
    site.add("/docs/target")
    site.web.pages["/docs/away"] = redirect("/outside")
    site.add("/docs/hidden", "from-hidden", head='<meta name="robots" content="noindex">')
    site.add("/docs/from-hidden")
    site.add("/docs/silent", "unheard", head='<meta name="robots" content="nofollow">')
    site.add("/docs/unheard")
    site.add("/docs/copy", head='<link rel="canonical" href="/docs/a">')
    site.add("/docs/mapped")
    site.add("/docs/draft/1")
    site.add("/docs/private/x")
    site.add("/outside")
    site.add("/docs/header", X_Robots_Tag="noindex")
    async with opened(data_dir, site, **either_engine) as house, house.client("owner") as owner:
        done = await crawl(house, owner, f"{site.url}/docs", max_depth=3, exclude=["/docs/draft/*"])
        assert done["state"] == "done", done
        assert done["prefix"] == f"{site.url}/docs/"
        expected = "/docs/ /docs/a /docs/b /docs/deep/1 /docs/deep/2 /docs/from-hidden "
        expected += "/docs/mapped /docs/silent /docs/target"
        assert await pages_of(owner, done) == expected.split()
        told = reasons(done)
        assert "robots.txt" in told["/docs/private/x"] and "excluded" in told["/docs/draft/1"]
        assert "out of the site" in told["/docs/away"] and "noindex" in told["/docs/hidden"]
        assert "404" in told["/docs/broken"] and "/docs/a" in told["/docs/copy"]
        assert "noindex" in told["/docs/header"]
        assert done["pages"]["done"] == 9 and done["pages"].get("found", 0) == 0
        assert max(site.asked.values()) == 1, site.asked
        asked = set(site.asked)
        assert not asked & {"/outside", "/docs/private/x", "/docs/draft/1", "/docs/unheard"}
        assert not asked & {"/docs/deep/3", "/docs/picture.png", "/docs/loop/loop/loop/x"}
        hits = (await owner.post("/api/v1/search", json={"query": "otter chapter mapped"})).json()
        assert any(hit["url"].endswith("/docs/mapped") for hit in hits["results"])
        folders = (await owner.get("/api/v1/folders")).json()["folders"]
        assert {each["id"]: each for each in folders}[done["folder_id"]]["item_count"] == 9


async def test_second_crawl_asks_with_validators_and_embeds_nothing(
    house: House, owner: httpx.AsyncClient, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"p{n}" for n in range(12)]
    site.add("/docs/", *names)
    for name in names:
        site.add(f"/docs/{name}")
    first = await crawl(house, owner, f"{site.url}/docs/")
    assert first["pages"] == {"done": 13}
    site.answered.clear()
    counts = embeddings(house, monkeypatch)
    second = await crawl(house, owner, f"{site.url}/docs/")
    assert (second["id"], second["folder_id"]) == (first["id"], first["folder_id"])
    assert second["pages"] == {"unchanged": 13} and set(site.answered) == {304}
    assert len(site.answered) == 13 and counts == []

    site.add("/docs/p3", "new")
    site.add("/docs/new")
    del site.web.pages["/docs/p4"]
    third = await crawl(house, owner, f"{site.url}/docs/")
    assert third["pages"] == {"done": 2, "gone": 1, "unchanged": 11}
    assert sum(counts) == 2
    assert "/docs/p4" in await pages_of(owner, third)
    fourth = await crawl(house, owner, f"{site.url}/docs/")
    assert fourth["pages"] == {"gone": 1, "unchanged": 13}
    assert "/docs/p4" not in await pages_of(owner, fourth)
    assert await pages_of(owner, fourth, archived=True) == ["/docs/p4"]


async def test_pages_that_somebody_deleted_do_not_come_back(
    house: House, owner: httpx.AsyncClient, site: Site
) -> None:
    site.add("/docs/", "a")
    site.add("/docs/a")
    done = await crawl(house, owner, f"{site.url}/docs/")
    items = (await owner.get("/api/v1/items", params={"folder_id": done["folder_id"]})).json()
    [item] = [each for each in items["items"] if each["url"].endswith("/a")]
    await owner.delete(f"/api/v1/items/{item['id']}")
    again = await crawl(house, owner, f"{site.url}/docs/")
    assert await pages_of(owner, again) == ["/docs/"]
    assert "deleted" in reasons(again)["/docs/a"]


def minutes_later(minutes: float) -> Any:
    return lambda: now() + timedelta(minutes=minutes)


class Killed(BaseException):
    """The process ends here: nothing that comes after runs."""


@pytest.mark.parametrize("at", ["fetch", "keep", "record"])
async def test_killed_worker_costs_no_finished_page_a_second_fetch(
    data_dir: Path,
    site: Site,
    monkeypatch: pytest.MonkeyPatch,
    either_engine: dict[str, str],
    at: str,
) -> None:
    names = [f"p{n}" for n in range(10)]
    site.add("/docs/", *names)
    for name in names:
        site.add(f"/docs/{name}")
    async with opened(data_dir, site, **either_engine) as house, house.client("owner") as owner:
        begun = await begin(owner, f"{site.url}/docs/")
        dying = {
            "fetch": (house.app.crawler._sources, "read_again"),
            "keep": (house.app.library, "keep"),
            "record": (house.app.crawler, "_filed"),
        }
        for death in range(5):
            with monkeypatch.context() as patch:
                patch.setattr("commonplace.store.crawls.now", minutes_later(10 * death))
                die_after(patch, *dying[at], calls=2)
                with pytest.raises(Killed):
                    await finish(house)
        monkeypatch.setattr("commonplace.store.crawls.now", minutes_later(60))
        await finish(house)
        done = (await owner.get(f"/api/v1/crawls/{begun['id']}")).json()
        assert done["pages"] == {"done": 11}, done
        assert len(await pages_of(owner, done)) == 11
    assert {f"/docs/{name}" for name in names} <= set(site.asked)
    assert max(count for path, count in site.asked.items() if path.startswith("/docs/p")) == (
        2 if at == "keep" else 1
    )


def die_after(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, calls: int) -> None:
    """Let the process end as a method is called for the third time."""
    whole, left = getattr(owner, name), [calls]

    async def dies(*args: Any, **kwargs: Any) -> Any:
        if not left[0]:
            raise Killed
        left[0] -= 1
        return await whole(*args, **kwargs)

    monkeypatch.setattr(owner, name, dies)


async def test_busy_server_is_asked_again_when_it_said(
    house: House, owner: httpx.AsyncClient, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add("/docs/", "busy")
    site.web.pages["/docs/busy"] = page("later", status=429, Retry_After="1200")
    begun = await begin(owner, f"{site.url}/docs/")
    await finish(house)
    halfway = (await owner.get(f"/api/v1/crawls/{begun['id']}")).json()
    assert halfway["state"] == "running" and halfway["pages"] == {"done": 1, "found": 1}
    assert site.asked["/docs/busy"] == 1
    site.add("/docs/busy")
    monkeypatch.setattr("commonplace.store.crawls.now", minutes_later(19))
    await finish(house)
    assert site.asked["/docs/busy"] == 1
    monkeypatch.setattr("commonplace.store.crawls.now", minutes_later(21))
    await finish(house)
    done = (await owner.get(f"/api/v1/crawls/{begun['id']}")).json()
    assert done["state"] == "done" and done["pages"] == {"done": 2}


async def test_one_version_is_crawled_and_the_others_are_named(
    house: House, owner: httpx.AsyncClient, site: Site
) -> None:
    versions = ("1.9", "2.0", "stable")
    site.add("/", *(f"/en/{version}/" for version in versions), "/en/about")
    site.add("/en/about")
    for version in versions:
        site.add(f"/en/{version}/", "guide")
        site.add(f"/en/{version}/guide")
    done = await crawl(house, owner, f"{site.url}/")
    assert await pages_of(owner, done) == ["/", "/en/about", "/en/stable/", "/en/stable/guide"]
    assert (done["version"], done["versions"]) == ("stable", ["stable", "2.0", "1.9"])
    assert "version 1.9" in reasons(done)["/en/1.9/"]

    older = await crawl(house, owner, f"{site.url}/en/1.9/")
    assert await pages_of(owner, older) == ["/en/1.9/", "/en/1.9/guide"]


async def test_markdown_is_read_in_the_place_of_its_page(
    house: House, owner: httpx.AsyncClient, site: Site
) -> None:
    site.add("/docs/", "a", "b.html")
    site.add("/docs/a", head='<link rel="alternate" type="text/markdown" href="/docs/a.md">')
    site.add("/docs/b.html")
    for name in ("a.md", "b.html.md", "only.md"):
        site.file(f"/docs/{name}", f"# {name}\n\n{text_of(name)}", "text/markdown")
    listed = "- [b](/docs/b.html.md): about b\n- [only](only.md)\n"
    site.file("/docs/llms.txt", f"# Docs\n\n{listed}", "text/plain")
    done = await crawl(house, owner, f"{site.url}/docs/")
    assert await pages_of(owner, done) == [
        "/docs/",
        "/docs/a.md",
        "/docs/b.html.md",
        "/docs/only.md",
    ]
    assert site.asked["/docs/b.html"] == 0


async def test_traps_and_budgets_end_a_crawl(
    house: House, owner: httpx.AsyncClient, site: Site
) -> None:
    site.add("/docs/", "day?n=1")
    days = iter(range(2, 1000))
    web = site.web

    def calendar(wire: Wire) -> None:
        n = next(days)
        shown = "".join(f'<a href="/docs/day?n={n * 10 + k}">next</a>' for k in range(10))
        page(f"<html><body><p>{text_of(str(n))}</p>{shown}</body></html>")(wire)

    web.pages["/docs/day"] = calendar
    done = await crawl(house, owner, f"{site.url}/docs/", max_depth=20)
    assert done["state"] == "done"
    assert sum(path.startswith("/docs/day") for path in site.asked) <= 20

    for n in range(30):
        site.add(f"/many/{n}", *(f"/many/{other}" for other in range(30)))
    capped = await crawl(house, owner, f"{site.url}/many/0", max_pages=7)
    assert sum(path.startswith("/many/") for path in await pages_of(owner, capped)) == 7
    assert "has 7 pages" in str(reasons(capped))


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (gzip.compress(bytes(80_000_000)), "application/gzip"),
        (gzip.compress(b"x" * 100)[:30], "application/gzip"),
        (
            '<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
            "<urlset><url><loc>file:///etc/passwd</loc></url><url><loc>&b;</loc></url></urlset>",
            LIST,
        ),
        ("<urlset><url><loc>javascript:x</loc></url><url><loc>http://[</loc></url>", LIST),
    ],
    ids=["bomb", "damaged", "entities", "addresses"],
)
async def test_hostile_sitemap_harms_nothing(
    house: House, owner: httpx.AsyncClient, site: Site, body: bytes | str, kind: str
) -> None:
    site.add("/docs/", "a")
    site.add("/docs/a")
    site.file("/docs/sitemap.xml", body, kind)
    done = await crawl(house, owner, f"{site.url}/docs/")
    assert await pages_of(owner, done) == ["/docs/", "/docs/a"]


async def test_crawl_says_why_it_keeps_nothing(
    house: House, owner: httpx.AsyncClient, site: Site
) -> None:
    site.robots("Disallow: /")
    site.add("/docs/")
    refused = await crawl(house, owner, f"{site.url}/docs/")
    assert refused["state"] == "failed" and "robots.txt" in refused["error"]
    assert site.asked["/docs/"] == 0
    inside = await crawl(house, owner, "http://169.254.169.254/latest/")
    assert inside["state"] == "failed" and inside["pages"].get("done", 0) == 0
    wrong = {"url": f"{site.url}/docs/", "prefix": f"{site.url}/other/"}
    assert (await owner.post("/api/v1/crawls", json=wrong)).status_code == 422


async def test_deleted_crawl_stops_and_its_items_stay(
    house: House, owner: httpx.AsyncClient, site: Site
) -> None:
    site.add("/docs/", *(f"p{n}" for n in range(40)))
    for n in range(40):
        site.add(f"/docs/p{n}")
    begun = await begin(owner, f"{site.url}/docs/")
    assert await house.app.crawler.crawl_next()
    asked = sum(site.asked.values())
    assert (await owner.delete(f"/api/v1/crawls/{begun['id']}")).status_code == 200
    await finish(house)
    assert sum(site.asked.values()) == asked
    assert await pages_of(owner, begun)
    assert (await owner.get("/api/v1/crawls")).json()["crawls"] == []


async def test_token_for_a_folder_crawls_into_it_and_sees_only_its_own(
    house: House, owner: httpx.AsyncClient, site: Site
) -> None:
    site.add("/docs/", "a")
    site.add("/docs/a")
    site.add("/other/")
    await crawl(house, owner, f"{site.url}/other/")
    async with house.client("one_folder") as one:
        own = await crawl(house, one, f"{site.url}/docs/")
        assert own["folder_id"] == house.folders["Red"]
        assert await pages_of(one, own) == ["/docs/", "/docs/a"]
        listed = (await one.get("/api/v1/crawls")).json()["crawls"]
        assert [each["id"] for each in listed] == [own["id"]]
        hidden = {"url": f"{site.url}/docs/", "folder_id": house.folders["Blue"]}
        assert (await one.post("/api/v1/crawls", json=hidden)).status_code == 404
    async with house.client("reader") as reader:
        refused = await reader.post("/api/v1/crawls", json={"url": f"{site.url}/docs/"})
        assert refused.status_code == 403


async def test_agents_crawl_sync_and_read_links(
    house: House, owner: httpx.AsyncClient, site: Site
) -> None:
    site.add("/docs/", "a")
    site.add("/docs/a", "b")
    site.add("/docs/b", "c")
    site.add("/docs/c")

    async def manage(action: str, **data: Any) -> Any:
        arguments = {"action": action, "data": data}
        answer = await call_tool(owner, "manage", arguments)
        return answer["result"]["structuredContent"]

    queued = await manage("crawl", url=f"{site.url}/docs/", depth=2, max_pages=50)
    source = queued["data"]["source_id"]
    await finish(house)
    done = (await owner.get(f"/api/v1/crawls/{source}")).json()
    assert await pages_of(owner, done) == ["/docs/", "/docs/a", "/docs/b"]
    site.answered.clear()
    assert (await manage("sync", source_id=source))["success"]
    await finish(house)
    assert site.answered == [304] * 3
    links = await manage("link_graph", source_id=source)
    assert links["success"] and links["data"]["source_id"] == source
