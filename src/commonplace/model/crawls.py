"""Crawls of sites: what is wanted, and each page's state."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from commonplace.model.ids import Stored, now


class CrawlState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class PageState(StrEnum):
    FOUND = "found"  # to be fetched
    READ = "read"  # its links are known, its item is being added
    DONE = "done"  # added or changed
    UNCHANGED = "unchanged"
    DUPLICATE = "duplicate"  # another address has its text
    SKIPPED = "skipped"
    FAILED = "failed"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Crawl(Stored):
    """A site that is kept in a folder. Pages are added with the rights of whoever began it."""

    url: str
    start: str  # the address that was given, before its redirects
    person_id: str
    token_id: str | None = None
    folder_id: str | None = None
    prefix: str = ""  # of the addresses of its pages; "" until the first page is read
    max_pages: int = 500
    max_depth: int = 5
    exclude: tuple[str, ...] = ()
    state: CrawlState = CrawlState.QUEUED
    created_at: datetime = field(default_factory=now)
    started_at: datetime = field(default_factory=now)  # the last time
    finished_at: datetime | None = None
    due_at: datetime = field(default_factory=now)
    error: str | None = None
    robots: str | None = None  # the site's robots.txt; None: not read yet
    tries: int = 0  # to read it
    discovered: bool = False  # whether its sitemaps were read
    version: str = ""  # the one that is crawled, of several
    versions: tuple[str, ...] = ()
    requests: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class CrawlPage:
    url: str
    depth: int
    state: PageState = PageState.FOUND
    modified: str = ""  # as the sitemap says
    seen: str = ""  # the same when the page was read
    tries: int = 0
    item_id: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class CrawlReport:
    crawl: Crawl
    counts: Mapping[str, int]  # of pages, by their state
    problems: tuple[CrawlPage, ...] = ()  # pages without an item, and why


@dataclass(frozen=True, slots=True)
class SiteLink:
    url: str
    modified: str = ""


@dataclass(frozen=True, slots=True)
class SiteLinks:
    """Where a page, a sitemap or a list of pages leads to."""

    links: tuple[SiteLink, ...] = ()
    sitemaps: tuple[str, ...] = ()
    index: bool = True  # False: the page asks not to be kept
    canonical: str | None = None  # the address that the page declares as its own
    markdown: str | None = None  # the address of the page as Markdown
