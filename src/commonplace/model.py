"""The nouns: frozen values that travel between faces, core and adapters."""

import hashlib
import secrets
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

Json = dict[str, Any]


class Capability(StrEnum):
    READ = "read"
    WRITE = "write"


class Mode(StrEnum):
    SEMANTIC = "semantic"
    KEYWORD = "keyword"
    HYBRID = "hybrid"


class JobState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class EntityType(StrEnum):
    DOCUMENT = "document"
    EPISODE = "episode"
    PATTERN = "pattern"
    PROCEDURE = "procedure"
    DECISION = "decision"
    PLAN = "plan"
    IDEA = "idea"
    CLAIM = "claim"
    ARTIFACT = "artifact"
    SESSION = "session"
    DOMAIN = "domain"
    TASK = "task"
    EPIC = "epic"
    PROJECT = "project"


def now() -> datetime:
    return datetime.now(UTC)


def new_id() -> str:
    return str(uuid.uuid4())


_PUBLIC_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ"


def new_public_id() -> str:
    """Twelve characters without look-alikes and without `_`, so that `<type>_<public_id>` splits one way only."""
    return "".join(secrets.choice(_PUBLIC_ALPHABET) for _ in range(12))


@dataclass(frozen=True, slots=True)
class Scope:
    """What a caller may see. Every query takes one; there is no other way to read items."""

    library_id: str
    folders: frozenset[str] | None = None  # None: the whole library
    kb_only: bool = False


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: a token, a JWT, or a person at the command line (no token, no limits)."""

    library_id: str
    person_id: str
    name: str
    capabilities: frozenset[Capability] = frozenset({Capability.READ})
    folders: frozenset[str] | None = None
    kb_only: bool = False
    token_id: str | None = None
    limit_key: str | None = None  # what allowances are counted by; None: not counted

    @property
    def scope(self) -> Scope:
        return Scope(self.library_id, self.folders, self.kb_only)

    @property
    def whole_library(self) -> bool:
        return self.folders is None

    @property
    def only_folder(self) -> str | None:
        """The folder that new items are filed in, when there is exactly one it can be."""
        return next(iter(self.folders)) if self.folders is not None and len(self.folders) == 1 else None


@dataclass(frozen=True, slots=True)
class Person:
    id: str
    name: str
    email: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Token:
    id: str
    library_id: str
    person_id: str
    name: str
    capabilities: frozenset[Capability]
    folders: frozenset[str] | None
    kb_only: bool
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Folder:
    id: str
    library_id: str
    name: str
    created_at: datetime
    item_count: int = 0


@dataclass(frozen=True, slots=True)
class Section:
    """A passage as the core cuts it; the store adds the row's number."""

    position: int
    text: str
    heading: str = ""        # the headings above it, outermost first, joined by " > "
    extra: str = ""          # derived search words: parts of identifiers, pairs of CJK characters
    word_count: int = 0
    key_points: tuple[str, ...] = ()
    locator: Json = field(default_factory=dict)   # where it was: page, seconds ...
    vector: bytes | None = None                    # float16, normalised


@dataclass(frozen=True, slots=True)
class Content:
    """What a source said. `key` makes the same source one content: a canonical URL, or a hash within a library."""

    id: str
    key: str
    text: str
    url: str | None = None
    segments: tuple[Json, ...] = ()               # {"at": character, "locator": {...}}: where its parts were in the source
    about: Json = field(default_factory=dict)     # what the source says of itself: title, author, published_at, language

    @property
    def marks(self) -> "tuple[Mark, ...]":
        return tuple(Mark(segment["at"], segment["locator"]) for segment in self.segments)

    @property
    def hash(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Item:
    id: str
    library_id: str
    public_id: str
    content_id: str
    entity_type: str
    kind: str                      # text, url, file: how it came in
    title: str
    url: str | None = None
    summary: str = ""
    key_points: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    category: str = ""
    visibility: str = "private"
    in_kb: bool = True
    archived: bool = False
    transcription_status: str | None = None
    metadata: Json = field(default_factory=dict)
    revision: int = 1
    word_count: int = 0
    created_by: str | None = None  # the token; lets it file what it added itself
    created_at: datetime = field(default_factory=now)
    updated_at: datetime = field(default_factory=now)
    folders: tuple[str, ...] = ()  # within the reader's scope

    @property
    def entity_id(self) -> str:
        return f"{self.entity_type}_{self.public_id}"


@dataclass(frozen=True, slots=True)
class Job:
    id: str
    library_id: str
    item_id: str
    kind: str
    state: JobState = JobState.QUEUED
    attempts: int = 0
    error: str | None = None
    progress: float = 0.0
    payload: Json = field(default_factory=dict)
    created_at: datetime = field(default_factory=now)
    updated_at: datetime = field(default_factory=now)
    run_after: datetime = field(default_factory=now)


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that somebody said they would send."""

    id: str
    library_id: str
    owner: str                     # who may finish it: the caller's `limit_key`
    filename: str
    content_type: str
    size: int
    expires_at: datetime
    created_at: datetime = field(default_factory=now)
    item_id: str | None = None     # what came of it

    @property
    def key(self) -> str:
        """Where its bytes are among the blobs."""
        return f"uploads/{self.library_id}/{self.id}"


@dataclass(frozen=True, slots=True)
class Subscription:
    """A feed that somebody follows; its entries are added with the rights of who subscribed."""

    id: str
    library_id: str
    url: str
    title: str
    person_id: str
    token_id: str | None = None
    folder_id: str | None = None
    newest: int = 10               # entries that the first visit takes
    created_at: datetime = field(default_factory=now)
    polled_at: datetime | None = None
    poll_at: datetime = field(default_factory=now)
    error: str | None = None       # why the last visit brought nothing


class Outcome(StrEnum):
    ADDED = "added"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class Entry:
    """An item that is ready to be written: its content, its passages, the job for what is left, `item.folders` to lie in.

    An entry whose id is known brings that item up to date. `once`: what is there with the same content, type and title
    counts as this one, as it does when things are added one by one.
    """

    item: Item
    content: Content
    sections: tuple[Section, ...] = ()
    job: Job | None = None
    once: bool = True


@dataclass(frozen=True, slots=True)
class Event:
    """A line of a token's activity log."""

    library_id: str
    token_id: str
    action: str
    target: str | None
    ok: bool
    at: datetime = field(default_factory=now)


@dataclass(frozen=True, slots=True)
class Words:
    """A keyword query, engine-neutral: alternatives, any of which may match; each a phrase of one or more words."""

    phrases: tuple[tuple[str, ...], ...]


class Scored(NamedTuple):
    section_id: int
    score: float


@dataclass(frozen=True, slots=True)
class Passage:
    """A section loaded for an answer, with what its item says about it."""

    section_id: int
    item_id: str
    public_id: str
    entity_type: str
    title: str
    url: str | None
    position: int
    heading: str
    text: str
    word_count: int
    key_points: tuple[str, ...]
    locator: Json


@dataclass(frozen=True, slots=True)
class Hit:
    rank: int
    score: float
    passage: Passage


@dataclass(frozen=True, slots=True)
class Found:
    """A search's answer. `degraded` says in words why it is less than was asked for."""

    query: str
    mode: Mode
    hits: tuple[Hit, ...]
    degraded: str | None = None


@dataclass(frozen=True, slots=True)
class ItemFilter:
    folder_id: str | None = None
    in_kb: bool | None = None
    archived: bool | None = None
    entity_types: tuple[str, ...] = ()
    text: str | None = None


@dataclass(frozen=True, slots=True)
class ItemRef:
    """An item's name in one of its three spellings, parsed once at the edge."""

    id: str | None = None
    public_id: str | None = None
    entity_type: str | None = None

    @classmethod
    def parse(cls, text: str) -> "ItemRef":
        try:
            return cls(id=str(uuid.UUID(text)))
        except ValueError:
            prefix, _, rest = text.rpartition("_")
            return cls(public_id=rest, entity_type=prefix or None)


@dataclass(frozen=True, slots=True)
class Fetched:
    """What an address answered, in a file that the fetcher's `async with` removes again."""

    url: str                       # where it was in the end, after redirects
    media_type: str                # lower case, without parameters; "" when the server said nothing
    charset: str | None
    path: Path
    size: int


@dataclass(frozen=True, slots=True)
class Mark:
    """From this character of the text on, it was there in the source: {"page": 3}, {"seconds": 12.5}."""

    at: int
    locator: Json


@dataclass(frozen=True, slots=True)
class Extracted:
    """What was read out of a source: Markdown, and where its parts were."""

    title: str
    text: str
    marks: tuple[Mark, ...] = ()
    author: str | None = None
    published_at: datetime | None = None
    language: str | None = None
    links: tuple[str, ...] = ()    # audio and feeds that a page points to, best first


@dataclass(frozen=True, slots=True)
class FeedEntry:
    id: str                        # the feed's own name for it, else its address: what "seen before" is decided by
    title: str
    url: str | None
    audio_url: str | None = None
    published_at: datetime | None = None
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Feed:
    title: str
    url: str
    entries: tuple[FeedEntry, ...]


@dataclass(frozen=True, slots=True)
class Utterance:
    """A stretch of speech."""

    start: float                   # seconds
    end: float
    text: str


@dataclass(frozen=True, slots=True)
class Transcript:
    utterances: tuple[Utterance, ...]
    seconds: float                 # how long the recording is: what quotas count
    language: str | None = None


@dataclass(frozen=True, slots=True)
class Transformed:
    """What was made of an item's text for those who do not want to read all of it."""

    summary: str
    key_points: tuple[str, ...]
    section_points: tuple[tuple[str, ...], ...]  # one for each section
    tags: tuple[str, ...]
    category: str
    by_model: bool = False
    cost_usd: float | None = 0.0   # None: it cost something, but the model's price is not known
