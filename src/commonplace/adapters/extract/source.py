"""What a reader is given, and how much it may take."""

import re
from dataclasses import dataclass
from pathlib import Path

from commonplace.errors import IngestFailed
from commonplace.model import Extracted, Mark

CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff]")
_GAPS = re.compile(r"\n[ \t]*\n(?:[ \t]*\n)+")
_TITLE = 300


@dataclass(frozen=True, slots=True)
class Caps:
    """Past any of these a file is refused, in words; nothing is cut off silently."""

    seconds: float = 180           # for one file, wall clock
    megabytes: int = 1000          # of address space for the process that reads
    text_megabytes: int = 20       # of a page or a text file
    unpacked_megabytes: int = 200  # of an Office file or a book
    pages: int = 5000
    scanned_pages: int = 100       # about a second each
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
        return self.name or (self.url or "").partition("#")[0].partition("?")[0].rstrip("/").rpartition("/")[2] or self.path.name

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


def title(text: str) -> str:
    return " ".join(CONTROLS.sub("", text).split())[:_TITLE].strip()


def tidy(text: str) -> str:
    """Without control characters, and with one empty line where there are several."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\xa0", " ")
    return _GAPS.sub("\n\n", CONTROLS.sub("", text)).strip()


def paged(title: str, texts: list[tuple[int, str]]) -> Extracted:
    """The pages' texts as one, each marked with its number."""
    marks: list[Mark] = []
    at = 0
    for page, text in texts:
        marks.append(Mark(at, {"page": page}))
        at += len(text) + 2
    return Extracted(title, "\n\n".join(text for _, text in texts), tuple(marks))
