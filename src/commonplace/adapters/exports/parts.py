"""What readers of exports share."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from commonplace.errors import IngestFailed
from commonplace.model import Attachment, Saved, join_path, parse_time, write_saved

Found = Iterator[Saved]
WEB = ("http://", "https://")
NO_ADDRESS = "Its address is not one of the web (http or https)."
_TAG_CHARS, _NAME_CHARS, _LONGEST_TITLE = 100, 200, 500
_LONGEST_ENTRY = 20_000_000  # bytes
_TOO_LONG = "It is too long to be kept."
_MOST = 200_000  # entries of an export


class Output:
    """The folder to which a reader writes, up to `largest` bytes."""

    def __init__(self, folder: Path, largest: int) -> None:
        self._folder, self._left, self._files = folder, largest, 0
        self._lines: BinaryIO | None = None
        self.count = 0

    def __enter__(self) -> Self:
        self._lines = (self._folder / "saved.jsonl").open("wb")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._lines:
            self._lines.close()

    def write(self, saved: Saved) -> None:
        assert self._lines
        line = write_saved(saved)
        if len(line) > _LONGEST_ENTRY:
            line = write_saved(Saved(saved.title[:_LONGEST_TITLE], lost=_TOO_LONG))
        self._take(len(line))
        self._lines.write(line)
        self.count += 1
        if self.count > _MOST:
            raise IngestFailed(f"The export has more than {_MOST:,} entries. Import it in parts.")

    def attach(self, name: str, data: bytes) -> Attachment:
        self._take(len(data))
        self._files += 1
        (self._folder / str(self._files)).write_bytes(data)
        name = clean(name).replace("\\", "/").rpartition("/")[2].strip()
        return Attachment(name[-_NAME_CHARS:] or "attachment", str(self._files))

    def _take(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise IngestFailed("The export is too large to be read at once. Import it in parts.")


def load_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def clean(text: object) -> str:
    """Remove NUL characters, and replace lone surrogates, which programs leave when they cut
    texts."""
    return str(text or "").replace("\0", "").encode("utf-8", "replace").decode()


def line(text: object) -> str:
    """Return a title."""
    return " ".join(clean(text).split())[:_LONGEST_TITLE]


def tags(found: Any, between: str = ",") -> tuple[str, ...]:
    """Return tags from a text, or from a list of names or of {"name": ...}."""
    if isinstance(found, str):
        found = found.split(between) if between.strip() else found.split()
    names = (
        clean(each.get("name") if isinstance(each, dict) else each).strip().lstrip("#")
        for each in (found if isinstance(found, list | tuple) else ())
        if isinstance(each, str | dict)
    )
    return tuple(dict.fromkeys(name[:_TAG_CHARS] for name in names if name))


def folder(*names: object) -> str | None:
    kept = [" ".join(clean(name).split())[:_NAME_CHARS] for name in names]
    return join_path(name for name in kept if name) or None


def is_web(url: object) -> bool:
    return isinstance(url, str) and url.strip().lower().startswith(WEB)


def seconds(value: Any) -> datetime | None:
    """Parse a Unix time in seconds, milliseconds or microseconds."""
    try:
        number = float(value)
        while 1e11 < number < inf:
            number /= 1000
        return datetime.fromtimestamp(number, UTC) if number > 0 else None
    except (TypeError, ValueError, OverflowError):
        return None


def moment(value: Any) -> datetime | None:
    """Parse a Unix time or an ISO date, however it is written."""
    return seconds(value) or (parse_time(value) if isinstance(value, str) else None)
