"""Values from outside: fetched files, extracted texts, feeds, transcripts."""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from commonplace.model.ids import Json, Stored, now


@dataclass(frozen=True, slots=True)
class Fetched:
    """The answer of an address, in a file that the fetcher's `async with` deletes."""

    url: str  # where it was in the end, after redirects
    media_type: str  # lower case, without parameters; "" when the server said nothing
    charset: str | None
    path: Path
    size: int
    validators: Json = field(default_factory=dict)  # etag, last_modified
    max_age: int = 0  # seconds that it may be cached, as the server says
    robots: str = ""  # X-Robots-Tag
    unchanged: bool = False  # the server has nothing newer than what was known; the file is empty


class FileRole(StrEnum):
    PAGE = "page"  # the answer that the text was read from, gzipped
    IMAGE = "image"  # one that the text shows, as WebP
    PICTURE = "picture"  # a small one, as WebP


@dataclass(frozen=True, slots=True)
class SourceFile(Stored):
    """A file that belongs to a text. Each library has its own copy."""

    role: str
    url: str
    media_type: str
    hash: str
    size: int
    content_id: str | None = None  # None: no text needs it, or not yet
    created_at: datetime = field(default_factory=now)
    data: bytes = field(default=b"", repr=False, compare=False)  # until it is stored

    @property
    def key(self) -> str:
        """The key of its bytes in the blob store."""
        return f"sources/{self.library_id}/{self.id}"


def source_file(role: str, url: str, media_type: str, data: bytes) -> SourceFile:
    """Return a new file, which is of no library yet."""
    hash = hashlib.sha256(data).hexdigest()
    return SourceFile("", "", role, url, media_type, hash, len(data), data=data)


@dataclass(frozen=True, slots=True)
class Mark:
    """The place in the source from this character on: {"page": 3}, {"seconds": 12.5}."""

    at: int
    locator: Json


@dataclass(frozen=True, slots=True)
class Extracted:
    """The text of a source as Markdown, with the places of its parts."""

    title: str
    text: str
    marks: tuple[Mark, ...] = ()
    author: str | None = None
    published_at: datetime | None = None
    language: str | None = None
    links: tuple[str, ...] = ()  # audio and feeds that a page points to, best first
    pictures: tuple[str, ...] = ()  # addresses of images that show what it is about, best first
    address: str | None = None  # that a page declares as its own
    truncated: bool = False  # whether the source says more than this text
    tags: tuple[str, ...] = ()
    front_matter: Json = field(default_factory=dict)  # the rest of it, as an export writes it


@dataclass(frozen=True, slots=True)
class FeedEntry:
    id: str  # the feed's own name for it, else its address: what "seen before" is decided by
    title: str
    url: str | None
    audio_url: str | None = None
    published_at: datetime | None = None
    summary: str = ""  # or all of its text
    author: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Feed:
    title: str
    url: str
    entries: tuple[FeedEntry, ...]
    feeds: tuple[str, ...] = ()  # that a page names which is none itself


@dataclass(frozen=True, slots=True)
class Chapter:
    start: float  # seconds
    title: str


@dataclass(frozen=True, slots=True)
class Video:
    """What a site says about a video, its description and captions as text."""

    found: Extracted
    has_captions: bool
    seconds: float = 0.0  # 0: it does not say
    chapters: tuple[Chapter, ...] = ()


@dataclass(frozen=True, slots=True)
class Utterance:
    """A stretch of speech."""

    start: float  # seconds
    end: float
    text: str
    speaker: str | None = None


@dataclass(frozen=True, slots=True)
class Begun:
    """What an earlier attempt left behind: the service's name of its job, or the speech so far."""

    state: Json | None  # None: nothing
    remember: Callable[[Json | None], Awaitable[None]]
    pause: Callable[[float], Awaitable[None]]  # returns early when a callback arrives


@dataclass(frozen=True, slots=True)
class Transcript:
    utterances: tuple[Utterance, ...]
    seconds: float  # how long the recording is: what quotas count
    language: str | None = None
    chapters: tuple[Chapter, ...] = ()


@dataclass(frozen=True, slots=True)
class Transformed:
    """Summary, key points, tags and category of a text."""

    summary: str
    key_points: tuple[str, ...]
    section_points: tuple[tuple[str, ...], ...]  # one for each section
    tags: tuple[str, ...]
    category: str
    by_model: bool = False
    cost_usd: float | None = 0.0  # None: it cost something, but the model's price is not known
