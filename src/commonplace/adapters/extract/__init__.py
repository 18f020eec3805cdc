"""Files to text. The reading is done by processes of its own, so that a hostile file can only hurt one of those."""

from pathlib import Path

from commonplace.adapters.extract import process_protocol
from commonplace.adapters.extract.input_file import Caps, Source
from commonplace.adapters.extract.process_pool import Pool
from commonplace.model import Extracted, Feed

__all__ = ["Caps", "FileExtractor"]


class FileExtractor:
    """The Extractor port. `processes` files are read at once; each holds itself to the caps."""

    def __init__(self, processes: int = 2, caps: Caps | None = None) -> None:
        self._pool = Pool(processes, caps or Caps())

    async def detect_type(
        self, path: Path, declared: str = "", name: str = "", *, queue: str = ""
    ) -> str:
        return process_protocol.kind(
            await self._pool.ask("kind", Source(path, declared, name=name), queue)
        )

    async def extract(
        self,
        path: Path,
        media_type: str,
        *,
        charset: str | None = None,
        url: str | None = None,
        name: str = "",
        queue: str = "",
    ) -> Extracted:
        return process_protocol.extracted(
            await self._pool.ask("extract", Source(path, media_type, charset, url, name), queue)
        )

    async def parse_feed(self, path: Path, url: str, *, queue: str = "") -> Feed:
        """A feed's entries; IngestFailed when the file is none."""
        return process_protocol.feed(await self._pool.ask("feed", Source(path, "", url=url), queue))

    async def close(self) -> None:
        await self._pool.close()
