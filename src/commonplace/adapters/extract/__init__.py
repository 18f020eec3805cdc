"""Turn files into text, in separate processes: a hostile file can only harm its reader."""

from base64 import b64decode
from pathlib import Path

from commonplace.adapters.extract.input_file import Caps, Source, limit_size, parse_date
from commonplace.adapters.extract.process_pool import ProcessPool
from commonplace.model import Extracted, Feed, FeedEntry, Mark, SiteLink, SiteLinks

__all__ = ["Caps", "FileExtractor"]


_LARGEST_PICTURE = 5_000_000  # bytes


class FileExtractor:
    """Read up to `processes` files at once, each within the caps."""

    def __init__(self, processes: int = 2, caps: Caps | None = None) -> None:
        self._pool = ProcessPool(processes, caps or Caps())

    async def detect_type(
        self, path: Path, declared: str = "", name: str = "", *, queue: str = ""
    ) -> str:
        return str(
            (await self._pool.ask("detect_type", Source(path, declared, name=name), queue))["kind"]
        )[:200]

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
        answer = await self._pool.ask(
            "extract", Source(path, media_type, charset, url, name), queue
        )
        answer |= {
            "marks": tuple(Mark(mark["at"], mark["locator"]) for mark in answer["marks"]),
            "links": tuple(answer["links"]),
            "pictures": tuple(answer["pictures"]),
            "tags": tuple(answer["tags"]),
            "published_at": parse_date(answer["published_at"]),
        }
        # The reader has applied the limits, too; but a hostile file may have taken it over.
        return limit_size(Extracted(**answer))

    async def draw_page(self, path: Path, page: int, *, queue: str = "") -> bytes:
        answer = await self._pool.ask("draw_page", Source(path, "", page=page), queue)
        return b64decode(answer["png"])

    async def draw(
        self, path: Path, media_type: str, edge: int, least: int, *, queue: str = ""
    ) -> bytes | None:
        source = Source(path, media_type)
        answer = await self._pool.ask("draw", source, queue, edge=edge, least=least)
        data = b64decode(answer["data"] or "")[:_LARGEST_PICTURE]
        # The reader wrote it; but a hostile file may have taken it over.
        return data if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None

    async def parse_feed(self, path: Path, url: str, *, queue: str = "") -> Feed:
        answer = await self._pool.ask("feed", Source(path, "", url=url), queue)
        answer["entries"] = tuple(
            FeedEntry(
                **entry
                | {
                    "published_at": parse_date(entry["published_at"]),
                    "tags": tuple(entry["tags"]),
                }
            )
            for entry in answer["entries"]
        )
        return Feed(**answer | {"feeds": tuple(answer["feeds"])})

    async def read_export(self, path: Path, into: Path, *, name: str = "", queue: str = "") -> Path:
        await self._pool.ask("export", Source(path, "", name=name), queue, into=str(into))
        return into / "saved.jsonl"

    async def find_pages(
        self, path: Path, media_type: str, url: str, *, charset: str | None = None, queue: str = ""
    ) -> SiteLinks:
        answer = await self._pool.ask("site", Source(path, media_type, charset, url), queue)
        links = tuple(SiteLink(each["url"], each["modified"]) for each in answer["links"])
        return SiteLinks(**answer | {"links": links, "sitemaps": tuple(answer["sitemaps"])})

    async def close(self) -> None:
        await self._pool.close()
