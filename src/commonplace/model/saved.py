"""What an export of another program contains, in one shape for all programs."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from commonplace.errors import IngestFailed
from commonplace.model.ids import Json, parse_time


class SavedAs(StrEnum):
    """What becomes of an entry."""

    ITEM = "item"
    SESSION = "session"  # a conversation
    FEED = "feed"  # a subscription


@dataclass(frozen=True, slots=True)
class Attachment:
    name: str
    file: str  # its name in the folder that the reader wrote to: a number


@dataclass(frozen=True, slots=True)
class Saved:
    """A bookmark, a note if it has no URL, a conversation or a feed."""

    title: str
    url: str | None = None
    text: str = ""  # of a note; of a page as the program has stored it
    tags: tuple[str, ...] = ()
    folder: str | None = None  # a path
    at: datetime | None = None
    lost: str = ""  # the reason why it cannot be imported, for the report
    note: str = ""  # what its owner wrote on the page
    author: str = ""
    whole: bool = False  # whether `text` is the page, so that it need not be fetched
    key: str = ""  # what its program calls it; else title and date identify a note
    links: tuple[str, ...] = ()  # keys of others that it refers to
    attachments: tuple[Attachment, ...] = ()
    about: Json = field(default_factory=dict)  # the program's other fields
    kind: str = SavedAs.ITEM


def write_saved(saved: Saved) -> bytes:
    line = json.dumps(asdict(saved), default=str, ensure_ascii=False, separators=(",", ":"))
    return line.encode("utf-8", "replace") + b"\n"


def read_saved(file: Path, longest: int) -> Iterator[Saved]:
    """Yield what a reader wrote. A hostile file may have taken it over, so types are checked."""
    with file.open("rb") as lines:
        while line := lines.readline(longest):
            try:
                yield _saved(json.loads(line))
            except (ValueError, KeyError, TypeError):
                raise IngestFailed("The export could not be read.") from None


def _saved(found: dict[str, Any]) -> Saved:
    at, about = parse_time(found["at"]) if found["at"] else None, found["about"]
    return Saved(
        **{name: str(found[name] or "") for name in _WORDS},
        kind=SavedAs(found["kind"]),
        url=str(found["url"]) if found["url"] else None,
        folder=str(found["folder"]) if found["folder"] else None,
        at=at,
        whole=found["whole"] is True,
        tags=tuple(map(str, found["tags"])),
        links=tuple(map(str, found["links"])),
        attachments=tuple(
            Attachment(str(each["name"]), str(int(each["file"]))) for each in found["attachments"]
        ),
        about=about if isinstance(about, dict) else {},
    )


_WORDS = ("title", "text", "lost", "note", "author", "key")
