"""What belongs to a crawl: its scope, its robots.txt, the version that it keeps."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from urllib.robotparser import RobotFileParser

from commonplace.model import Crawl, CrawlPage, PageState, SiteLink
from commonplace.text.site_urls import (
    beside,
    excluded,
    is_page,
    is_trap,
    origin_of,
    own_version,
    page_address,
    prefix_of,
    version_of,
    versions_among,
    within,
)

AGENT = "Commonplace"  # by which robots.txt knows it


class Skipped(Exception):
    """A page is not kept, for this reason. `leads_to`: the pages in its place."""

    def __init__(
        self, reason: str, leads_to: Sequence[str] = (), state: PageState = PageState.SKIPPED
    ) -> None:
        super().__init__(reason)
        self.reason, self.leads_to, self.state = reason, leads_to, state


def in_scope(crawl: Crawl, links: Iterable[SiteLink], depth: int) -> tuple[Crawl, list[CrawlPage]]:
    """Return those of the links that belong to the crawl, and the crawl with the versions that
    they show."""
    if depth > crawl.max_depth:
        return crawl, []
    prefix = crawl.prefix
    pages, seen, others = dict[str, CrawlPage](), list[str](), list[str]()
    for link in links:
        url = page_address(link.url)
        if url is None:
            continue
        if not within(url, prefix):
            others.append(beside(url, prefix))
        elif is_page(url) and not is_trap(url):
            seen.append(version_of(url, prefix))
            pages.setdefault(url, CrawlPage(url, depth, modified=link.modified))
    named = versions_among([*crawl.versions, *seen, own_version(prefix), *others])
    if named and named != list(crawl.versions):
        chosen = crawl.version or own_version(prefix) or named[0]
        crawl = replace(crawl, versions=tuple(named), version=chosen)
    return crawl, list(pages.values())


def refusal(crawl: Crawl, page: CrawlPage, robots: RobotFileParser) -> str | None:
    if not robots.can_fetch(AGENT, page.url):
        return "robots.txt forbids it."
    if page.depth and excluded(page.url, crawl.exclude):
        return "It is excluded."
    version = version_of(page.url, crawl.prefix) if crawl.prefix else ""
    if version in crawl.versions and version != crawl.version:
        return f"It is of version {version}; {crawl.version} is crawled."
    return None


def redirection(crawl: Crawl, page: CrawlPage, location: str) -> Skipped:
    url = page_address(location)
    first = page.depth == 0 and page.url == crawl.url
    if url is None or url == page.url or not (first or within(url, crawl.prefix)):
        return Skipped(f"It redirects out of the site: {location[:200]}")
    return Skipped(f"It redirects to {url}", [url], PageState.DUPLICATE)


def after_redirect(crawl: Crawl, here: Crawl, page: CrawlPage, skipped: Skipped) -> Crawl:
    """Return a crawl that follows the redirect of its first page."""
    moved = next(iter(skipped.leads_to), None)
    if page.depth or page.url != crawl.url or moved is None:
        return here
    kept = bool(crawl.prefix) and within(moved, crawl.prefix)
    same = origin_of(moved) == origin_of(crawl.url)
    return replace(
        here,
        url=moved,
        prefix=crawl.prefix if kept else prefix_of(moved),
        robots=crawl.robots if same else None,
    )


def parse_robots(crawl: Crawl) -> RobotFileParser:
    robots = RobotFileParser()
    robots.parse((crawl.robots or "").splitlines())
    return robots
