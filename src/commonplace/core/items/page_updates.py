"""Bring the texts of saved pages up to date: fetch them again, or read the kept pages anew."""

import asyncio
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from urllib.parse import urlsplit

from commonplace.core.ingest.sources import Sources
from commonplace.core.items.library import Library
from commonplace.core.items.source_files import SourceFiles, unpack
from commonplace.core.items.text_editor import TextEditor
from commonplace.errors import CommonplaceError
from commonplace.model import (
    FAILED,
    GONE,
    TIMES_GONE,
    Advance,
    Caller,
    FileRole,
    Item,
    ItemFilter,
    ItemRef,
    Scope,
)
from commonplace.store import Store
from commonplace.store.optimistic import retry_on_conflict

_AT_ONCE = 100
_HOSTS = 4  # that are asked at the same time
_PAUSE = 1.0  # seconds between two requests to a host


class Reextracted(NamedTuple):
    pages: int
    changed: int
    failed: tuple[str, ...]  # titles with the reason


class Refreshed(NamedTuple):
    pages: int
    counts: Counter[str]  # by what was found
    archived: int  # pages that were gone twice


@dataclass(eq=False)
class PageUpdates:
    _store: Store
    _sources: Sources
    _files: SourceFiles
    _editor: TextEditor
    _library: Library

    async def refresh_all(
        self, caller: Caller, advance: Advance, *, pause: float = _PAUSE
    ) -> Refreshed:
        """Fetch all pages of a library again, with a pause between two of the same host. Those that
        are gone for the second time are archived."""
        hosts = defaultdict[str, list[Item]](list)
        for item in await self._pages(caller):
            hosts[urlsplit(item.url or "").netloc].append(item)
        total, found, archived = sum(map(len, hosts.values())), Counter[str](), 0
        at_once = asyncio.Semaphore(_HOSTS)

        async def refresh_host(items: list[Item]) -> None:
            nonlocal archived
            async with at_once:
                for number, item in enumerate(items):
                    await asyncio.sleep(pause if number else 0)
                    status, gone = await self._refresh(caller, item)
                    found[status] += 1
                    archived += gone
                    advance(found.total(), total)

        await asyncio.gather(*map(refresh_host, hosts.values()))
        return Refreshed(total, found, archived)

    async def _pages(self, caller: Caller) -> list[Item]:
        found, wanted = list[Item](), ItemFilter(archived=False)
        while True:
            items, _ = await self._library.page(caller, wanted, limit=_AT_ONCE, offset=len(found))
            found += items
            if len(items) < _AT_ONCE:
                break
        return [
            item
            for item in found
            if item.url and item.state == "ready" and item.transcription_status is None
        ]

    async def _refresh(self, caller: Caller, item: Item) -> tuple[str, bool]:
        """Return what was found at an item's address, and whether the item was archived."""
        with suppress(CommonplaceError):
            return (await self._library.refresh(caller, item.id)).source_status or FAILED, False
        now = await self._library.find(caller, item.id)
        if now is None or now.source_status != GONE:
            return FAILED, False
        if now.source_check["times"] < TIMES_GONE:
            return GONE, False
        await self._library.update(caller, item.id, {"archived": True})
        return GONE, True

    async def reextract(self, advance: Advance) -> Reextracted:
        """Read all kept pages anew, without a fetch. A text that is other than before replaces it,
        and the old one becomes a version."""
        pages, changed, failed = 0, 0, list[str]()
        after = ("", "")
        total = await self._store.source_files.count_items(FileRole.PAGE)
        while items := await self._store.source_files.items_with(FileRole.PAGE, after, _AT_ONCE):
            for item in items:
                pages += 1
                try:
                    reread = partial(self._reread, item)
                    changed += await retry_on_conflict(reread, guarded=False)
                except CommonplaceError as error:
                    failed.append(f"{item.title}: {error.message}")
                advance(pages, max(total, pages))
            after = (items[-1].library_id, items[-1].id)
        return Reextracted(pages, changed, tuple(failed))

    async def _reread(self, item: Item) -> bool:
        scope = Scope(item.library_id)
        item = await self._store.items.get(scope, ItemRef(id=item.id))
        files = await self._store.source_files.of_text(item)
        file = next(each for each in files if each.role == FileRole.PAGE)
        with TemporaryDirectory(prefix="commonplace-") as folder:
            path = Path(folder) / "page"
            await asyncio.to_thread(path.write_bytes, unpack(await self._files.read(file)))
            found = await self._sources.reread(file, path, item.url or file.url)
        changed = await self._editor.reextracted(item, replace(found, files=tuple(files)))
        return changed.content_id != item.content_id
