"""Items, their contents and sections, filters for them, and background jobs."""

import re
import uuid
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from commonplace.model.folders import Folder
from commonplace.model.ids import Json, Stored, digest, now, parse_time
from commonplace.model.source_content import Mark, SourceFile

SOURCE_CHECK = "source_check"  # metadata: what was found when its page was fetched again
BY_MODEL = ("ai_generated", "cost_usd")  # metadata of summaries that a model wrote


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


class Origin(StrEnum):
    """Where the text of an item came from, decided when the item is added."""

    YOU = "you"  # a person, in the web app or at the command line
    AGENT = "agent"  # sent over MCP or REST with a token
    WEB = "web"  # fetched from an address
    UPLOAD = "upload"  # a file


@dataclass(frozen=True, slots=True)
class Section:
    """A passage of a text; the store adds its number."""

    position: int
    text: str
    heading: str = ""  # the headings above it, outermost first, joined by " > "
    extra: str = ""  # derived search words: parts of identifiers, pairs of CJK characters
    word_count: int = 0
    key_points: tuple[str, ...] = ()
    locator: Json = field(default_factory=dict)  # where it was: page, seconds ...
    vector: bytes | None = None  # float16, normalised


SHARED = "url:"  # the beginning of keys of public sources


@dataclass(frozen=True, slots=True)
class Content:
    """The text of a source.

    `key` identifies the source: a canonical URL, or a hash within a library. `redirected` are
    other keys that lead to it: addresses that redirected to this one, or named it as canonical,
    when they were read. `canonical` is the address that the page names as its own, if it differs.
    """

    id: str
    key: str
    text: str
    url: str | None = None
    segments: tuple[Json, ...] = ()  # {"at": character, "locator": {...}}: places in the source
    about: Json = field(default_factory=dict)  # title, author, published_at, language
    hash: str = ""  # of the text
    redirected: tuple[str, ...] = ()  # written, not read back
    canonical: str | None = None  # neither written nor read back
    files: tuple[SourceFile, ...] = ()  # written, not read back
    edit_of: str = ""  # the key of the source, if somebody in the library has edited its text

    def __post_init__(self) -> None:
        if not self.hash:
            object.__setattr__(self, "hash", digest(self.text))

    @property
    def shared(self) -> bool:
        """Whether libraries that add the source share what was fetched and transcribed."""
        return is_shared(self.key)

    @property
    def marks(self) -> "tuple[Mark, ...]":
        return tuple(Mark(segment["at"], segment["locator"]) for segment in self.segments)

    def edited(self, id: str, text: str, marks: Iterable[Mark], edit_of: str) -> "Content":
        """Return an edited text of this source, which has a key that no source has."""
        return Content(
            id, f"edit:{id}", text, self.url, segments(marks), self.about, edit_of=edit_of
        )


def is_shared(key: str) -> bool:
    """Return whether a content key is that of a public source, and not of private text."""
    return key.startswith(SHARED)


def segments(marks: Iterable[Mark]) -> tuple[Json, ...]:
    return tuple({"at": mark.at, "locator": mark.locator} for mark in marks)


@dataclass(frozen=True, slots=True)
class Version:
    """An earlier text of an item."""

    item_id: str
    revision: int  # that the item had then
    title: str
    word_count: int
    replaced_at: datetime
    content_id: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Trashed(Stored):
    """A deleted item that can be restored."""

    public_id: str
    entity_type: str
    title: str
    deleted_at: datetime
    deleted_by: str | None  # name of a person or token; None: out of scope, or deleted too

    @property
    def entity_id(self) -> str:
        return f"{self.entity_type}_{self.public_id}"


def publication_date(metadata: Json) -> datetime | None:
    """Return the date of a source, if it has one. Checked, because clients can write any
    metadata."""
    return parse_time(metadata.get("published_at"))


def authored(default: Any) -> Any:
    """Declare a field that the author of an item chooses. Adds, updates, imports and exports take
    the names of these fields from the item."""
    return field(default=default, metadata={"authored": True})


@dataclass(frozen=True, slots=True)
class Item(Stored):
    public_id: str
    content_id: str
    entity_type: str
    kind: str  # text, url, file: how it came in
    title: str
    url: str | None = None
    summary: str = ""
    key_points: tuple[str, ...] = ()
    tags: tuple[str, ...] = authored(())
    # Those of rules or a model. One that is not among `tags` was removed, and stays away.
    auto_tags: tuple[str, ...] = ()
    category: str = authored("")
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
    status: str = ""  # of tasks, epics and memories
    priority: str = authored("")
    due_date: str | None = authored(None)  # ISO date
    valid_until: str | None = authored(None)  # ISO date, or time in UTC; the last that it holds
    review_by: str | None = authored(None)  # the same
    languages: tuple[str, ...] = authored(())
    technologies: tuple[str, ...] = authored(())
    assignees: tuple[str, ...] = authored(())
    annotates: str | None = None  # the item that this one is a note on
    origin: str = Origin.YOU
    folders: tuple[str, ...] = ()  # within the reader's scope
    ingest_status: str | None = None  # queued or failed while its source is unread
    status_reason: str | None = None  # why reading or transcribing failed

    @property
    def own_tags(self) -> tuple[str, ...]:
        """Tags that somebody chose."""
        return tuple(tag for tag in self.tags if tag not in self.auto_tags)

    @property
    def state(self) -> Literal["queued", "ready", "transcribing", "failed"]:
        """The status of reading its source."""
        if self.ingest_status is not None:
            return "failed" if self.ingest_status == "failed" else "queued"
        if self.transcription_status in (None, "done"):
            return "ready"
        return "failed" if self.transcription_status == "failed" else "transcribing"

    @property
    def truncated(self) -> bool:
        """Whether its source has more text than is stored.

        Only sources say so: the metadata of texts is free.
        """
        return self.kind != "text" and self.metadata.get("truncated") is True

    @property
    def published_at(self) -> datetime | None:
        return publication_date(self.metadata)

    @property
    def source_check(self) -> Json:
        """What was found at its address when it was last fetched again: status, at, since, times.

        Only the server says so: the metadata of texts is free.
        """
        found = self.metadata.get(SOURCE_CHECK)
        return found if self.kind != "text" and isinstance(found, dict) else {}

    @property
    def source_status(self) -> str | None:
        return self.source_check.get("status")

    @property
    def source_status_since(self) -> datetime | None:
        return parse_time(self.source_check.get("since"))

    @property
    def source_checked_at(self) -> datetime | None:
        return parse_time(self.source_check.get("at"))

    @property
    def picture(self) -> str | None:
        """The hash of its picture, if its source has one."""
        return self.metadata.get("picture") if self.kind != "text" else None

    @property
    def author(self) -> str:
        """The author of a source."""
        author = self.metadata.get("author")
        return author if isinstance(author, str) else ""

    @property
    def text_language(self) -> str:
        """The ISO code of the language that a source says it is in, without its region."""
        language = self.metadata.get("language")
        return (
            re.split("[-_]", language.lower(), maxsplit=1)[0] if isinstance(language, str) else ""
        )

    @property
    def entity_id(self) -> str:
        return f"{self.entity_type}_{self.public_id}"

    @property
    def due(self) -> str:
        """The due date in words; empty if it has none."""
        return f"due {self.due_date}" if self.due_date else ""

    def is_due_before(self, day: str) -> bool:
        """Whether its due date is before a day, which is an ISO date too."""
        return self.due_date is not None and self.due_date < day


# The authored fields of an item but its title, and their defaults.
AUTHORED: Json = {each.name: each.default for each in fields(Item) if each.metadata.get("authored")}


class Ticket(NamedTuple):
    """The fields of an open task or epic that it is ranked by."""

    id: str
    entity_type: str
    status: str
    priority: str
    due_date: str | None
    created_at: int  # microseconds
    inside: bool = True  # in the project that was asked for
    theirs: bool = True  # of whom was asked for, or nobody's


# The kinds of background jobs.
INGEST = "ingest"  # read the source of an item that was accepted unread
INDEX = "index"  # make or drop the indexes of a large library
EMBED = "embed"  # compute vectors of sections
TRANSFORM = "transform"  # write summary, key points, tags and category
TRANSCRIBE = "transcribe"  # turn a recording into text
LINK = "link"  # link an entity to similar ones
IMPORT = "import"  # read another program's export
WEBHOOK = "webhook"  # send events to an address
Progress = Callable[[float, str], Awaitable[None]]  # the share done, 0..1, and the next step
Advance = Callable[[int, int], None]  # (done so far, in all)


async def no_progress(share: float, message: str) -> None:
    """Report to nobody."""


def no_advance(done: int, total: int) -> None:
    """Report to nobody."""


class JobState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Job(Stored):
    item_id: str | None  # None: of no item
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
class Upload(Stored):
    """A file that a caller has announced."""

    owner: str  # who may finish it: the caller's `limit_key`
    filename: str
    content_type: str
    size: int
    expires_at: datetime
    created_at: datetime = field(default_factory=now)
    item_id: str | None = None  # the item made of it
    on_arrival: Json | None = None  # queue it on its last byte, in `folder`; None: on finalize
    answer: Json | None = None  # the first answer of finalize
    has_file: bool = True  # its bytes have not been deleted

    @property
    def key(self) -> str:
        """The key of its bytes in the blob store."""
        return f"uploads/{self.library_id}/{self.id}"


@dataclass(frozen=True, slots=True)
class Subscription(Stored):
    """A feed subscription; entries are added with the rights of the subscriber."""

    url: str
    title: str
    person_id: str
    token_id: str | None = None
    folder_id: str | None = None
    newest: int = 10  # entries that the first poll adds
    created_at: datetime = field(default_factory=now)
    polled_at: datetime | None = None
    poll_at: datetime = field(default_factory=now)
    error: str | None = None  # of the last poll
    validators: Json = field(default_factory=dict)  # etag and last_modified of the last answer


class Outcome(StrEnum):
    ADDED = "added"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class ItemChange:
    """A change to an item, if it is still at this revision."""

    item_id: str
    changes: Json
    expected_revision: int


@dataclass(frozen=True, slots=True)
class Annotation:
    """Fields derived from an item's text, and each section's key points."""

    item: Item
    changes: Json
    key_points: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """An item to import: its content, sections, open jobs, and folders (`item.folders`).

    An entry with a known id updates that item. With `once`, an item with the same content, type
    and title counts as this one, unless it has another path or, if this one is `dated` by its
    source, another date.
    """

    item: Item
    content: Content
    sections: tuple[Section, ...] = ()
    jobs: tuple[Job, ...] = ()
    once: bool = True
    dated: bool = False


class Order(StrEnum):
    NEWEST = "newest"
    OLDEST = "oldest"
    CHANGED = "changed"
    TITLE = "title"
    LONGEST = "longest"


@dataclass(frozen=True, slots=True)
class ItemFilter:
    """A filter on the items of a scope; fields that are not set do not matter."""

    folder_id: str | None = None
    in_kb: bool | None = None
    archived: bool | None = None
    entity_types: tuple[str, ...] = ()
    not_entity_types: tuple[str, ...] = ()
    text: str | None = None  # part of title, address or tags
    statuses: tuple[str, ...] = ()
    not_statuses: tuple[str, ...] = ()
    category: str | None = None
    notes: bool | None = None  # only notes on items, or none
    tag: str | None = None
    language: str | None = None
    assignee: str | None = None
    priority: str | None = None
    project_id: str | None = None  # its items
    epic_id: str | None = None
    visibility: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    author: str | None = None  # part of the name
    text_language: str | None = None  # ISO code
    published_after: datetime | None = None
    published_before: datetime | None = None
    dated_from: datetime | None = None  # added or published then
    dated_to: datetime | None = None
    as_of: datetime | None = None  # what was there then, and was valid


EVERYTHING = ItemFilter()
ACTIVE = ItemFilter(archived=False)


@dataclass(frozen=True, slots=True)
class ItemRef:
    """A reference to an item: its id, public id, or entity id."""

    id: str | None = None
    public_id: str | None = None
    entity_type: str | None = None
    text: str = field(default="", compare=False)  # as the caller wrote it

    @classmethod
    def parse(cls, text: str) -> "ItemRef":
        try:
            return cls(id=str(uuid.UUID(text)), text=text)
        except ValueError:
            prefix, _, rest = text.rpartition("_")
            return cls(public_id=rest, entity_type=prefix or None, text=text)

    @property
    def missing(self) -> str:
        """The message if it leads to nothing that the caller sees."""
        shown = (self.text or self.id or self.public_id or "")[:200]
        return f"No {'entity' if self.entity_type else 'item'} {shown!r}."


@dataclass(frozen=True, slots=True)
class FullItem:
    """An item with its text, sections and folders, from one snapshot."""

    item: Item
    text: str
    sections: tuple[Section, ...]
    folders: tuple[Folder, ...]  # in the reader's scope; neither counted nor nested
    transcription: Job | None = None  # while it is not done
    source_title: str | None = None
    segments: tuple[Json, ...] = ()  # of the content
