"""Originals: the files that items were made of, which stay as long as the items."""

import asyncio
import shutil
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from commonplace.core.items.source_files import unpack
from commonplace.core.people.authorization import FULL_WRITE, READ, WRITE, Service, verb
from commonplace.errors import IngestFailed, NotFound
from commonplace.model import Caller, FileRole, Item, Scope, SourceFile, Upload, new_id, now
from commonplace.ports import Blobs, Extractor
from commonplace.settings import Settings


@dataclass(eq=False)
class Originals(Service):
    blobs: Blobs
    _extractor: Extractor
    _settings: Settings

    @verb(READ, target="item_id")
    async def find(self, caller: Caller, item_id: str) -> Upload | None:
        """Return the file that an item was made of, if it was kept."""
        return await self._store.uploads.original_of(caller.scope, item_id)

    def open(self, upload: Upload) -> AbstractAsyncContextManager[Path]:
        return self.blobs.file(upload.key)

    async def draw_page(self, caller: Caller, upload: Upload, page: int) -> bytes:
        """Return a page of a PDF as a picture. The caller has found the upload."""
        async with self.blobs.file(upload.key) as file:
            try:
                return await self._extractor.draw_page(file, page, queue=caller.queue)
            except IngestFailed as failed:
                raise NotFound(failed.message) from None

    async def copy(self, upload: Upload, file: Path) -> None:
        """Copy an original to a file, unless that is there already."""
        if await asyncio.to_thread(_has_size, file, upload.size):
            return
        await asyncio.to_thread(file.parent.mkdir, parents=True, exist_ok=True)
        async with self.blobs.file(upload.key) as stored:
            await asyncio.to_thread(shutil.copyfile, stored, file)

    @verb(READ, "find", target="item_id")
    async def page(self, caller: Caller, item_id: str) -> SourceFile | None:
        """Return the page that an item's text was read from, if it was kept."""
        found = await self._store.source_files.of_item(caller.scope, item_id, FileRole.PAGE)
        return found[0] if found else None

    async def copy_page(self, page: SourceFile, file: Path) -> None:
        async with self.blobs.file(page.key) as stored:
            body = unpack(await asyncio.to_thread(stored.read_bytes))
        await asyncio.to_thread(file.parent.mkdir, parents=True, exist_ok=True)
        await asyncio.to_thread(file.write_bytes, body)

    @verb(WRITE, "import", target="item_id", needs=FULL_WRITE)
    async def attach(self, caller: Caller, item_id: str, file: Path, content_type: str) -> None:
        """Give an item its original, for imports. One that is there stays; a missing item and a
        file that is too large are skipped."""
        size = (await asyncio.to_thread(file.stat)).st_size
        if not self._settings.keep_originals or size > self._settings.upload_max_mb * 1_000_000:
            return
        there = await self._store.items.get_many(caller.scope, [item_id])
        if not there or await self._store.uploads.original_of(caller.scope, item_id):
            return
        upload = Upload(
            new_id(),
            caller.library_id,
            caller.queue,
            file.name,
            content_type,
            size,
            now(),
            item_id=item_id,
        )
        await self.blobs.put(upload.key, file)
        await self._store.uploads.create(upload)

    async def settle(self, upload: Upload, item: Item) -> None:
        """Delete the bytes of an upload that became an item, unless they are needed: as the item's
        original, or because the item is still to be transcribed."""
        original = await self._store.uploads.original_of(Scope(item.library_id), item.id)
        needed = self._settings.keep_originals or item.transcription_status not in (None, "done")
        if original is None or original.id != upload.id or not needed:
            await self.blobs.delete(upload.key)
            await self._store.uploads.forget_files([upload.id])


def _has_size(file: Path, size: int) -> bool:
    return file.is_file() and file.stat().st_size == size
