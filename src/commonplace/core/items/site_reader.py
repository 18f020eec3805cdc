"""What a site says about itself, fetched politely: robots.txt, llms.txt, sitemaps."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit
from urllib.robotparser import RobotFileParser
from weakref import WeakValueDictionary

from commonplace.core.ingest.sources import HTML
from commonplace.core.items.crawl_scope import AGENT, in_scope
from commonplace.errors import CommonplaceError, IngestFailed
from commonplace.model import MEGABYTE, Crawl, SiteLink, SiteLinks
from commonplace.ports import Extractor, Fetcher, Limits
from commonplace.store import Store
from commonplace.text.site_urls import origin_of, prefix_of

PAUSE = 1  # seconds between two requests to a host
TRIES = 3
LONGEST_WAIT = 3600  # seconds that a server may ask for
MOST_SITEMAPS = 50
ROBOTS_BYTES, SITEMAP_BYTES = 500_000, 50 * MEGABYTE
_LISTS = ("llms.txt", "sitemap.xml")


@dataclass(eq=False)
class SiteReader:
    _store: Store
    _fetcher: Fetcher
    _extractor: Extractor
    _limits: Limits
    pause: int = PAUSE
    _hosts: WeakValueDictionary[str, asyncio.Lock] = field(
        default_factory=WeakValueDictionary, init=False
    )

    @asynccontextmanager
    async def turn_of(self, url: str, delay: int) -> AsyncIterator[None]:
        """Wait for the turn to ask a host: one request at a time, with pauses."""
        host = urlsplit(url).netloc
        async with self._hosts.setdefault(host, asyncio.Lock()):
            while delay:
                # Other servers may crawl the host, too.
                window = await self._limits.hit(f"crawl:{host}", 1, delay)
                if window.allowed:
                    break
                await asyncio.sleep(max(window.reset, 0.05))
            yield

    async def read_robots(self, crawl: Crawl) -> float | None:
        """Read the site's robots.txt. Returns in how many seconds to try again."""
        text = ""
        try:
            async with (
                self.turn_of(crawl.url, self.pause),
                self._fetcher.get(
                    f"{origin_of(crawl.url)}/robots.txt", max_bytes=ROBOTS_BYTES
                ) as fetched,
            ):
                read = await asyncio.to_thread(fetched.path.read_bytes)
                # Some servers answer everything with a page.
                text = "" if b"<html" in read[:1000].lower() else read.decode("utf-8", "replace")
        except IngestFailed as error:
            if error.transient:  # a server in trouble may forbid anything
                if crawl.tries + 1 >= TRIES:
                    raise IngestFailed(f"robots.txt could not be read: {error.message}") from error
                await self._store.crawls.change(crawl, tries=crawl.tries + 1)
                return wait_after(error, crawl.tries)
        await self._store.crawls.change(crawl, robots=text.replace("\x00", ""), tries=0)
        return None

    async def discover(self, crawl: Crawl, robots: RobotFileParser, delay: int) -> Crawl:
        """Find pages in llms.txt and the sitemaps."""
        origin = origin_of(crawl.url)
        places = [crawl.prefix or prefix_of(crawl.url), f"{origin}/"]
        waiting = [
            *(f"{place}{name}" for place in dict.fromkeys(places) for name in _LISTS),
            *(robots.site_maps() or ()),
        ]
        found, read = list[SiteLink](), set[str]()
        while waiting and len(read) < MOST_SITEMAPS:
            url = waiting.pop(0)
            if url in read or origin_of(url) != origin or not robots.can_fetch(AGENT, url):
                continue
            read.add(url)
            listed = await self._read_list(crawl, url, delay)
            found += listed.links
            waiting += listed.sitemaps
        crawl, pages = in_scope(crawl, found, 1)
        return await self._store.crawls.record(
            crawl,
            None,
            pages,
            discovered=True,
            version=crawl.version,
            versions=crawl.versions,
            requests=crawl.requests + len(read),
        )

    async def _read_list(self, crawl: Crawl, url: str, delay: int) -> SiteLinks:
        try:
            async with (
                self.turn_of(url, delay),
                self._fetcher.get(url, max_bytes=SITEMAP_BYTES) as fetched,
            ):
                # A site without one may answer with a page.
                if fetched.media_type == HTML:
                    return SiteLinks()
                return await self._extractor.find_pages(
                    fetched.path, "", fetched.url, queue=crawl.library_id
                )
        except IngestFailed:
            return SiteLinks()


def wait_after(error: CommonplaceError, tries: int) -> float:
    """Return after how many seconds to ask a server again."""
    asked = error.data.get("retry_after")
    return float(min(asked, LONGEST_WAIT)) if asked is not None else 5.0 * 4**tries
