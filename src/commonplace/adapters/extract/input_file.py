"""What a reader is given, and how much it may take."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from commonplace.errors import IngestFailed
from commonplace.model import Extracted, Mark

CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff]")
_GAPS = re.compile(r"\n[ \t]*\n(?:[ \t]*\n)+")
_TITLE = 300
LONGEST_TEXT = (
    5_000_000  # bytes of UTF-8: of any text that a reader hands out; what lies beyond is cut off
)
_MARKS = 20_000  # at most; a text of that length has about 6,000 sections
_LINKS, _LINK = 20, 2000  # and characters of one


@dataclass(frozen=True, slots=True)
class Caps:
    """Past any of these a file is refused, in words. (Text past LONGEST_TEXT is cut off, and the answer says so.)"""

    seconds: float = 180  # for one file, wall clock
    cpu_seconds: int = 20  # for one file, of processor time
    ocr_cpu_seconds: int = 120  # instead, once images have to be recognised: about a second a page
    megabytes: int = 1000  # of address space for the process that reads
    text_megabytes: int = 20  # of a page or a text file
    unpacked_megabytes: int = 200  # of an Office file or a book
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

    @property
    def file_name(self) -> str:
        return (
            self.name
            or (self.url or "").partition("#")[0].partition("?")[0].rstrip("/").rpartition("/")[2]
            or self.path.name
        )

    @property
    def ending(self) -> str:
        return self.file_name.rpartition(".")[2].lower() if "." in self.file_name else ""

    @property
    def title(self) -> str:
        """What to call it when the file itself does not say."""
        return title((self.file_name.rpartition(".")[0] or self.file_name).replace("_", " "))

    def data(self, caps: Caps) -> bytes:
        """All of a text file."""
        if self.path.stat().st_size > caps.text_megabytes * 1_000_000:
            raise IngestFailed(f"The text is larger than {caps.text_megabytes} MB.")
        return self.path.read_bytes()

    def beginning(self, caps: Caps) -> tuple[bytes, bool]:
        """As much of a text file as can be kept in any encoding, and whether there is more."""
        size = caps.text_megabytes * 1_000_000
        with self.path.open("rb") as file:
            return file.read(size), self.path.stat().st_size > size


def title(text: str) -> str:
    return " ".join(CONTROLS.sub("", text).split())[:_TITLE].strip()


def tidy(text: str) -> str:
    """Without control characters, and with one empty line where there are several."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\xa0", " ")
    return _GAPS.sub("\n\n", CONTROLS.sub("", text)).strip()


def enough(texts: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
    """Numbered texts, up to the one with which they are too long to be kept whole: the rest is not even read."""
    found: list[tuple[int, str]] = []
    size = 0
    for number, text in texts:
        if text:
            found.append((number, text))
            size += len(text)
        if size > LONGEST_TEXT:
            break
    return found


def paged(title: str, texts: list[tuple[int, str]]) -> Extracted:
    """The pages' texts as one, each marked with its number."""
    marks: list[Mark] = []
    at = 0
    for page, text in texts:
        marks.append(Mark(at, {"page": page}))
        at += len(text) + 2
    return Extracted(title, "\n\n".join(text for _, text in texts), tuple(marks))


def bounded(found: Extracted) -> Extracted:
    """The same, with a text of at most LONGEST_TEXT and no more of anything else than a text of that length can use."""
    kept = _cut_off(found.text)
    marks = tuple(
        mark for mark in found.marks[:: len(found.marks) // _MARKS + 1] if mark.at < len(kept)
    )
    return replace(
        found,
        title=title(found.title),
        text=kept,
        marks=marks,
        author=_short(found.author),
        language=_short(found.language),
        truncated=found.truncated or len(kept) < len(found.text),
        links=tuple(link[:_LINK] for link in found.links[:_LINKS]),
    )


def _cut_off(text: str) -> str:
    """The text itself where it is short enough: no copy of it is made."""
    if len(text) <= LONGEST_TEXT // 4 or (text.isascii() and len(text) <= LONGEST_TEXT):
        return text
    whole = text.encode("utf-8", "replace")
    return text if len(whole) <= LONGEST_TEXT else whole[:LONGEST_TEXT].decode("utf-8", "ignore")


def _short(words: str | None) -> str | None:
    return title(words) or None if words else None
