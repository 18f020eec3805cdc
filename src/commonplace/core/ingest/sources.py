"""Read a source: from a URL to a text, or to a recording that is transcribed later."""

import asyncio
import gzip
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote, urlsplit
from weakref import WeakValueDictionary

from commonplace.core.ingest.pictures import PICTURE, Pictures, with_picture
from commonplace.errors import IngestFailed, Invalid
from commonplace.model import (
    MEGABYTE,
    SHARED,
    Caller,
    Content,
    Extracted,
    Feed,
    FeedEntry,
    Fetched,
    FileRole,
    Item,
    Json,
    Progress,
    SourceFile,
    digest,
    new_shared_id,
    no_progress,
    segments,
    source_file,
)
from commonplace.ports import Extractor, Fetcher, Videos
from commonplace.settings import Settings
from commonplace.text import chunking
from commonplace.text.urls import canonical, looks_like_audio, youtube_id

SAMPLE_BYTES = 65_536  # that identify a recording; all of it is fetched for transcription
ARTICLE_WORDS = 500  # a page with this much text is an article, even if it plays something
TITLE = 500
SPEECH = ("audio/", "video/")
_SAME_SITE = ("www", "m", "mobile", "amp")  # labels of hosts that show the same pages
HTML = "text/html"
STAND_IN = "stand_in"  # in `about`: a text in the place of a page that could not be read
VALIDATORS = "validators"  # in `about`: of the answer that a text was read from
Inspect = Callable[[Fetched, str], Awaitable[None]]  # of an answer and its media type
FEEDS = ("application/rss+xml", "application/atom+xml", "application/feed+json")


def content_of(
    found: Extracted,
    key: str = "",
    url: str | None = None,
    recording: Json | None = None,
    redirected: tuple[str, ...] = (),
    media_type: str | None = None,
    platform: str | None = None,
) -> Content:
    """Return what was read as content that is not stored yet: it has no id. `recording`: its place,
    {"url": ...}, {"video": ...} or {"blob": ...}, if the text is still to be transcribed; what was
    read comes before it then."""
    if recording and found.text:
        recording |= {"intro": found.text}
    about = {
        "title": found.title,
        "author": found.author,
        "language": found.language,
        "published_at": found.published_at.isoformat() if found.published_at else None,
        "truncated": found.truncated or None,
        "tags": list(found.tags) or None,
        "front_matter": found.front_matter or None,
        "recording": recording,
        "media_type": media_type,
        "platform": platform,
    }
    return Content(
        "",
        key,
        "" if recording else found.text,
        url,
        () if recording else segments(found.marks),
        {name: value for name, value in about.items() if value is not None},
        redirected=redirected,
    )


def recording_of(content: Content) -> Json | None:
    """Return the place of a recording without a transcript."""
    return None if content.text else content.about.get("recording")


def metadata_of(content: Content) -> Json:
    """Return the fields that a source gives about itself."""
    about = content.about
    names = (
        "author",
        "language",
        "published_at",
        "truncated",
        "front_matter",
        "media_type",
        "platform",
        PICTURE,
    )
    found = {name: about[name] for name in names if name in about}
    seconds = about.get("seconds") or about.get("recording", {}).get("seconds")
    return found | ({"duration_seconds": round(seconds, 2)} if seconds else {})


def with_source(item: Item, content: Content) -> Item:
    """Return an item with what its source says about itself."""
    tags = (*item.tags, *content.about.get("tags", ()))
    return replace(
        item,
        tags=tuple(dict.fromkeys(tags)),
        metadata=item.metadata | metadata_of(content),
        url=item.url or (content.url if item.kind == "file" else None),
    )


def web_address(url: str | None) -> str | None:
    """Return a URL that a file names, if it is the address of a web page."""
    return url if url and _canonical(url) else None


def url_key(url: str) -> str:
    return f"{SHARED}{canonical(url)}"


def own_page(content: Content, url: str) -> Content:
    """Return a text of a page that only its library has, as if somebody had edited the page."""
    return replace(content, key=f"edit:{new_shared_id()}", edit_of=url_key(url))


def private_key(caller: Caller, kind: str, said: str) -> str:
    """Return a content key for private text or files. Content is shared only within a library and
    among callers of the same scope: a shared `content_id` would reveal that somebody else has it.
    """
    seen = [*sorted(caller.folders or ()), *["kb"] * caller.kb_only]
    within = digest(" ".join(seen)) if seen or caller.folders is not None else ""
    return f"{kind}:{caller.library_id}:{within}:{said}"


class _Unchanged(Exception):
    """A page has not changed since it was read."""


@dataclass(eq=False)
class _Turn:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    failed: IngestFailed | None = None


@dataclass(eq=False)
class KeyedLock:
    """A lock per key. One of several callers reads a source; the others get its result, or its
    error instead of waiting for a dead server in turn."""

    _turns: WeakValueDictionary[str, _Turn] = field(default_factory=WeakValueDictionary, init=False)

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


@dataclass(eq=False)
class Sources:
    _fetcher: Fetcher
    _extractor: Extractor
    _videos: Videos
    _settings: Settings
    _pictures: Pictures
    _require_speech: Callable[[], None]  # raises IngestFailed where none can be transcribed

    async def read(self, url: str, progress: Progress = no_progress, *, queue: str = "") -> Content:
        """Read a URL. Raises IngestFailed with the reason if there is nothing to read. `queue`: see
        Extractor."""
        content = await self._read(url, progress, queue)
        if recording_of(content) is not None:
            self._require_speech()
        return content

    async def read_page(self, url: str, html: str, *, queue: str = "") -> Content:
        """Read a page that a browser has fetched."""
        with TemporaryDirectory(prefix="commonplace-") as folder:
            path = Path(folder) / "page"
            await asyncio.to_thread(path.write_text, html, "utf-8", "replace")
            file = await asyncio.to_thread(page_file, path, url, "utf-8")
            content = await self.reread(file, path, url, queue=queue)
        return replace(content, files=() if self._settings.archive == "off" else (file,))

    async def read_again(
        self, url: str, known: Json, *, queue: str = "", inspect: Inspect | None = None
    ) -> Content | None:
        """Read a URL again. None: the server says that it is as it was when it sent the validators
        `known`. `inspect` looks at the answer first, and may refuse it; it gets no redirects."""
        try:
            return await self._read(url, no_progress, queue, known, inspect)
        except _Unchanged:
            return None

    async def _read(
        self,
        url: str,
        progress: Progress,
        queue: str,
        known: Json | None = None,
        inspect: Inspect | None = None,
    ) -> Content:
        if video := youtube_id(url):
            found, recording = await self._video(video, progress)
            content = _content(url, url, found, recording, platform="youtube")
            return await self._pictured(content, found, queue)
        await progress(0.1, f"Fetching {urlsplit(url).netloc}")
        async with self._sample(url, known, redirects=inspect is None) as fetched:
            if fetched.unchanged:
                raise _Unchanged
            kind = await self._kind(fetched, queue)
            if inspect is not None:
                await inspect(fetched, kind)
            if kind.startswith(SPEECH):
                return _content(url, fetched.url, Extracted("", ""), {"url": url}, kind, "audio")
            if fetched.media_type.startswith(SPEECH):
                raise IngestFailed(
                    f"The server declares a recording ({fetched.media_type}), but the file is "
                    f"{kind}."
                )
            await progress(0.4, "Extracting text")
            if inspect is not None:
                found, recording = await self._text(fetched, queue), None
            else:
                found, recording = await self._readable(url, kind, fetched, queue)
            if recording is not None:
                content = _content(url, fetched.url, found, recording, platform="podcast")
                return await self._pictured(content, found, queue)
            content = _content(url, fetched.url, found, None, kind)
            content = replace(
                content,
                about=content.about | {VALIDATORS: fetched.validators},
                canonical=_canonical_address(fetched.url, found.address),
                files=await self._archived(fetched, kind),
            )
            if inspect is not None:
                return content
            if kind == HTML:
                most = self._settings.keep_images * MEGABYTE
                images = await self._pictures.of_text(found.text, most, queue)
                content = replace(content, files=content.files + images)
                return await self._pictured(content, found, queue)
            picture = await self._pictures.of_file(fetched.path, kind, fetched.url, queue)
            return with_picture(content, picture)

    async def _pictured(self, content: Content, found: Extracted, queue: str) -> Content:
        """Return a content with the picture that its source names."""
        if not found.pictures:
            return content
        return with_picture(content, await self._pictures.of_addresses(found.pictures, queue))

    async def reread(self, file: SourceFile, path: Path, url: str, *, queue: str = "") -> Content:
        """Read the text of a page that was kept, as for the address `url`."""
        charset = file.media_type.partition("charset=")[2] or None
        found = await self._extractor.extract(
            path, HTML, charset=charset, url=file.url, queue=queue
        )
        if not found.text.strip():
            raise IngestFailed("There is nothing to read in the page that was kept.")
        return _content(url, url, found, None, HTML)

    async def _archived(self, fetched: Fetched, kind: str) -> tuple[SourceFile, ...]:
        """Return the raw page as a file, if pages are kept."""
        if kind != HTML or self._settings.archive == "off":
            return ()
        return (await asyncio.to_thread(page_file, fetched.path, fetched.url, fetched.charset),)

    async def _video(self, video: str, progress: Progress) -> tuple[Extracted, Json | None]:
        await progress(0.1, "Fetching captions")
        read = await self._videos.read(video)
        if read.has_captions:
            return read.found, None
        chapters = [[chapter.start, chapter.title] for chapter in read.chapters]
        return read.found, {"video": video, "chapters": chapters}

    async def _readable(
        self, url: str, kind: str, fetched: Fetched, queue: str
    ) -> tuple[Extracted, Json | None]:
        """Return the text of a page, or the place of the recording that it is about."""
        if (
            kind in FEEDS
            and (
                episode := _newest(
                    await self._extractor.parse_feed(fetched.path, fetched.url, queue=queue)
                )
            )
            and await self._is_recording(episode.audio_url or "", queue)
        ):
            return Extracted(episode.title, episode.summary, published_at=episode.published_at), {
                "url": episode.audio_url
            }
        found = await self._text(fetched, queue)
        if (
            kind == HTML
            and len(found.text) < 20 * ARTICLE_WORDS  # counting the words of a long text takes time
            and chunking.count(found.text) < ARTICLE_WORDS
            and (heard := await self._heard(url, found, queue))
        ):
            return replace(found, truncated=False), {"url": heard}
        if not found.text.strip():
            raise IngestFailed("There is nothing to read at this URL.")
        return found, None

    async def _text(self, fetched: Fetched, queue: str) -> Extracted:
        return await self._extractor.extract(
            fetched.path, fetched.media_type, charset=fetched.charset, url=fetched.url, queue=queue
        )

    async def _heard(self, url: str, page: Extracted, queue: str) -> str | None:
        """Find the recording that a page is about: one that it plays or links to, or the one in its
        feed."""
        link = next(filter(looks_like_audio, page.links), next(iter(page.links), None))
        if link is None:
            return None
        try:
            async with self._sample(link) as fetched:
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
                if entry.audio_url and entry.url and _canonical(entry.url) == here
            ),
            None,
        )
        return episode if episode and await self._is_recording(episode, queue) else None

    async def _is_recording(self, link: str, queue: str) -> bool:
        """Whether a URL leads to a recording, judged by its first bytes. If not, the page itself is
        read."""
        try:
            async with self._sample(link) as fetched:
                return await self._is_heard(fetched, queue)
        except IngestFailed:
            return False

    def _sample(
        self, url: str, known: Json | None = None, *, redirects: bool = True
    ) -> AbstractAsyncContextManager[Fetched]:
        """Fetch a URL, and only the first bytes of a recording."""
        return self._fetcher.get(
            url,
            max_bytes=self._settings.fetch_max_mb * MEGABYTE,
            sample_bytes=SAMPLE_BYTES,
            known=known,
            redirects=redirects,
        )

    async def _is_heard(self, fetched: Fetched, queue: str) -> bool:
        return (await self._kind(fetched, queue)).startswith(SPEECH)

    async def _kind(self, fetched: Fetched, queue: str) -> str:
        return await self._extractor.detect_type(
            fetched.path, fetched.media_type, _file_name(fetched.url), queue=queue
        )


def page_file(path: Path, url: str, charset: str | None) -> SourceFile:
    """Return a page as the file that is kept of it."""
    kind = f"{HTML}; charset={charset}" if charset else HTML
    return source_file(FileRole.PAGE, url, kind, gzip.compress(path.read_bytes(), 6, mtime=0))


def _other_address(url: str, end: str) -> str | None:
    """Return the URL that a fetch ended at, if it is another page. Keeps the fragment of
    client-side routes (#/route)."""
    asked, _, route = url.partition("#")
    if _canonical(end) == canonical(asked):
        return None
    end = end if "#" in end or not route else f"{end}#{route}"
    return end if _canonical(end) not in (None, canonical(url)) else None


def _canonical_address(url: str, declared: str | None) -> str | None:
    """Return the address that a page declares, if it is another page of the same site, and not the
    home page, which many name by mistake."""
    there, here = _canonical(declared or ""), canonical(url)
    if there is None or there == here:
        return None
    named = urlsplit(there)
    home = named.path.strip("/") == "" and not named.query
    return None if home or _site(there) != _site(here) else declared


def _site(url: str) -> str:
    host = urlsplit(url).netloc
    first, _, rest = host.partition(".")
    return rest if first in _SAME_SITE else host


def _canonical(url: str) -> str | None:
    """Return None for what is not a web address: feeds link to all kinds of files."""
    try:
        return canonical(url)
    except Invalid:
        return None


def _newest(feed: Feed) -> FeedEntry | None:
    """Return the newest entry, if it is a recording."""
    newest = max(
        feed.entries,
        key=lambda entry: entry.published_at.timestamp() if entry.published_at else 0.0,
        default=None,
    )
    return newest if newest and newest.audio_url else None


def _content(
    url: str,
    end: str,
    found: Extracted,
    recording: Json | None,
    media_type: str | None = None,
    platform: str = "web",
) -> Content:
    """Return the content of a URL, stored under the one where its redirects end."""
    found = replace(found, title=found.title[:TITLE].strip() or title_of(url))
    other = _other_address(url, end)
    key, redirected = (url_key(url), ()) if other is None else (url_key(other), (url_key(url),))
    return content_of(found, key, url, recording, redirected, media_type, platform)


def _file_name(url: str) -> str:
    return unquote(urlsplit(url).path.rstrip("/").rpartition("/")[2])


def title_of(url: str) -> str:
    """Derive a title from a URL: the file's name, else the host."""
    name = _file_name(url)
    readable = " ".join(
        re.sub(r"[\x00-\x1f\x7f\ufffd_]+", " ", name.rpartition(".")[0] or name).split()
    )
    return readable[:TITLE] or urlsplit(url).netloc
