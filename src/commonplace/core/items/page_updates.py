"""Bring the texts of saved pages up to date: read the kept pages anew."""

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from commonplace.core.ingest.sources import Sources
from commonplace.core.items.source_files import SourceFiles, unpack
from commonplace.core.items.text_editor import TextEditor
from commonplace.errors import CommonplaceError
from commonplace.model import Advance, FileRole, Item, ItemRef, Scope
from commonplace.store import Store
from commonplace.store.optimistic import retry_on_conflict

_AT_ONCE = 100


class Reextracted(NamedTuple):
    pages: int
    changed: int
    failed: tuple[str, ...]  # titles with the reason


@dataclass(eq=False)
class PageUpdates:
    _store: Store
    _sources: Sources
    _files: SourceFiles
    _editor: TextEditor

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
        file, *_ = await self._store.source_files.of_item(scope, item.id, FileRole.PAGE)
        with TemporaryDirectory(prefix="commonplace-") as folder:
            path = Path(folder) / "page"
            await asyncio.to_thread(path.write_bytes, unpack(await self._files.read(file)))
            found = await self._sources.reread(file, path, item.url or file.url)
        changed = await self._editor.reextracted(item, replace(found, files=(file,)))
        return changed.content_id != item.content_id
