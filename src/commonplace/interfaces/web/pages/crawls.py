"""Crawls of sites: begin one, and see how far each is."""

from starlette.responses import Response

from commonplace.interfaces.web.request import WebRequest, act, get, post_then
from commonplace.model import CrawlReport

_OVER = ("done", "unchanged", "duplicate", "skipped", "failed", "gone")


def _share(report: CrawlReport) -> float:
    """Return the share of the pages found that were visited."""
    total = sum(report.counts.values())
    return sum(report.counts.get(state, 0) for state in _OVER) / total if total else 0.0


async def show(request: WebRequest) -> Response:
    crawls = await request.services.crawls.all(request.caller)
    return request.page(
        "crawls.html", crawls=[(report, _share(report)) for report in reversed(crawls)]
    )


async def sync(request: WebRequest) -> object:
    return await request.act("sync", source_id=request.http.path_params["crawl_id"])


ROUTES = (
    get("/crawls", show),
    post_then(
        "/crawls",
        act("create_crawl", "url prefix max_pages max_depth exclude"),
        "/crawls",
        "Crawling {done.crawl.url}.",
    ),
    post_then("/crawls/{crawl_id}/sync", sync, "/crawls", "Crawling {done.crawl.url} again."),
    post_then("/crawls/{crawl_id}/delete", act("delete_crawl"), "/crawls", "Crawl cancelled."),
)
