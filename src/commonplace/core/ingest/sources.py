"""Read a source: from a URL to a text, or to a recording that is transcribed later."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from urllib.parse import unquote, urlsplit
from weakref import WeakValueDictionary

from commonplace.errors import IngestFailed, Invalid
from commonplace.model import (
    Caller,
    Content,
    Extracted,
    Feed,
    FeedEntry,
    Fetched,
    Json,
    Mark,
    Progress,
    digest,
    new_shared_id,
    no_progress,
)
from commonplace.ports import Captions, Extractor, Fetcher, Soundtracks
from commonplace.settings import Settings
from commonplace.text import chunking
from commonplace.text.urls import canonical, looks_like_audio, youtube_id

MEGABYTE = 1_000_000
SAMPLE_BYTES = 65_536  # that identify a recording; all of it is fetched for transcription
ARTICLE_WORDS = 500  # a page with this much text is an article, even if it plays something
TITLE = 500
SPEECH = ("audio/", "video/")
FEEDS = ("application/rss+xml", "application/atom+xml", "application/feed+json")


@dataclass(frozen=True, slots=True)
class Source:
    """The result of reading: a text, or the place of a recording: {"url": ...}, {"video": ...} or
    {"blob": ...}."""

    title: str
    text: str = ""
    marks: tuple[Mark, ...] = ()
    url: str | None = None
    found_at: str | None = None  # the URL where redirects of `url` end
    recording: Json | None = None
    author: str | None = None
    published_at: datetime | None = None
    language: str | None = None
    digest: str = ""  # of the text, if known
    truncated: bool = False  # whether the text was cut off

    @property
    def metadata(self) -> Json:
        """The fields that the source gives about itself."""
        about = {
            "author": self.author,
            "language": self.language,
            "published_at": self.published_at.isoformat() if self.published_at else None,
            "truncated": self.truncated or None,
        }
        return {name: value for name, value in about.items() if value is not None}

    def content(self, key: str, redirected: Sequence[str] = ()) -> Content:
        about = {"title": self.title, **self.metadata} | (
            {"recording": self.recording} if self.recording else {}
        )
        return Content(
            new_shared_id(),
            key,
            self.text,
            self.url,
            segments(self.marks),
            about,
            self.digest,
            tuple(redirected),
        )

    @classmethod
    def of(cls, content: Content) -> "Source":
        """Restore a source from stored content."""
        about = content.about
        published = about.get("published_at")
        return cls(
            about.get("title", ""),
            content.text,
            content.marks,
            content.url,
            None,
            None if content.text else about.get("recording"),
            about.get("author"),
            datetime.fromisoformat(published) if published else None,
            about.get("language"),
            content.hash,
            about.get("truncated") is True,
        )


def segments(marks: Sequence[Mark]) -> tuple[Json, ...]:
    return tuple({"at": mark.at, "locator": mark.locator} for mark in marks)


def private_key(caller: Caller, kind: str, said: str) -> str:
    """Return a content key for private text or files. Content is shared only within a library and
    among callers of the same scope: a shared `content_id` would reveal that somebody else has it.
    """
    seen = [*sorted(caller.folders or ()), *["kb"] * caller.kb_only]
    within = digest(" ".join(seen)) if seen or caller.folders is not None else ""
    return f"{kind}:{caller.library_id}:{within}:{said}"


@dataclass(eq=False)
class _Turn:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    failed: IngestFailed | None = None


class KeyedLock:
    """A lock per key. One of several callers reads a source; the others get its result, or its
    error instead of waiting for a dead server in turn."""

    def __init__(self) -> None:
        self._turns: WeakValueDictionary[str, _Turn] = WeakValueDictionary()

    @asynccontextmanager
    async def take(self, key: str) -> AsyncIterator[None]:
        turn = self._turns.setdefault(key, _Turn())
        waited = turn.lock.locked()
        async with turn.lock:
            if waited and turn.failed is not None:
                raise IngestFailed(
                    turn.failed.message, transient=turn.failed.transient, **turn.failed.data
                )
            turn.failed = None
            try:
                yield
            except IngestFailed as error:
                turn.failed = error
                raise


class Sources:
    def __init__(
        self,
        fetcher: Fetcher,
        extractor: Extractor,
        captions: Captions,
        soundtracks: Soundtracks,
        settings: Settings,
        require_speech: Callable[[], None],
    ) -> None:
        """`require_speech` raises IngestFailed where recordings cannot be transcribed."""
        self._fetcher = fetcher
        self._extractor = extractor
        self._captions = captions
        self._require_speech = require_speech
        self._soundtracks = soundtracks
        self._max_bytes = settings.fetch_max_mb * MEGABYTE

    async def read(self, url: str, progress: Progress = no_progress, *, queue: str = "") -> Source:
        """Read a URL. Raises IngestFailed with the reason if there is nothing to read. `queue`: see
        Extractor."""
        source = await self._read(url, progress, queue)
        if source.recording is not None:
            self._require_speech()
        return source

    async def _read(self, url: str, progress: Progress, queue: str) -> Source:
        if video := youtube_id(url):
            return await self._video(url, video, progress)
        await progress(0.1, f"Fetching {urlsplit(url).netloc}")
        async with self._fetcher.get(
            url, max_bytes=self._max_bytes, sample_bytes=SAMPLE_BYTES
        ) as fetched:
            kind = await self._kind(fetched, queue)
            found_at = _other_address(url, fetched.url)
            if kind.startswith(SPEECH):
                return Source(title_of(url), url=url, found_at=found_at, recording={"url": url})
            if fetched.media_type.startswith(SPEECH):
                raise IngestFailed(
                    f"The server declares a recording ({fetched.media_type}), but the file is "
                    f"{kind}."
                )
            await progress(0.4, "Extracting text")
            return replace(await self._readable(url, kind, fetched, queue), found_at=found_at)

    async def _video(self, url: str, video: str, progress: Progress) -> Source:
        await progress(0.1, "Fetching captions")
        found = await self._captions.fetch(video)
        if found is not None:
            return _source(url, found)
        await progress(0.4, "No captions; looking for the soundtrack")
        heard = await self._soundtracks.find(video)
        return Source(
            heard.title[:TITLE],
            url=url,
            recording={"video": video},
            author=heard.author,
            published_at=heard.published_at,
        )

    async def _readable(self, url: str, kind: str, fetched: Fetched, queue: str) -> Source:
        if (
            kind in FEEDS
            and (
                episode := _newest(
                    await self._extractor.parse_feed(fetched.path, fetched.url, queue=queue)
                )
            )
            and await self._is_recording(episode.audio_url or "", queue)
        ):
            return _episode(url, episode)
        found = await self._extractor.extract(
            fetched.path, fetched.media_type, charset=fetched.charset, url=fetched.url, queue=queue
        )
        if (
            kind == "text/html"
            and _is_short(found.text)
            and (heard := await self._heard(url, found, queue))
        ):
            return Source(
                found.title[:TITLE].strip() or title_of(url),
                url=url,
                recording={"url": heard},
                author=found.author,
                published_at=found.published_at,
                language=found.language,
            )
        if not found.text.strip():
            raise IngestFailed("There is nothing to read at this URL.")
        return _source(url, found)

    async def _heard(self, url: str, page: Extracted, queue: str) -> str | None:
        """Find the recording that a page is about: one that it plays or links to, or the one in its
        feed."""
        link = next(filter(looks_like_audio, page.links), next(iter(page.links), None))
        if link is None:
            return None
        try:
            async with self._fetcher.get(
                link, max_bytes=self._max_bytes, sample_bytes=SAMPLE_BYTES
            ) as fetched:
                if await self._is_heard(fetched, queue):
                    return link
                # anything that is not a recording is a feed
                feed = await self._extractor.parse_feed(fetched.path, fetched.url, queue=queue)
        except IngestFailed:
            return None  # the page itself can be read without its feed
        here = canonical(url)
        episode = next(
            (
                entry.audio_url
                for entry in feed.entries
                if entry.audio_url and entry.url and _is_same(entry.url, here)
            ),
            None,
        )
        return episode if episode and await self._is_recording(episode, queue) else None

    async def _is_recording(self, link: str, queue: str) -> bool:
        """Whether a URL leads to a recording, judged by its first bytes. If not, the page itself is
        read."""
        try:
            async with self._fetcher.get(
                link, max_bytes=self._max_bytes, sample_bytes=SAMPLE_BYTES
            ) as fetched:
                return await self._is_heard(fetched, queue)
        except IngestFailed:
            return False

    async def _is_heard(self, fetched: Fetched, queue: str) -> bool:
        return (await self._kind(fetched, queue)).startswith(SPEECH)

    async def _kind(self, fetched: Fetched, queue: str) -> str:
        return await self._extractor.detect_type(
            fetched.path, fetched.media_type, _file_name(fetched.url), queue=queue
        )


def _other_address(url: str, end: str) -> str | None:
    """Return the URL that a fetch ended at, if it is another page. Keeps the fragment of
    client-side routes (#/route)."""
    asked, _, route = url.partition("#")
    if _is_same(end, canonical(asked)):
        return None
    end = end if "#" in end or not route else f"{end}#{route}"
    return end if not _is_same(end, canonical(url)) and _is_web_address(end) else None


def _is_web_address(url: str) -> bool:
    try:
        return bool(canonical(url))
    except Invalid:
        return False


def _is_same(url: str, here: str) -> bool:
    try:
        return canonical(url) == here
    except Invalid:
        return False  # feeds link to all kinds of files


def _newest(feed: Feed) -> FeedEntry | None:
    """Return the newest entry, if it is a recording."""
    newest = max(
        feed.entries,
        key=lambda entry: entry.published_at.timestamp() if entry.published_at else 0.0,
        default=None,
    )
    return newest if newest and newest.audio_url else None


def _episode(url: str, entry: FeedEntry) -> Source:
    return Source(
        entry.title[:TITLE].strip() or title_of(url),
        url=url,
        recording={"url": entry.audio_url},
        published_at=entry.published_at,
    )


def _source(url: str, found: Extracted) -> Source:
    return Source(
        found.title[:TITLE].strip() or title_of(url),
        found.text,
        found.marks,
        url,
        None,
        None,
        found.author,
        found.published_at,
        found.language,
        truncated=found.truncated,
    )


def _is_short(text: str) -> bool:
    """Whether a text is shorter than an article. Stops counting early."""
    return len(text) < 20 * ARTICLE_WORDS and chunking.count(text) < ARTICLE_WORDS


def _file_name(url: str) -> str:
    return unquote(urlsplit(url).path.rstrip("/").rpartition("/")[2])


def title_of(url: str) -> str:
    """Derive a title from a URL: the file's name, else the host."""
    name = _file_name(url)
    readable = " ".join(
        re.sub(r"[\x00-\x1f\x7f\ufffd_]+", " ", name.rpartition(".")[0] or name).split()
    )
    return readable[:TITLE] or urlsplit(url).netloc
