"""Crawls of sites: begin, watch and end them. Workers do them, see crawler.py."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from commonplace.core.items.folders import Folders
from commonplace.core.people.authorization import DELETE, READ, WRITE, Service, verb
from commonplace.errors import Invalid, NameTaken, NotFound
from commonplace.model import (
    Caller,
    Crawl,
    CrawlReport,
    Folder,
    Relation,
    find_by_id,
    folder_key,
    folder_name,
    new_id,
)
from commonplace.text.site_urls import own_version, page_address, prefix_of, within
from commonplace.text.urls import canonical

_PROBLEMS = 100  # pages without an item that a report names


@dataclass(eq=False)
class Crawls(Service):
    _folders: Folders

    @verb(WRITE, "crawl", target="url")
    async def begin(
        self,
        caller: Caller,
        url: str,
        prefix: str | None = None,
        max_pages: int = 500,
        max_depth: int = 5,
        exclude: Sequence[str] = (),
        folder_id: str | None = None,
    ) -> CrawlReport:
        """Queue a crawl of the pages under a prefix. A crawl of the same address begins again, and
        fetches what has changed."""
        start = page_address(canonical(url))
        assert start  # `canonical` refuses what is no address
        under = "" if prefix is None else self._prefix(start, prefix)
        folders = await self._store.folders.list_folders(caller.scope)
        if folder_id is not None and folder_id not in {each.id for each in folders}:
            raise NotFound("Folder not found", folder_ids=[folder_id])
        known = [each for each in await self._of(caller) if each.start == start]
        if known and folder_id is None:
            folder_id = known[0].folder_id
        elif folder_id is None:
            folder_id = caller.single_folder or await self._folder(caller, start, under, folders)
        crawl = await self._store.crawls.begin(
            Crawl(
                new_id(),
                caller.library_id,
                start,
                start,
                caller.person_id,
                caller.token_id,
                folder_id,
                under,
                max_pages,
                max_depth,
                tuple(exclude),
            )
        )
        return await self._report(crawl)

    @verb(READ, "list_crawls")
    async def all(self, caller: Caller) -> list[CrawlReport]:
        """Return the library's crawls; for a token with a limited scope, its own."""
        counts = await self._store.crawls.counts(caller.library_id)
        return [CrawlReport(each, counts.get(each.id, {})) for each in await self._of(caller)]

    @verb(READ, "read_crawl", target="crawl_id")
    async def get(self, caller: Caller, crawl_id: str) -> CrawlReport:
        return await self._report(find_by_id(await self._of(caller), crawl_id, "Crawl"))

    @verb(WRITE, "crawl", target="source_id")
    async def sync(self, caller: Caller, source_id: str) -> CrawlReport:
        """Visit the pages of a crawl again, and fetch those that have changed."""
        crawl = find_by_id(await self._of(caller), source_id, "Crawl")
        return await self._report(await self._store.crawls.again(crawl))

    @verb(READ, "read_crawl", target="source_id")
    async def links(self, caller: Caller, source_id: str) -> tuple[Crawl, list[Relation]]:
        """Return the relations of a crawl's items, as far as the caller sees both ends."""
        crawl = find_by_id(await self._of(caller), source_id, "Crawl")
        items = await self._store.crawls.items(crawl)
        return crawl, await self._store.relations.of_items(caller.scope, items)

    @verb(DELETE, "cancel_crawl", target="crawl_id")
    async def delete(self, caller: Caller, crawl_id: str) -> None:
        """Stop a crawl and forget it. The items stay."""
        await self._store.crawls.delete(find_by_id(await self._of(caller), crawl_id, "Crawl"))

    async def _of(self, caller: Caller) -> list[Crawl]:
        whole = caller.whole_library
        return await self._store.crawls.list_crawls(
            caller.library_id, None if whole else caller.token_id
        )

    async def _report(self, crawl: Crawl) -> CrawlReport:
        counts = await self._store.crawls.counts(crawl.library_id)
        problems = await self._store.crawls.problems(crawl, _PROBLEMS)
        return CrawlReport(crawl, counts.get(crawl.id, {}), tuple(problems))

    def _prefix(self, start: str, prefix: str) -> str:
        under = page_address(canonical(prefix)) or ""
        if not within(start, under):
            raise Invalid(f"The prefix {prefix} must be the beginning of the URL.", field="prefix")
        return under

    async def _folder(
        self, caller: Caller, start: str, prefix: str, folders: Sequence[Folder]
    ) -> str | None:
        """Return the folder of a site, named by its host and version. None: the caller can create
        none, and the items are in none."""
        if not caller.whole_library:
            return None
        version = own_version(prefix or prefix_of(start))
        name = folder_name(f"{urlsplit(start).netloc} {version}".strip().replace(":", " "))
        try:
            return (await self._folders.create(caller, name)).id
        except NameTaken:
            key = folder_key(name)
            return next((each.id for each in folders if folder_key(each.name) == key), None)
