"""Turn files into text, in separate processes: a hostile file can only harm its reader."""

from pathlib import Path

from commonplace.adapters.extract.input_file import Caps, Source
from commonplace.adapters.extract.process_pool import ProcessPool
from commonplace.adapters.extract.process_protocol import decode_extracted, decode_feed
from commonplace.model import Extracted, Feed

__all__ = ["Caps", "FileExtractor"]


class FileExtractor:
    """Read up to `processes` files at once, each within the caps."""

    def __init__(self, processes: int = 2, caps: Caps | None = None) -> None:
        self._pool = ProcessPool(processes, caps or Caps())

    async def detect_type(
        self, path: Path, declared: str = "", name: str = "", *, queue: str = ""
    ) -> str:
        answer = await self._pool.ask("detect_type", Source(path, declared, name=name), queue)
        return str(answer["kind"])[:200]

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
        source = Source(path, media_type, charset, url, name)
        return decode_extracted(await self._pool.ask("extract", source, queue))

    async def parse_feed(self, path: Path, url: str, *, queue: str = "") -> Feed:
        return decode_feed(await self._pool.ask("feed", Source(path, "", url=url), queue))

    async def close(self) -> None:
        await self._pool.close()
