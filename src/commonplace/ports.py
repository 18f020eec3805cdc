"""Protocols that have several implementations, chosen by settings, and the values they exchange."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from commonplace.model import (
    Begun,
    Extracted,
    Feed,
    Fetched,
    Json,
    Proposal,
    SiteLinks,
    Transcript,
    Transformed,
    Video,
    Words,
)

Vectors = NDArray[np.float32]  # (n, dimensions), unit rows
Vector = NDArray[np.float32]
R = TypeVar("R")

TEXT: Json = {"type": "string"}  # these three make the schemas of a model's answers


def array_of(item: Json) -> Json:
    return {"type": "array", "items": item}


def object_of(**properties: Json) -> Json:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


@dataclass(frozen=True, slots=True)
class Question:
    """A search query as the index sees it: words, a vector, or both."""

    words: Words | None  # None: no keyword search
    vector: Vector | None
    stamp: str  # only vectors with the same stamp are compared
    limit: int  # of each kind


class Matches(NamedTuple):
    """Scores of each section found, by keyword and by similarity."""

    ids: NDArray[np.int64]
    keyword: NDArray[np.float32]  # 0: no keyword match
    cosines: NDArray[np.float32]  # NaN: unknown
    complete: bool = True  # every section that the caller may search has a vector
    # Returns the vectors at these places of `ids`, which have a cosine.
    vectors: Callable[[NDArray[np.intp]], NDArray[np.float16]] | None = None


class Profile(NamedTuple):
    """What an item is compared with others by."""

    item_id: str
    public_id: str
    title: str
    entity_type: str
    head: Vector  # of the first section
    mean: Vector  # of the sections, normalized
    terms: NDArray[np.uint32]  # different words of the first sections; empty: unknown


class Closable(Protocol):
    """An adapter that may hold connections, processes or models until it is closed."""

    async def close(self) -> None:
        """Release them. Nothing is called afterwards."""


class Embedder(Closable, Protocol):
    """Turn text into unit vectors.

    `stamp` names model and dimensions: vectors of different stamps are never compared.
    """

    stamp: str
    dimensions: int
    quick: bool  # fast enough to embed bulk additions as they are written, without jobs

    async def documents(self, texts: Sequence[Sequence[str]]) -> list[Vectors]:
        """Embed the passages of each document; contextual models see a document's together."""

    async def query(self, text: str) -> Vector:
        """Embed a search query."""


class ModelDownload(Protocol):
    """Download the model that the embedder needs, where it is not installed."""

    @property
    def missing(self) -> str | None:
        """Say why search matches keywords only; None when the model is there."""

    async def keep_trying(self, tell: Callable[[str], None]) -> None:
        """Download it, tell the progress in sentences, and try again until it is there."""


@dataclass(frozen=True, slots=True)
class Window:
    """What is left of a rate limit."""

    allowed: bool
    remaining: int
    reset: float  # seconds until all uses are free again; until one is, if it is not allowed


class Limits(Closable, Protocol):
    """Rate limits over a sliding window."""

    async def hit(self, key: str, amount: int, seconds: int) -> Window:
        """Count one use of `amount` allowed per `seconds`, unless there were too many."""

    async def peek(self, key: str, amount: int, seconds: int) -> Window:
        """Return what is left without counting a use."""


class Wake(Closable, Protocol):
    """Tell sleeping workers, on any machine, about a new job. A lost signal only costs a poll."""

    async def signal(self) -> bool:
        """Wake the workers. Returns whether the signal could be sent to all of them."""

    async def wait(self, seconds: float) -> None:
        """Sleep until a signal comes, or for so long."""


class Fetcher(Closable, Protocol):
    """The only way out to the web. It refuses private networks itself; callers need not check."""

    def get(
        self,
        url: str,
        *,
        max_bytes: int,
        sample_bytes: int | None = None,
        known: Json | None = None,
        redirects: bool = True,
    ) -> AbstractAsyncContextManager[Fetched]:
        """Download to a file that lasts as long as the context. Raises IngestFailed.

        `sample_bytes`: stop there if the response is a recording; enough to detect its type.
        `known`: validators of an earlier response; if nothing is newer, `unchanged` is set.
        `redirects`: False refuses them.
        """

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> int:
        """Send a body, and return the status of the response, also of a redirect. Raises
        IngestFailed."""

    async def check(self, url: str) -> None:
        """Raise IngestFailed if the address is invalid, or leads to a private network."""


class Extractor(Closable, Protocol):
    """Turn files into text, in separate processes that never block the event loop.

    `queue` names who waits: when all processes are busy, queues take turns.
    """

    async def detect_type(
        self, path: Path, declared: str = "", name: str = "", *, queue: str = ""
    ) -> str:
        """Return the file's actual media type."""

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
        """Read the file's text. Raises IngestFailed when it has none."""

    async def draw_page(self, path: Path, page: int, *, queue: str = "") -> bytes:
        """Draw a page of a PDF, counted from 1, as a PNG. IngestFailed: there is none."""

    async def draw(
        self, path: Path, media_type: str, edge: int, least: int, *, queue: str = ""
    ) -> bytes | None:
        """Return a small picture of the file as WebP, at most `edge` pixels wide and high. None: it
        has none, or one with a side shorter than `least`. Raises IngestFailed."""

    async def parse_feed(self, path: Path, url: str, *, queue: str = "") -> Feed:
        """Read the file's entries. Raises IngestFailed when it is not a feed."""

    async def read_export(self, path: Path, into: Path, *, name: str = "", queue: str = "") -> Path:
        """Read another program's export. Writes its attachments to the folder `into`, each named by
        a number, and returns the file there with its entries (see `read_saved`). Raises
        IngestFailed when it is not one."""

    async def find_pages(
        self, path: Path, media_type: str, url: str, *, charset: str | None = None, queue: str = ""
    ) -> SiteLinks:
        """Return where a page, a sitemap (gzipped or not) or a list of links leads to."""


class Videos(Protocol):
    """YouTube videos: their captions, and their audio where they have none."""

    async def read(self, video_id: str) -> Video:
        """Raises IngestFailed when the video, or its captions or audio, are not available."""

    def open(self, video_id: str, *, max_bytes: int) -> AbstractAsyncContextManager[Path]:
        """Download the audio to a file that lasts as long as the context. Raises IngestFailed."""


class Transcriber(Closable, Protocol):
    """Turn speech into text."""

    name: str
    is_remote: bool

    async def transcribe(
        self,
        recording: Path | None,
        progress: Callable[[float], Awaitable[None]],
        begun: Begun | None = None,
    ) -> Transcript:
        """Transcribe a recording, reporting the share that is done (0 to 1) to `progress`.

        Raises IngestFailed when the recording is at fault, and TranscriptionFailed (worth a
        retry) when the transcriber is. What `begun` remembers, a later attempt goes on from; a
        remote transcriber then needs no recording.
        """


class Blobs(Closable, Protocol):
    """Original files, by key."""

    async def put(self, key: str, file: Path) -> None:
        """Store a copy of the file, whole or not at all."""

    def file(self, key: str) -> AbstractAsyncContextManager[Path]:
        """Provide the bytes as a readable file for as long as the context lasts.

        Raises NotFound for an unknown key.
        """

    async def size(self, key: str) -> int | None:
        """Return None for an unknown key."""

    async def delete(self, key: str) -> None:
        """Delete the file, if there is one."""

    async def put_url(self, key: str, seconds: int) -> str | None:
        """Return a URL that accepts the bytes by PUT for so long; None without direct uploads."""


class Model(Closable, Protocol):
    """A language model that answers in JSON."""

    async def complete(
        self,
        task: str,
        material: str,
        schema: Json,
        parse: Callable[[Json, float | None], R],
        *,
        seconds: float = 180.0,
    ) -> R:
        """Return the parsed answer to a task. Raises TransformFailed, within `seconds`.

        `task` is ours; `material` is data, of which a bounded part is sent. `parse` gets an answer
        that should have the shape of `schema`, and its cost in dollars (None: unknown). It may
        raise the errors of dictionaries and lists if the answer has another shape.
        """


class Transformer(Closable, Protocol):
    """Derive summary, key points, tags and a category from an item's text."""

    async def transform(self, title: str, sections: Sequence[str]) -> Transformed:
        """Raises TransformFailed when a service gives no usable answer."""


class Reflector(Closable, Protocol):
    """Extract candidate memories from notes or a transcript."""

    async def reflect(self, title: str, text: str, limit: int) -> list[Proposal]:
        """Return the surest first. Raises TransformFailed when a service gives no usable answer."""
