"""Pictures of sources: the one that a page names, or that a file has, written anew and small."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from commonplace.errors import IngestFailed
from commonplace.model import Content, FileRole, SourceFile, source_file
from commonplace.ports import Extractor, Fetcher

PICTURE = "picture"  # in `about`: the hash of a source's picture
WEBP = "image/webp"
_EDGE = 480  # pixels of the longer side
_LEAST = 100  # pixels of the shorter side of the original: less is an icon
_TRIES = 3  # images of a page that are looked at
_SECONDS = 5.0  # that an add waits for them
_MEGABYTES = 10


@dataclass(eq=False)
class Pictures:
    _fetcher: Fetcher
    _extractor: Extractor

    async def of_addresses(self, addresses: Sequence[str], queue: str) -> SourceFile | None:
        """Fetch the first image that is large enough. None: there is none, or not soon."""
        try:
            async with asyncio.timeout(_SECONDS):
                for address in addresses[:_TRIES]:
                    if found := await self._fetched(address, queue):
                        return found
        except TimeoutError:
            pass
        return None

    async def _fetched(self, address: str, queue: str) -> SourceFile | None:
        try:
            async with self._fetcher.get(address, max_bytes=_MEGABYTES * 1_000_000) as fetched:
                if not (fetched.media_type or "image/").startswith(("image/", "application/octet")):
                    return None
                return await self.of_file(fetched.path, fetched.media_type, address, queue, _LEAST)
        except IngestFailed:
            return None

    async def of_file(
        self, path: Path, kind: str, url: str = "", queue: str = "", least: int = 1
    ) -> SourceFile | None:
        """Return a picture of a file, if it has one."""
        try:
            data = await self._extractor.draw(path, kind, _EDGE, least, queue=queue)
        except IngestFailed:
            return None
        return source_file(FileRole.PICTURE, url, WEBP, data) if data else None


def with_picture(content: Content, picture: SourceFile | None) -> Content:
    if picture is None:
        return content
    about = content.about | {PICTURE: picture.hash}
    return replace(content, about=about, files=(*content.files, picture))
