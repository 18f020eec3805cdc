"""The input of a reader, its limits, and helpers that keep its output within them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path

from commonplace.errors import IngestFailed
from commonplace.model import Extracted, Mark

CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff]")
_GAPS = re.compile(r"\n[ \t]*\n(?:[ \t]*\n)+")
_TITLE_CHARS = 300
LONGEST_TEXT = 5_000_000  # bytes of UTF-8 that a reader may return; the rest is cut off
_MARKS = 20_000  # more than enough: a text of LONGEST_TEXT has about 6,000 sections
_LINKS, _LINK_CHARS = 20, 2000
_TAGS, _TAG_CHARS, _FRONT_CHARS = 50, 200, 20_000
# Bytes. JSON at most doubles a text; the rest is for its marks or a feed's addresses.
LARGEST_ANSWER = 3 * LONGEST_TEXT
UNREADABLE = "The file could not be read: it is damaged, or made to break its reader."


@dataclass(frozen=True, slots=True)
class Caps:
    """Limits past which a file is refused. (Text past LONGEST_TEXT is cut off and marked so.)"""

    seconds: float = 180  # wall-clock time for one file
    cpu_seconds: int = 20  # processor time for one file
    ocr_cpu_seconds: int = 120  # the same for a file that needs OCR: about a second a page
    megabytes: int = 1000  # address space of the process that reads
    text_megabytes: int = 20  # size of a page or a text file
    unpacked_megabytes: int = 200  # size of an Office file or a book
    pages: int = 5000
    scanned_pages: int = 100  # about a second each
    pixels: int = 60_000_000


@dataclass(frozen=True, slots=True)
class Source:
    path: Path
    media_type: str
    charset: str | None = None
    url: str | None = None
    name: str = ""
    page: int = 0  # that is to be drawn

    @property
    def file_name(self) -> str:
        return (
            self.name
            or (self.url or "").partition("#")[0].partition("?")[0].rstrip("/").rpartition("/")[2]
            or self.path.name
        )

    @property
    def extension(self) -> str:
        return self.file_name.rpartition(".")[2].lower() if "." in self.file_name else ""

    @property
    def title(self) -> str:
        """A title made from the file's name, for a file that has none of its own."""
        return clean_title((self.file_name.rpartition(".")[0] or self.file_name).replace("_", " "))

    def read_all(self, caps: Caps) -> bytes:
        if self.path.stat().st_size > caps.text_megabytes * 1_000_000:
            raise IngestFailed(f"The text is larger than {caps.text_megabytes} MB.")
        return self.path.read_bytes()

    def read_start(self, caps: Caps) -> tuple[bytes, bool]:
        """Read as much of a text file as can be kept; also return whether there is more."""
        size = caps.text_megabytes * 1_000_000
        with self.path.open("rb") as file:
            return file.read(size), self.path.stat().st_size > size


def clean_title(text: str) -> str:
    return " ".join(CONTROLS.sub("", text).split())[:_TITLE_CHARS].strip()


def clean_text(text: str) -> str:
    """Remove control characters and collapse several empty lines into one."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\xa0", " ")
    return _GAPS.sub("\n\n", CONTROLS.sub("", text)).strip()


def parse_date(text: object) -> datetime | None:
    """Parse an ISO 8601 date, in UTC unless it names a time zone; None for anything else."""
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found.replace(tzinfo=found.tzinfo or UTC)


def take_until_full(texts: Iterable[tuple[int, str]], empty: str) -> list[tuple[int, str]]:
    """Collect numbered texts until they exceed LONGEST_TEXT; the rest is never read.

    Raises IngestFailed with the message `empty` if there is no text.
    """
    found: list[tuple[int, str]] = []
    size = 0
    for number, text in texts:
        if text:
            found.append((number, text))
            size += len(text)
        if size > LONGEST_TEXT:
            break
    if not found:
        raise IngestFailed(empty)
    return found


def join_pages(title: str, texts: list[tuple[int, str]]) -> Extracted:
    """Join numbered texts, with a mark where each page begins."""
    starts = accumulate((len(text) + 2 for _, text in texts), initial=0)
    return Extracted(
        title,
        "\n\n".join(text for _, text in texts),
        tuple(Mark(at, {"page": page}) for at, (page, _) in zip(starts, texts, strict=False)),
    )


def limit_size(found: Extracted) -> Extracted:
    """Cut the text to LONGEST_TEXT, and marks, title and links to a proportionate size."""
    kept = _truncate(found.text)
    return replace(
        found,
        title=clean_title(found.title),
        text=kept,
        marks=tuple(
            mark for mark in found.marks[:: len(found.marks) // _MARKS + 1] if mark.at < len(kept)
        ),
        author=clean_title(found.author or "") or None,
        language=clean_title(found.language or "") or None,
        truncated=found.truncated or len(kept) < len(found.text),
        links=tuple(link[:_LINK_CHARS] for link in found.links[:_LINKS]),
        address=found.address if len(found.address or "") <= _LINK_CHARS else None,
        pictures=tuple(each for each in found.pictures[:_LINKS] if len(each) <= _LINK_CHARS),
        tags=tuple(clean_title(tag)[:_TAG_CHARS] for tag in found.tags[:_TAGS]),
        front_matter=found.front_matter if len(str(found.front_matter)) <= _FRONT_CHARS else {},
    )


def _truncate(text: str) -> str:
    """Cut a text to LONGEST_TEXT without copying one that is short enough."""
    if len(text) <= LONGEST_TEXT // 4 or (text.isascii() and len(text) <= LONGEST_TEXT):
        return text
    whole = text.encode("utf-8", "replace")
    return text if len(whole) <= LONGEST_TEXT else whole[:LONGEST_TEXT].decode("utf-8", "ignore")
