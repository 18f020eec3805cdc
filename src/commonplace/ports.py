"""Protocols of what has several implementations, chosen by settings, and the values they exchange."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from commonplace.model import (
    Extracted,
    Feed,
    Fetched,
    Json,
    Proposal,
    RemoteJob,
    Soundtrack,
    Transcript,
    Transformed,
    Words,
)

Vectors = NDArray[np.float32]  # (n, dimensions), rows of length one


Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Question:
    words: Words | None  # None: not asked for
    vector: Vector | None
    stamp: str  # whose vectors it may be compared with
    limit: int  # of each kind


class Matches(NamedTuple):
    """Scores of each section found, by words and by meaning."""

    ids: NDArray[np.int64]
    keyword: NDArray[np.float32]  # 0: not found by words
    cosines: NDArray[np.float32]  # not a number: not known
    complete: bool = True  # every section that the caller may search has a vector


class Embedder(Protocol):
    """Text to unit vectors. `stamp` names model and dimension: vectors of two stamps are never compared."""

    stamp: str
    dimensions: int
    quick: bool  # so that what is added in bulk gets its vectors as it is written, not by jobs

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

    async def signal(self) -> bool:
        """Whether it could be sent to all."""
        ...

    async def wait(self, seconds: float) -> None: ...

    async def close(self) -> None: ...


class Fetcher(Protocol):
    """The only way out to the web. It refuses private networks by itself; no caller has to remember."""

    def get(
        self,
        url: str,
        *,
        max_bytes: int,
        sample_bytes: int | None = None,
        known: Json | None = None,
    ) -> AbstractAsyncContextManager[Fetched]:
        """IngestFailed, with a reason in words, when it cannot be had. The file lasts as long as the context.

        `sample_bytes`: of a recording, as the server calls it, only about so many bytes; enough to tell what it is.
        `known`: the validators of an earlier answer; `unchanged` says that there is nothing newer.
        """
        ...

    async def close(self) -> None: ...


class Extractor(Protocol):
    """Files to text. Runs in processes of its own; never blocks the loop.

    Where files have to wait, those of different queues are read in turn: `queue` names who waits for this one.
    """

    async def detect_type(
        self, path: Path, declared: str = "", name: str = "", *, queue: str = ""
    ) -> str:
        """The media type that the file really has."""
        ...

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
        """IngestFailed, with a reason in words, when nothing can be read in it."""
        ...

    async def parse_feed(self, path: Path, url: str, *, queue: str = "") -> Feed:
        """IngestFailed when the file is none."""
        ...

    async def close(self) -> None: ...


class Captions(Protocol):
    """What is said in a video of YouTube, by its captions."""

    async def fetch(self, video_id: str) -> Extracted | None:
        """None: there are none. IngestFailed when the video is not to be had."""
        ...


class Soundtracks(Protocol):
    """What is to be heard in a video of YouTube, for those that have no captions."""

    async def find(self, video_id: str) -> Soundtrack:
        """IngestFailed, with a reason in words, when it is not to be had."""
        ...

    def open(self, video_id: str, *, max_bytes: int) -> AbstractAsyncContextManager[Path]:
        """The sound as a file that lasts as long as the context. IngestFailed as above."""
        ...


class Transcriber(Protocol):
    """Speech to text. `progress` is told the share that is done, 0..1."""

    name: str

    async def transcribe(
        self,
        recording: Path | None,
        progress: Callable[[float], Awaitable[None]],
        remote_job: RemoteJob | None = None,
    ) -> Transcript:
        """IngestFailed when the recording is at fault; TranscriptionFailed when the transcriber is (worth another try).

        Transcribers elsewhere have what they began remembered by `remote_job`; one that has begun needs no recording.
        """
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


class Reflector(Protocol):
    """Candidate memories out of notes or a transcript."""

    async def reflect(self, title: str, text: str, limit: int) -> list[Proposal]:
        """Surest first. TransformFailed when a service does not answer usefully."""
        ...

    async def close(self) -> None: ...
