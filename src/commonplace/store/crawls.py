"""Crawls of sites, and the frontier of each: pages that were found, and what became of them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from commonplace.database import Table, Tx, reads, writes
from commonplace.database.columns import micros
from commonplace.errors import NotFound
from commonplace.model import Crawl, CrawlPage, CrawlState, PageState, now
from commonplace.store import rows
from commonplace.store.queues import job_queues

_FRONTIER = 10  # times `max_pages` are remembered
_OF_LIBRARY = "SELECT * FROM crawls WHERE library_id = :library_id ORDER BY created_at, id"
_OPEN = "state IN ('queued', 'running')"
_NEXT = f"SELECT * FROM crawls WHERE library_id = :library_id AND {_OPEN} ORDER BY due_at LIMIT 2"
_CRAWL = "library_id = :library_id AND id = :id"
_PAGES = "library_id = :library_id AND crawl_id = :crawl_id"


class Crawls(Table):
    @writes
    def begin(self, tx: Tx, crawl: Crawl) -> Crawl:
        """Begin a crawl, or begin again the one that this caller has of the address and folder."""
        for known in rows.every(tx, Crawl, _OF_LIBRARY, library_id=crawl.library_id):
            if (known.start, known.token_id) == (crawl.start, crawl.token_id) and (
                crawl.folder_id in (None, known.folder_id)
            ):
                wanted: dict[str, Any] = {
                    "max_pages": crawl.max_pages,
                    "max_depth": crawl.max_depth,
                    "exclude": crawl.exclude,
                    "prefix": crawl.prefix or known.prefix,
                }
                return _again(tx, replace(known, **wanted), wanted)
        rows.insert(tx, "crawls", crawl)
        _add(tx, crawl, [CrawlPage(crawl.url, 0)])
        job_queues.note(tx, crawl.library_id, job_queues.CRAWL, crawl.due_at)
        return crawl

    @writes
    def again(self, tx: Tx, crawl: Crawl) -> Crawl:
        """Visit all pages of a crawl that has ended again."""
        return _again(tx, _require(tx, crawl), {})

    @reads
    def list_crawls(self, tx: Tx, library_id: str, token_id: str | None) -> list[Crawl]:
        """Return the library's crawls, or those of one token."""
        return [
            crawl
            for crawl in rows.every(tx, Crawl, _OF_LIBRARY, library_id=library_id)
            if token_id in (None, crawl.token_id)
        ]

    @reads
    def counts(self, tx: Tx, library_id: str) -> dict[str, dict[str, int]]:
        """Return the number of pages of each crawl, by their state."""
        found: dict[str, dict[str, int]] = {}
        for crawl_id, state, pages in tx.tuples(
            """SELECT crawl_id, state, COUNT(*) FROM crawl_pages WHERE library_id = :library_id
               GROUP BY crawl_id, state""",
            library_id=library_id,
        ):
            found.setdefault(crawl_id, {})[state] = pages
        return found

    @reads
    def problems(self, tx: Tx, crawl: Crawl, limit: int) -> list[CrawlPage]:
        """Return pages that have no item, failed ones first."""
        return rows.every(
            tx,
            CrawlPage,
            f"""SELECT * FROM crawl_pages WHERE {_PAGES} AND reason IS NOT NULL
                ORDER BY state, depth, url LIMIT :limit""",
            limit=limit,
            **_key(crawl),
        )

    @reads
    def items(self, tx: Tx, crawl: Crawl) -> list[str]:
        """Return the ids of the pages' items."""
        return tx.column(
            f"SELECT item_id FROM crawl_pages WHERE {_PAGES} AND item_id IS NOT NULL", **_key(crawl)
        )

    @writes
    def delete(self, tx: Tx, crawl: Crawl) -> None:
        if not tx.run(f"DELETE FROM crawls WHERE {_CRAWL}", **_id(crawl)):
            raise NotFound("Crawl not found")

    # -- work

    async def lease(self, seconds: int) -> Crawl | None:
        """Return a crawl that is due, and that no other worker gets for `seconds`."""
        # Looked for without a write lock: idle workers must not block writers.
        libraries = await self._db.read(job_queues.due, job_queues.CRAWL, now())
        return await self._lease(libraries, seconds) if libraries else None

    @writes
    def _lease(self, tx: Tx, libraries: Sequence[str], seconds: int) -> Crawl | None:
        at = now()
        until = at + timedelta(seconds=seconds)
        for library_id in job_queues.lock_due(tx, libraries, job_queues.CRAWL, at):
            crawls = rows.every(tx, Crawl, _NEXT, library_id=library_id)
            due = crawls[0] if crawls and crawls[0].due_at <= at else None
            if due:
                _change(tx, due, {"due_at": until, "state": CrawlState.RUNNING})
            times = [until if crawl is due else crawl.due_at for crawl in crawls]
            job_queues.reschedule(tx, library_id, job_queues.CRAWL, at, [*map(micros, times)])
            if due:
                return replace(due, due_at=until, state=CrawlState.RUNNING)
        return None

    @writes
    def change(self, tx: Tx, /, crawl: Crawl, **changes: Any) -> Crawl:
        """Change a crawl. NotFound: somebody has deleted it."""
        return _change(tx, crawl, changes)

    @writes
    def release(self, tx: Tx, /, crawl: Crawl, due_at: datetime, **changes: Any) -> Crawl:
        """Let a worker go on with the crawl from then on."""
        job_queues.note(tx, crawl.library_id, job_queues.CRAWL, due_at)
        return _change(tx, crawl, {"due_at": due_at, **changes})

    @reads
    def next_page(self, tx: Tx, crawl: Crawl) -> CrawlPage | None:
        """Return the next page to fetch: one whose worker was lost, else the first of the least
        depth."""
        for state in (PageState.READ, PageState.FOUND):
            page = rows.first(
                tx,
                CrawlPage,
                f"""SELECT * FROM crawl_pages WHERE {_PAGES} AND state = :state
                    ORDER BY depth, url LIMIT 1""",
                state=state,
                **_key(crawl),
            )
            if page:
                return page
        return None

    @reads
    def states(self, tx: Tx, crawl: Crawl, urls: Sequence[str]) -> dict[str, str]:
        """Return the states of those of the addresses that were found."""
        return dict(
            tx.tuples(
                f"SELECT url, state FROM crawl_pages WHERE {_PAGES} AND url IN :urls",
                urls=list(urls),
                **_key(crawl),
            )
        )

    @reads
    def variants(self, tx: Tx, crawl: Crawl, start: str) -> int:
        """Return how many pages with an item have addresses that start so."""
        return int(
            tx.scalar(
                f"""SELECT COUNT(*) FROM crawl_pages WHERE {_PAGES} AND item_id IS NOT NULL
                    AND substr(url, 1, {len(start)}) = :start""",
                start=start,
                **_key(crawl),
            )
        )

    @writes
    def fill(self, tx: Tx, crawl: Crawl, reason: str) -> int:
        """Skip the pages that were found and have no item, if the crawl has all that it may have.
        Returns their number."""
        if _kept(tx, crawl) < crawl.max_pages:
            return 0
        return tx.run(
            f"""UPDATE crawl_pages SET state = 'skipped', reason = :reason
                WHERE {_PAGES} AND state = 'found' AND item_id IS NULL""",
            reason=reason,
            **_key(crawl),
        )

    @reads
    def kept(self, tx: Tx, crawl: Crawl) -> int:
        """Return how many pages have an item."""
        return _kept(tx, crawl)

    @writes
    def record(
        self,
        tx: Tx,
        /,
        crawl: Crawl,
        page: CrawlPage | None,
        found: Sequence[CrawlPage] = (),
        **changes: Any,
    ) -> Crawl:
        """Write what became of a page, which pages it leads to, and changes of the crawl."""
        crawl = _change(tx, crawl, changes)
        if page is not None:
            tx.run(
                f"""UPDATE crawl_pages SET state = :state, seen = :seen, tries = :tries,
                    item_id = :item_id, reason = :reason WHERE {_PAGES} AND url = :url""",
                url=page.url,
                state=page.state,
                seen=page.seen,
                tries=page.tries,
                item_id=page.item_id,
                reason=page.reason,
                **_key(crawl),
            )
        _add(tx, crawl, found)
        return crawl


def _add(tx: Tx, crawl: Crawl, found: Sequence[CrawlPage]) -> None:
    """Add pages to the frontier, as long as there is room. Those that are there keep their state,
    and learn when they were modified."""
    if not found:
        return
    count = int(tx.scalar(f"SELECT COUNT(*) FROM crawl_pages WHERE {_PAGES}", **_key(crawl)))
    room = max(0, _FRONTIER * crawl.max_pages - count)
    tx.many(
        """INSERT INTO crawl_pages
             (library_id, crawl_id, url, depth, state, modified, seen, tries)
           VALUES (:library_id, :crawl_id, :url, :depth, :state, :modified, '', 0)
           ON CONFLICT (library_id, crawl_id, url) DO UPDATE SET modified =
             CASE WHEN excluded.modified = '' THEN crawl_pages.modified
             ELSE excluded.modified END""",
        [
            {
                "url": page.url,
                "depth": page.depth,
                "state": PageState.FOUND,
                "modified": page.modified,
                **_key(crawl),
            }
            for page in sorted(
                {page.url: page for page in found}.values(), key=lambda page: page.url
            )[:room]
        ],
    )


def _kept(tx: Tx, crawl: Crawl) -> int:
    return int(
        tx.scalar(
            f"""SELECT COUNT(*) FROM crawl_pages WHERE {_PAGES}
                AND (item_id IS NOT NULL OR state IN ('done', 'unchanged'))""",
            **_key(crawl),
        )
    )


def _again(tx: Tx, crawl: Crawl, changes: Mapping[str, Any]) -> Crawl:
    if crawl.state in (CrawlState.QUEUED, CrawlState.RUNNING):
        return _change(tx, crawl, changes)
    at = now()
    tx.run(
        f"""UPDATE crawl_pages SET state = 'found', tries = 0, reason = NULL WHERE {_PAGES}""",
        **_key(crawl),
    )
    job_queues.note(tx, crawl.library_id, job_queues.CRAWL, at)
    fresh = {
        "state": CrawlState.QUEUED,
        "started_at": at,
        "finished_at": None,
        "due_at": at,
        "error": None,
        "robots": None,
        "tries": 0,
        "discovered": False,
        "requests": 0,
        "bytes": 0,
    }
    return _change(tx, crawl, {**changes, **fresh})


def _change(tx: Tx, crawl: Crawl, changes: Mapping[str, Any]) -> Crawl:
    if not changes:
        return _require(tx, crawl)
    if not tx.run(
        f"UPDATE crawls SET {', '.join(f'{name} = :{name}' for name in changes)} WHERE {_CRAWL}",
        **{name: rows.column(value) for name, value in changes.items()},
        **_id(crawl),
    ):
        raise NotFound("Crawl not found")
    return replace(crawl, **changes)


def _require(tx: Tx, crawl: Crawl) -> Crawl:
    return rows.require(tx, Crawl, f"SELECT * FROM crawls WHERE {_CRAWL}", **_id(crawl))


def _id(crawl: Crawl) -> dict[str, str]:
    return {"library_id": crawl.library_id, "id": crawl.id}


def _key(crawl: Crawl) -> dict[str, str]:
    return {"library_id": crawl.library_id, "crawl_id": crawl.id}
