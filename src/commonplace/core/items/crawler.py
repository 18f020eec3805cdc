"""Fetch the pages of the sites that are crawled: in turn, politely, each once."""

import asyncio
import logging
import math
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from urllib.robotparser import RobotFileParser

from commonplace.core.ingest.sources import HTML, VALIDATORS, Sources, recording_of, url_key
from commonplace.core.items.crawl_scope import (
    AGENT,
    Skipped,
    after_redirect,
    in_scope,
    parse_robots,
    redirection,
    refusal,
)
from commonplace.core.items.drafts import Draft
from commonplace.core.items.library import Library
from commonplace.core.items.site_reader import TRIES, SiteReader, wait_after
from commonplace.core.jobs.worker import LEASE_SECONDS, renewing_lease
from commonplace.core.people.authorization import WRITE, Service, verb
from commonplace.errors import CommonplaceError, IngestFailed, LibraryFull, NotFound
from commonplace.model import (
    CHANGED,
    FAILED,
    GONE,
    MEGABYTE,
    TIMES_GONE,
    UNCHANGED,
    Caller,
    Content,
    Crawl,
    CrawlPage,
    CrawlState,
    EntityType,
    Fetched,
    Item,
    ItemRef,
    Json,
    PageState,
    SiteLink,
    SiteLinks,
    now,
)
from commonplace.ports import Extractor
from commonplace.text.site_urls import (
    markdown_twins,
    page_address,
    prefix_of,
    within,
)

log = logging.getLogger(__name__)
AT_ONCE = 4  # sites that one server crawls
LOOK_SECONDS = 2.0
LONGEST_PAUSE = 10.0  # for which a worker waits; longer ones are waited for by nobody
TROUBLE_SECONDS = 60.0
PAGES_A_TURN = 20  # before other crawls get a worker
MOST_BYTES = 500 * MEGABYTE
MOST_TIME = timedelta(hours=6)
MOST_REQUESTS = 3  # times `max_pages`: pages that are kept nowhere cost requests too
MOST_VARIANTS = 20  # of one path, by their queries
READABLE = (HTML, "application/xhtml+xml", "text/plain", "text/markdown", "application/pdf")


class _Stopped(Exception):
    """A budget of the crawl is used up."""


@dataclass(eq=False)
class _Seen:
    """What a look at an answer showed."""

    links: SiteLinks = field(default_factory=SiteLinks)
    size: int = 0


@dataclass(eq=False)
class Crawler(Service):
    _extractor: Extractor
    _sources: Sources
    _library: Library
    _site: SiteReader

    async def keep_crawling(self) -> None:
        async with asyncio.TaskGroup() as lanes:
            for _ in range(AT_ONCE):
                lanes.create_task(self._keep_crawling())

    async def _keep_crawling(self) -> None:
        while True:
            try:
                while await self.crawl_next():
                    pass
            except Exception:
                # A lease expires by itself. This must outlive a lost database.
                log.exception("Sites could not be crawled; retrying soon")
            await asyncio.sleep(LOOK_SECONDS)

    async def crawl_next(self) -> bool:
        """Visit some pages of a crawl that is due. Returns False if none is."""
        crawl = await self._store.crawls.lease(LEASE_SECONDS)
        if crawl is None:
            return False

        async def renew() -> None:
            due_at = now() + timedelta(seconds=LEASE_SECONDS)
            await self._store.crawls.change(crawl, due_at=due_at)

        try:
            async with renewing_lease(renew):
                wait = await self._turn(crawl)
            if wait is None:
                await self._finish(crawl, *await self._outcome(crawl))
            else:
                await self._store.crawls.release(crawl, now() + timedelta(seconds=wait))
        except NotFound:
            pass  # somebody has deleted it
        except _Stopped as stopped:
            await self._finish(crawl, CrawlState.DONE, str(stopped))
        except CommonplaceError as error:
            if error.transient:
                await self._store.crawls.release(crawl, now() + timedelta(seconds=TROUBLE_SECONDS))
            else:
                await self._finish(crawl, CrawlState.FAILED, error.message)
        except asyncio.CancelledError:
            await self._store.crawls.release(crawl, now())
            raise
        return True

    async def _outcome(self, crawl: Crawl) -> tuple[CrawlState, str | None]:
        if await self._store.crawls.kept(crawl):
            return CrawlState.DONE, None
        first = next(iter(await self._store.crawls.problems(crawl, 1)), None)
        reason = first.reason if first else "There are none."
        return CrawlState.FAILED, f"No page could be kept: {reason}"

    async def _finish(self, crawl: Crawl, state: CrawlState, error: str | None) -> None:
        try:
            await self._store.crawls.change(crawl, state=state, error=error, finished_at=now())
        except NotFound:
            return

    async def _turn(self, crawl: Crawl) -> float | None:
        """Visit pages. Returns in how many seconds to go on; None: nothing is left."""
        caller = await self._access.deputy(crawl.library_id, crawl.person_id, crawl.token_id)
        if crawl.robots is None:
            wait = await self._site.read_robots(crawl)
            if wait is not None:
                return wait
            crawl = await self._store.crawls.change(crawl)
        robots = parse_robots(crawl)
        delay = max(self._site.pause, math.ceil(float(robots.crawl_delay(AGENT) or 0)))
        for _ in range(PAGES_A_TURN):
            page = await self._store.crawls.next_page(crawl)
            if page is None or (page.depth and not crawl.discovered):
                if crawl.discovered:
                    return None
                crawl = await self._site.discover(crawl, robots, delay)
                continue
            if over := self._over(crawl):
                raise _Stopped(over)
            full = f"The crawl has {crawl.max_pages} pages."
            if page.item_id is None and await self._store.crawls.fill(crawl, full):
                continue
            crawl, wait = await self._visit(caller, crawl, page, robots, delay)
            if wait is not None:
                return wait
        return 0

    def _over(self, crawl: Crawl) -> str | None:
        """Return which budget is used up, of those that end a crawl before its last page."""
        if crawl.bytes >= MOST_BYTES:
            return f"Stopped after {MOST_BYTES // MEGABYTE} MB."
        if now() - crawl.started_at > MOST_TIME:
            return f"Stopped after {MOST_TIME.seconds // 3600} hours."
        if crawl.requests >= MOST_REQUESTS * crawl.max_pages:
            return f"Stopped after {crawl.requests} requests: most pages of the site are not kept."
        return None

    # -- a page

    async def _visit(
        self, caller: Caller, crawl: Crawl, page: CrawlPage, robots: RobotFileParser, delay: int
    ) -> tuple[Crawl, float | None]:
        """Visit a page and record what became of it. Also returns in how many seconds to go on."""
        record = self._store.crawls.record
        reason = refusal(crawl, page, robots)
        here = crawl if crawl.prefix else replace(crawl, prefix=prefix_of(page.url))
        seen, leads_to = _Seen(), list[SiteLink]()
        try:
            if reason:
                raise Skipped(reason)
            page = await self._read_page(caller, here, page, seen, delay)
        except Skipped as skipped:
            leads_to = [*map(SiteLink, skipped.leads_to)]
            here = after_redirect(crawl, here, page, skipped)
            page = replace(page, state=skipped.state, reason=skipped.reason)
        except LibraryFull:
            raise  # the rest is added once there is room
        except CommonplaceError as error:
            tried = replace(page, tries=page.tries + 1, reason=error.message, state=PageState.FOUND)
            if error.transient and tried.tries < TRIES:
                await record(crawl, tried, requests=crawl.requests + 1)
                return crawl, wait_after(error, page.tries)
            log.info("%s of the site %s was not read: %s", page.url, crawl.url, error.message)
            gone = error.data.get("http_status") in (404, 410)
            await self._lose(caller, page, gone=gone)
            page = replace(tried, state=PageState.GONE if gone else PageState.FAILED)
        here, found = in_scope(here, leads_to, page.depth)
        here, linked = in_scope(here, seen.links.links, page.depth + 1)
        crawl = await record(
            here,
            page,
            [*found, *linked],
            url=here.url,
            prefix=here.prefix,
            robots=here.robots,
            version=here.version,
            versions=here.versions,
            requests=here.requests + (0 if reason else 1),
            bytes=here.bytes + seen.size,
        )
        if crawl.robots is None:
            return crawl, 0  # another origin has its own
        return crawl, float(delay) if delay > LONGEST_PAUSE else None

    async def _read_page(
        self, caller: Caller, crawl: Crawl, page: CrawlPage, seen: _Seen, delay: int
    ) -> CrawlPage:
        """Fetch a page unless it is unchanged, and keep it. Raises Skipped."""
        await self._require_only(crawl, page)
        item = await self._item(caller, page)
        if item is not None and page.state is PageState.READ and page.item_id is None:
            return await self._filed(caller, crawl, page, item, PageState.DONE)
        known: Json = {}
        if item is not None and page.item_id:
            before = await self._store.contents.get(item.library_id, item.content_id)
            known = before.about.get(VALIDATORS, {})
            if not known and page.modified and page.modified == page.seen:
                return replace(page, state=PageState.UNCHANGED)
        async with self._site.turn_of(page.url, delay):
            try:
                content = await self._sources.read_again(
                    page.url,
                    known,
                    queue=crawl.library_id,
                    inspect=partial(self._look, crawl, page, seen),
                )
            except IngestFailed as error:
                if location := error.data.get("location"):
                    raise redirection(crawl, page, location) from None
                raise
        if content is None:
            assert item
            await self._library.mark(item, UNCHANGED)
            return replace(page, state=PageState.UNCHANGED, seen=page.modified)
        if recording_of(content) is not None:
            raise Skipped("It is a recording.")
        page = replace(page, seen=page.modified)
        return await self._keep(caller, crawl, page, item, replace(content, canonical=None))

    async def _item(self, caller: Caller, page: CrawlPage) -> Item | None:
        """Return the item of a page. One that somebody has deleted is not added again."""
        if page.item_id is not None:
            try:
                return await self._store.items.get(caller.scope, ItemRef(id=page.item_id))
            except NotFound:
                raise Skipped("Its item was deleted.") from None
        _, item = await self._store.items.find_by_key(
            caller.scope, url_key(page.url), EntityType.DOCUMENT, token_id=caller.token_id
        )
        return item

    async def _require_only(self, crawl: Crawl, page: CrawlPage) -> None:
        """Raise Skipped if the page was found as Markdown, too, or in too many variants."""
        states = await self._store.crawls.states(crawl, markdown_twins(page.url))
        lost = (PageState.FAILED, PageState.GONE, PageState.SKIPPED)
        if twin := next((url for url, state in states.items() if state not in lost), None):
            raise Skipped(f"It is read as Markdown: {twin}", state=PageState.DUPLICATE)
        path, _, query = page.url.partition("?")
        if query and page.item_id is None:
            variants = await self._store.crawls.variants(crawl, f"{path}?")
            if variants >= MOST_VARIANTS:
                raise Skipped(f"There are {MOST_VARIANTS} variants of it already.")

    async def _look(
        self, crawl: Crawl, page: CrawlPage, seen: _Seen, fetched: Fetched, kind: str
    ) -> None:
        """Look at an answer before its text is read: whether to keep it, and where it leads to."""
        seen.size = fetched.size
        if kind not in READABLE:
            raise Skipped(f"It is no page ({kind}).")
        if kind == HTML:
            seen.links = await self._extractor.find_pages(
                fetched.path,
                kind,
                fetched.url,
                charset=fetched.charset,
                queue=crawl.library_id,
            )
        elif kind == "text/markdown" or page.url.endswith((".md", ".txt")):
            seen.links = await self._extractor.find_pages(
                fetched.path, "", fetched.url, queue=crawl.library_id
            )
        rules = {word.strip() for word in fetched.robots.lower().replace(":", ",").split(",")}
        links = seen.links
        if rules & {"nofollow", "none"}:
            seen.links = links = replace(links, links=())
        following, found = in_scope(crawl, links.links, page.depth + 1)
        # Before the item is added: a worker that is lost then need not fetch the page again.
        await self._store.crawls.record(
            crawl,
            replace(page, state=PageState.READ),
            found,
            prefix=crawl.prefix,
            version=following.version,
            versions=following.versions,
        )
        if not links.index or rules & {"noindex", "none"}:
            raise Skipped("It asks not to be kept (noindex).")
        for other, reason in ((links.markdown, "as Markdown"), (links.canonical, "there")):
            url = page_address(other or "")
            if url is None or url == page.url or not within(url, crawl.prefix):
                continue
            states = await self._store.crawls.states(crawl, [url])
            if states.get(url, PageState.FOUND) in (
                PageState.FOUND,
                PageState.DONE,
                PageState.UNCHANGED,
            ):
                raise Skipped(f"It is read {reason}: {url}", [url], PageState.DUPLICATE)

    async def _keep(
        self, caller: Caller, crawl: Crawl, page: CrawlPage, item: Item | None, content: Content
    ) -> CrawlPage:
        if item is None:
            item = await self._add(caller, page.url, content)
            return await self._filed(caller, crawl, page, item, PageState.DONE)
        if item.state != "ready":
            raise Skipped("Its item is not ready.")
        renewed = await self._library.renew(caller, item, content)
        same = page.item_id and renewed.source_status != CHANGED
        state = PageState.UNCHANGED if same else PageState.DONE
        return await self._filed(caller, crawl, page, renewed, state)

    @verb(WRITE, "add", target="url")
    async def _add(self, caller: Caller, url: str, content: Content) -> Item:
        added = await self._library.keep(caller, Draft("url", url=url), content)
        return added.item

    async def _filed(
        self, caller: Caller, crawl: Crawl, page: CrawlPage, item: Item, state: PageState
    ) -> CrawlPage:
        if crawl.folder_id is not None and page.item_id is None:
            await self._store.items.file(
                caller.scope, ItemRef(id=item.id), [crawl.folder_id], token_id=caller.token_id
            )
        return replace(page, state=state, item_id=item.id, reason=None)

    async def _lose(self, caller: Caller, page: CrawlPage, *, gone: bool) -> None:
        """Note on the item of a page that it cannot be read; archive one that is gone again."""
        if page.item_id is None:
            return
        try:
            item = await self._store.items.get(caller.scope, ItemRef(id=page.item_id))
            marked = await self._library.mark(item, GONE if gone else FAILED)
            if gone and marked.source_check["times"] >= TIMES_GONE and not item.archived:
                await self._library.update(caller, item.id, {"archived": True})
        except NotFound:
            return
