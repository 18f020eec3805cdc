"""Pictures of sources: the one that a page names, or that a file has, written anew and small."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from commonplace.errors import IngestFailed
from commonplace.model import Content, FileRole, SourceFile, source_file
from commonplace.ports import Extractor, Fetcher
from commonplace.text.markdown_images import image_addresses

PICTURE = "picture"  # in `about`: the hash of a source's picture
WEBP = "image/webp"
_EDGE = 480  # pixels of the longer side
_WIDE = 1600  # the same of images that a text shows
_MOST_IMAGES, _IMAGES_SECONDS = 100, 30.0  # of a text
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

    async def of_text(self, text: str, most: int, queue: str) -> tuple[SourceFile, ...]:
        """Fetch the images that a text shows, up to so many bytes and as many as come soon."""
        kept, size = list[SourceFile](), 0
        addresses = islice(dict.fromkeys(image_addresses(text)), _MOST_IMAGES)
        with suppress(TimeoutError):
            async with asyncio.timeout(_IMAGES_SECONDS):
                for address in addresses if most else ():
                    found = await self._fetched(address, queue, _WIDE, 1)
                    if found is None or size + found.size > most:
                        continue
                    size += found.size
                    kept.append(replace(found, role=FileRole.IMAGE))
        return tuple(kept)

    async def _fetched(
        self, address: str, queue: str, edge: int = _EDGE, least: int = _LEAST
    ) -> SourceFile | None:
        try:
            async with self._fetcher.get(address, max_bytes=_MEGABYTES * 1_000_000) as fetched:
                kind = fetched.media_type or "image/"
                if not kind.startswith(("image/", "application/octet")):
                    return None
                return await self.of_file(
                    fetched.path, fetched.media_type, address, queue, least, edge
                )
        except IngestFailed:
            return None

    async def of_file(
        self,
        path: Path,
        kind: str,
        url: str = "",
        queue: str = "",
        least: int = 1,
        edge: int = _EDGE,
    ) -> SourceFile | None:
        """Return a picture of a file, if it has one."""
        try:
            data = await self._extractor.draw(path, kind, edge, least, queue=queue)
        except IngestFailed:
            return None
        return source_file(FileRole.PICTURE, url, WEBP, data) if data else None


def with_picture(content: Content, picture: SourceFile | None) -> Content:
    if picture is None:
        return content
    about = content.about | {PICTURE: picture.hash}
    return replace(content, about=about, files=(*content.files, picture))
