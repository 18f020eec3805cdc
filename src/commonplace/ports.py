"""What the core asks of the outside, as small as it can be. Each port has one contract suite in tests/contract."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from commonplace.model import (
    Content,
    Entry,
    Event,
    Extracted,
    Feed,
    Fetched,
    Folder,
    Item,
    ItemFilter,
    ItemRef,
    Job,
    Json,
    Outcome,
    Passage,
    Person,
    Scope,
    Scored,
    Section,
    Subscription,
    Token,
    Transcript,
    Transformed,
    Upload,
    Words,
)

Vectors = NDArray[np.float32]   # (n, dimensions), rows of length one
Vector = NDArray[np.float32]


class Embedder(Protocol):
    """Text to unit vectors. `stamp` names model and dimension: vectors of two stamps are never compared."""

    stamp: str
    dimensions: int

    async def documents(self, texts: Sequence[Sequence[str]]) -> list[Vectors]:
        """Per document, its passages in order (contextualised models see them together)."""
        ...

    async def query(self, text: str) -> Vector: ...

    async def close(self) -> None: ...


class Limits(Protocol):
    """Counts uses in a sliding window."""

    async def hit(self, key: str, amount: int, seconds: int) -> float | None:
        """None when there was room for one more of `amount` per `seconds`, else the seconds until there is."""
        ...

    async def close(self) -> None: ...


class Wake(Protocol):
    """Tells sleeping workers, here or on another machine, that there is a job. Losing a signal only costs a poll."""

    async def signal(self) -> None: ...

    async def wait(self, seconds: float) -> None: ...

    async def close(self) -> None: ...


class Fetcher(Protocol):
    """The only way out to the web. It refuses private networks by itself; no caller has to remember."""

    def get(self, url: str, *, max_bytes: int, taste: int | None = None) -> AbstractAsyncContextManager[Fetched]:
        """IngestFailed, with a reason in words, when it cannot be had. The file lasts as long as the context.

        `taste`: of a recording, as the server calls it, only about so many bytes; enough to tell what it is.
        """
        ...

    async def close(self) -> None: ...


class Extractor(Protocol):
    """Files to text. Runs in threads or processes of its own; never blocks the loop."""

    async def kind(self, path: Path, declared: str = "", name: str = "") -> str:
        """The media type that the file really has."""
        ...

    async def extract(self, path: Path, media_type: str, *, charset: str | None = None,
                      url: str | None = None, name: str = "") -> Extracted:
        """IngestFailed, with a reason in words, when nothing can be read in it."""
        ...

    async def feed(self, path: Path, url: str) -> Feed:
        """IngestFailed when the file is none."""
        ...

    async def close(self) -> None: ...


class Captions(Protocol):
    """What is said in a video of YouTube, by its captions."""

    async def of(self, video_id: str) -> Extracted | None:
        """None: there are none. IngestFailed when the video is not to be had."""
        ...


class Transcriber(Protocol):
    """Speech to text. `progress` is told the share that is done, 0..1."""

    name: str

    async def transcribe(self, recording: Path, progress: Callable[[float], Awaitable[None]]) -> Transcript:
        """IngestFailed when the recording is at fault; TranscriptionFailed when the transcriber is (worth another try)."""
        ...

    async def close(self) -> None: ...


class Blobs(Protocol):
    """Files as they came, by key."""

    async def put(self, key: str, file: Path) -> None: ...

    def file(self, key: str) -> AbstractAsyncContextManager[Path]:
        """The bytes as a file to be read, for as long as the context lasts. NotFound when there is none."""
        ...

    async def size(self, key: str) -> int | None:
        """None when there is none."""
        ...

    async def delete(self, key: str) -> None:
        """Also when there is none."""
        ...

    async def put_url(self, key: str, seconds: int) -> str | None:
        """An address that takes the bytes by PUT for so long; None when the store has no door of its own."""
        ...

    async def close(self) -> None: ...


class Transformer(Protocol):
    """Summary, key points, tags and a category out of an item's text."""

    async def transform(self, title: str, sections: Sequence[str]) -> Transformed: ...

    async def close(self) -> None: ...


class People(Protocol):
    async def create(self, person: Person) -> None:
        """A person and a library of their own, which has the person's id. NameTaken: the email is known."""
        ...

    async def all(self) -> list[Person]: ...

    async def role(self, person_id: str, library_id: str) -> str | None: ...


class Tokens(Protocol):
    async def create(self, token: Token, digest: str) -> None: ...

    async def by_digest(self, digest: str) -> Token | None: ...

    async def of_library(self, library_id: str) -> list[Token]: ...

    async def revoke(self, library_id: str, token_id: str) -> bool: ...

    async def record(self, events: Sequence[Event]) -> None:
        """Append to the activity log and move `last_used_at`."""
        ...

    async def activity(self, library_id: str, token_id: str, limit: int) -> list[Event]: ...


class Folders(Protocol):
    async def create(self, folder: Folder) -> None:
        """NameTaken when the library has the name, whatever its case."""
        ...

    async def within(self, scope: Scope) -> list[Folder]: ...

    async def rename(self, scope: Scope, folder_id: str, name: str) -> Folder: ...

    async def delete(self, scope: Scope, folder_id: str, *, cascade_items: bool) -> None:
        """With `cascade_items`, items that lie in no other folder go too. A token whose last folder goes is revoked."""
        ...


class Items(Protocol):
    async def add(self, item: Item, content: Content, sections: Sequence[Section], *, scope: Scope,
                  folder_id: str | None, stamp: str, jobs: Sequence[Job]) -> tuple[Item, bool]:
        """All of it in one transaction. What the scope already holds with this content and type (and, for texts, title):
        that, and False. Conflict: by now the key stands for a content that says something else."""
        ...

    async def known(self, scope: Scope, key: str, entity_type: str, *,
                    token_id: str | None = None) -> tuple[Content | None, Item | None]:
        """What the key stands for, and the item that has it: in scope, or added by the token and not filed yet."""
        ...

    async def renew(self, scope: Scope, item_id: str, content: Content, changes: dict[str, Any], *,
                    sections: Sequence[Section], stamp: str, jobs: Sequence[Job]) -> Item:
        """From now on the content's key stands for this content, and the item has it. Others keep what they have."""
        ...

    async def annotate(self, item: Item, changes: dict[str, Any], key_points: Sequence[Sequence[str]]) -> None:
        """Change what was made of the text: fields, and each section's key points. Not a revision of anybody's."""
        ...

    async def put(self, entries: Sequence[Entry], *, scope: Scope, stamp: str) -> list[Outcome]:
        """Many, in one transaction: new, or brought up to date (see Entry)."""
        ...

    async def get(self, scope: Scope, ref: ItemRef) -> Item: ...

    async def text(self, item: Item) -> str: ...

    async def page(self, scope: Scope, where: ItemFilter, *, limit: int, offset: int) -> tuple[list[Item], int]:
        """Newest first, and how many there are in all."""
        ...

    async def update(self, scope: Scope, item_id: str, changes: dict[str, Any], *, expected_revision: int | None,
                     sections: Sequence[Section] | None, stamp: str, jobs: Sequence[Job]) -> Item:
        """Change fields; `sections` (when not None) replace those that are there. A new title needs new ones."""
        ...

    async def delete(self, scope: Scope, item_id: str) -> None: ...

    async def file(self, scope: Scope, ref: ItemRef, folder_ids: Sequence[str], *, token_id: str | None) -> list[str]:
        """Folders it was not in before. A token may also file what it added and nobody has filed yet."""
        ...

    async def unfile(self, scope: Scope, ref: ItemRef, folder_id: str) -> None: ...


class Contents(Protocol):
    """What sources said. While one worker writes down a recording, the others' jobs for it wait."""

    async def get(self, content_id: str) -> Content: ...

    async def claim(self, content_id: str, job_id: str, until: datetime) -> bool:
        """Whether this job is the one that writes it down, until then; again to hold it longer."""
        ...

    async def progress(self, content_id: str, share: float) -> None:
        """Told to all jobs that wait for it."""
        ...

    async def fulfil(self, content_id: str, text: str, segments: Sequence[Json], about: Json) -> None:
        """It has its text; those who waited go on."""
        ...

    async def release(self, content_id: str, job_id: str) -> None:
        """Another may try."""
        ...

    async def give_up(self, content_id: str, error: str) -> None:
        """It cannot be written down: all jobs that wait for it fail, and their items say so."""
        ...


class Quotas(Protocol):
    """Seconds of speech that people had written down, by month."""

    async def used(self, library_id: str, person_id: str, month: str) -> float: ...

    async def reserve(self, job: Job, person_id: str, month: str, seconds: float, cap: float) -> bool:
        """Whether there is room for so many seconds more; 0: no cap. Asking again for one job replaces what it had."""
        ...

    async def settle(self, job: Job, seconds: float) -> None:
        """What it really was; 0 when nothing came of it."""
        ...


class Sections(Protocol):
    async def of_item(self, item: Item) -> list[Section]: ...

    async def of_content(self, content_id: str, title: str, stamp: str) -> list[Section]:
        """With vectors of this stamp, of some item that has the content under this title; none if there is no such item."""
        ...

    async def keyword(self, scope: Scope, words: Words, limit: int) -> list[Scored]:
        """Best first; scores are above 0 and comparable within one answer only."""
        ...

    async def nearest(self, scope: Scope, vector: Vector, stamp: str, limit: int,
                      also: Sequence[int] = ()) -> list[Scored]:
        """Cosines, best first: the nearest `limit`, and whichever of `also` have a vector."""
        ...

    async def passages(self, scope: Scope, section_ids: Sequence[int]) -> list[Passage]:
        """In any order; what is out of scope or gone by now is left out."""
        ...

    async def unembedded(self, item_ids: Sequence[str], stamp: str) -> list[tuple[str, str, int, Section]]:
        """(item_id, title, section_id, section) without a vector of this stamp, in order of item and position."""
        ...

    async def set_vectors(self, stamp: str, vectors: Sequence[tuple[int, bytes]]) -> None:
        """float16 bytes by section id; a section that is gone by now is passed over."""
        ...

    async def coverage(self, scope: Scope, stamp: str) -> tuple[int, int]:
        """(sections with a vector of this stamp, sections in all)."""
        ...

    async def has_other_stamp(self, stamp: str) -> bool:
        """Whether any vector was made by another embedder."""
        ...


class Uploads(Protocol):
    async def create(self, upload: Upload) -> None: ...

    async def get(self, upload_id: str) -> Upload:
        """Of any library: whoever asks has to check whose it is."""
        ...

    async def finish(self, upload: Upload, item_id: str) -> str:
        """Say which item came of it; the one that is there already, if another was first."""
        ...

    async def spent(self, at: datetime, *, keep: bool) -> list[Upload]:
        """Whose bytes nobody needs: those that expired or whose item is gone; and, unless originals are kept, those
        that were read or written down."""
        ...

    async def forget(self, uploads: Sequence[Upload]) -> None: ...


class Feeds(Protocol):
    async def create(self, feed: Subscription) -> Subscription:
        """The one that the subscriber has for this address and folder already, if there is one."""
        ...

    async def within(self, library_id: str, token_id: str | None) -> list[Subscription]:
        """The library's, or only those of one token."""
        ...

    async def delete(self, feed: Subscription) -> None: ...

    async def lease(self, seconds: int) -> Subscription | None:
        """One whose time has come, and which nobody else is given for `seconds`."""
        ...

    async def taken(self, feed: Subscription, tries: int) -> set[str]:
        """Entries that were taken in, or tried so often."""
        ...

    async def note(self, feed: Subscription, entries: Sequence[str], *, ok: bool) -> None: ...

    async def polled(self, feed: Subscription, *, title: str, error: str | None, poll_at: datetime) -> None: ...


class Jobs(Protocol):
    async def enqueue_embedding(self, stamp: str) -> int:
        """A job for every item that has sections without a vector of this stamp and no job waiting; how many."""
        ...

    async def lease(self, worker: str, *, limit: int, seconds: int, kinds: Sequence[str] | None = None) -> list[Job]:
        """Jobs of one kind (of these) that nobody holds, held for `seconds`."""
        ...

    async def extend(self, worker: str, job_ids: Sequence[str], seconds: int) -> None: ...

    async def finish(self, worker: str, job_ids: Sequence[str]) -> None: ...

    async def fail(self, worker: str, job_id: str, error: str, retry_at: datetime | None) -> None:
        """Back to the queue at `retry_at`, or failed for good."""
        ...

    async def postpone(self, worker: str, job_id: str, until: datetime) -> None:
        """Back to the queue as if it had not been tried."""
        ...

    async def retry(self, scope: Scope, item_id: str) -> list[Job]:
        """Queue the item's failed jobs anew."""
        ...

    async def get(self, scope: Scope, job_id: str) -> Job: ...

    async def latest(self, item: Item, kind: str) -> Job | None: ...

    async def is_open(self, scope: Scope, kind: str) -> bool:
        """Whether a job of this kind is waiting or running for something in scope."""
        ...

    async def counts(self) -> dict[str, int]: ...

    async def underway(self) -> float:
        """How many jobs' worth of the running ones is done."""
        ...

    async def prune(self, before: datetime) -> None:
        """Forget jobs done before then."""
        ...


class Store(Protocol):
    @property
    def people(self) -> People: ...

    @property
    def tokens(self) -> Tokens: ...

    @property
    def folders(self) -> Folders: ...

    @property
    def items(self) -> Items: ...

    @property
    def contents(self) -> Contents: ...

    @property
    def quotas(self) -> Quotas: ...

    @property
    def sections(self) -> Sections: ...

    @property
    def jobs(self) -> Jobs: ...

    @property
    def uploads(self) -> Uploads: ...

    @property
    def feeds(self) -> Feeds: ...

    async def open(self) -> None:
        """Connect and bring the schema up to date, under a lock."""
        ...

    async def ping(self) -> None: ...

    async def describe(self) -> Json:
        """`engine`, its `version`, and the `schema`'s number."""
        ...

    async def dump(self, file: Path) -> dict[str, int]:
        """Everything, as of one moment, in one file that any engine can load; rows by table."""
        ...

    async def load(self, file: Path, *, replace: bool) -> dict[str, int]:
        """All of a dump or nothing. Conflict when something is there that `replace` does not give up."""
        ...

    async def close(self) -> None: ...
