"""Files that belong to texts: stored before the text that needs them, deleted some time after the
last one that did."""

import asyncio
import zlib
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from commonplace.core.people.authorization import READ, Service, verb
from commonplace.errors import NotFound
from commonplace.model import Caller, Content, FileRole, ItemRef, SourceFile, new_id, now
from commonplace.ports import Blobs

_LARGEST = 100_000_000  # bytes of a page, unpacked
_GRACE = timedelta(hours=1)  # between storing a file and its text


def unpack(data: bytes) -> bytes:
    """Unpack a gzipped page. One that came with a backup may be made to fill the memory."""
    try:
        return zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(data, _LARGEST)
    except zlib.error:
        raise NotFound("The page as it was fetched is damaged.") from None


@dataclass(eq=False)
class SourceFiles(Service):
    _blobs: Blobs

    async def put(self, library_id: str, content: Content) -> Content:
        """Store the files of a text that is about to be stored. One that another library has brings
        copies of its files."""
        files = content.files
        if content.id and not files:
            files = await self._copied(library_id, content)
        files = tuple(
            replace(file, id=new_id(), library_id=library_id, content_id=None, created_at=now())
            for file in files
            if file.data
        )
        if not files:
            return content
        await self._store.source_files.create(files)
        with TemporaryDirectory(prefix="commonplace-") as folder:
            path = Path(folder) / "file"
            for file in files:
                await asyncio.to_thread(path.write_bytes, file.data)
                await self._blobs.put(file.key, path)
        return replace(content, files=tuple(replace(file, data=b"") for file in files))

    async def _copied(self, library_id: str, content: Content) -> tuple[SourceFile, ...]:
        copies = list[SourceFile]()
        for file in await self._store.source_files.elsewhere(library_id, content):
            try:
                copies.append(replace(file, data=await self.read(file)))
            except NotFound:  # deleted meanwhile
                continue
        return tuple(copies)

    @verb(READ, "read", target="item_id")
    async def find(self, caller: Caller, item_id: str, role: str) -> SourceFile | None:
        """Return the newest file of this role that belongs to an item's text."""
        item = await self._store.items.get(caller.scope, ItemRef.parse(item_id))
        return next(iter(await self._store.source_files.of_item(caller.scope, item.id, role)), None)

    @verb(READ, "read", target="item_id")
    async def picture(self, caller: Caller, item_id: str) -> SourceFile:
        """Return the picture of an item."""
        item = await self._store.items.get(caller.scope, ItemRef.parse(item_id))
        found = await self._store.source_files.picture(item) if item.picture else None
        if found is None:
            raise NotFound("The item has no picture.")
        return found

    @verb(READ, "read", target="item_id")
    async def images(self, caller: Caller, item_id: str) -> list[SourceFile]:
        """Return the images that were kept of an item's text."""
        item = await self._store.items.get(caller.scope, ItemRef.parse(item_id))
        return await self._store.source_files.of_item(caller.scope, item.id, FileRole.IMAGE)

    async def read(self, file: SourceFile) -> bytes:
        async with self.open(file) as path:
            return await asyncio.to_thread(path.read_bytes)

    def open(self, file: SourceFile) -> AbstractAsyncContextManager[Path]:
        return self._blobs.file(file.key)

    async def cleanup(self) -> None:
        """Delete the bytes of files that no text needs, then their rows."""
        unused = await self._store.source_files.list_unused(now() - _GRACE)
        for file in unused:
            await self._blobs.delete(file.key)
        await self._store.source_files.delete(unused)
