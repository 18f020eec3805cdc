"""Actions on crawls of sites."""

from typing import Annotated

from commonplace.interfaces.actions.action import Action, Done
from commonplace.interfaces.actions.fields import (
    WHOLE,
    Cli,
    Id,
    Input,
    Reference,
    WebAddress,
    about,
    chars,
    number,
)
from commonplace.interfaces.actions.folders import Nothing
from commonplace.interfaces.actions.graph import RELATION
from commonplace.interfaces.actions.shapes import Call, Field, Listing, Shape, many, within
from commonplace.model import Crawl, CrawlReport, Json, Relation

SiteAddress = Annotated[
    WebAddress,
    about("Page to begin with", examples=["https://docs.example.org/en/stable/"]),
    Cli(argument=True),
]
MaxPages = Annotated[int, number(1, 10_000, "How many pages to keep"), WHOLE]
MaxDepth = Annotated[int, number(0, 20, "How many links to follow from the first page"), WHOLE]
Pattern = Annotated[str, chars(1, 500)]


class NewCrawl(Input):
    url: SiteAddress
    prefix: Annotated[
        WebAddress | None,
        about("Beginning of the addresses of all pages; the folder of the first page if left out"),
    ] = None
    max_pages: MaxPages = 500
    max_depth: MaxDepth = 5
    exclude: Annotated[
        list[Pattern],
        about("Patterns of paths or addresses to leave out, with * and ?", max_length=100),
        Cli("--exclude"),
    ] = []
    folder_id: Annotated[
        Reference | None,
        about("Folder of the pages; one named after the site if left out"),
        Cli("--folder"),
    ] = None


class CrawlSite(Input):
    url: SiteAddress
    depth: MaxDepth = 2
    max_pages: MaxPages = 50

    @property
    def max_depth(self) -> int:
        return self.depth


class OneCrawl(Input):
    crawl_id: Id


class OneSource(Input):
    source_id: Annotated[Id, about("The crawl, by id")]


def _counts(report: CrawlReport, call: Call) -> Json:
    return dict(report.counts)


def _problems(report: CrawlReport, call: Call) -> list[Json]:
    return [
        {"url": each.url, "state": each.state, "reason": each.reason} for each in report.problems
    ]


CRAWL = Shape(
    "Crawl",
    CrawlReport,
    **within(
        "crawl",
        "id url state prefix folder_id max_pages max_depth exclude version versions error "
        "created_at started_at finished_at",
    ),
    pages=Field(
        Json,
        _counts,
        "Number of pages by state: found (waiting), read (being added), done, unchanged, "
        "duplicate, skipped, failed, gone",
    ),
)
FULL_CRAWL = Shape(
    "FullCrawl",
    CrawlReport,
    base=CRAWL,
    problems=Field(list[Json], _problems, "Pages without an item, and why; at most 100"),
)


LINKS = Shape(
    "CrawlLinks",
    None,
    source_id=Field(str, lambda found, call: found[0].id),
    relations=many(RELATION, 1),
)


def _queued(report: CrawlReport, call: Call) -> Done:
    crawl = report.crawl
    return Done(
        None, f"Crawling {crawl.url} ({crawl.id})", {"source_id": crawl.id} | CRAWL(report, call)
    )


def _links(found: tuple[Crawl, list[Relation]], call: Call) -> Done:
    crawl, relations = found
    listed = [
        {"from_id": each.from_id, "kind": each.kind, "to_id": each.to_id} for each in relations
    ]
    return Done(
        None,
        f"{len(listed)} relations of the pages of {crawl.url}",
        {"source_id": crawl.id, "relations": listed},
    )


ACTIONS = (
    Action(
        "create_crawl",
        "Crawl a site",
        NewCrawl,
        "crawls.begin",
        FULL_CRAWL,
        "POST /api/v1/crawls",
        cli="crawl",
        status=201,
        description="Adds the pages under a prefix as items of a folder, in the background and "
        "with the rights of this token. robots.txt is obeyed. Crawling a site again fetches what "
        "has changed, and archives pages that are gone for the second time.",
    ),
    Action(
        "list_crawls",
        "List crawls",
        Nothing,
        "crawls.all",
        Listing("crawls", CRAWL),
        "GET /api/v1/crawls",
        description="Tokens limited to folders or the KB see only the crawls that they began.",
    ),
    Action(
        "get_crawl",
        "Read a crawl and its progress",
        OneCrawl,
        "crawls.get",
        FULL_CRAWL,
        "GET /api/v1/crawls/{crawl_id}",
    ),
    Action(
        "delete_crawl",
        "Cancel a crawl",
        OneCrawl,
        "crawls.delete",
        route="DELETE /api/v1/crawls/{crawl_id}",
        description="It is stopped and forgotten. Its items stay.",
    ),
    Action(
        "crawl", "Crawl a site as a source", CrawlSite, "crawls.begin", FULL_CRAWL, manage=_queued
    ),
    Action(
        "sync",
        "Visit the pages of a crawl again",
        OneSource,
        "crawls.sync",
        FULL_CRAWL,
        manage=_queued,
    ),
    Action(
        "link_graph",
        "List the relations of a crawl's items",
        OneSource,
        "crawls.links",
        LINKS,
        manage=_links,
    ),
)
