"""YouTube: what yt-dlp says about a video, its captions, and the audio of one without.

All requests go through our guarded fetcher. The captions' addresses on the watch page answer with
nothing; yt-dlp asks as other players do.
"""

import html
import io
import json
import logging
import re
import shutil
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email.message import Message
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import anyio
from anyio import from_thread, to_thread

from commonplace.adapters.extract.input_file import clean_text, clean_title, limit_size
from commonplace.errors import IngestFailed, extra
from commonplace.model import Chapter, Extracted, Json, Utterance, Video
from commonplace.text.speech import SUBTITLES, introduced, join_speech

if TYPE_CHECKING:
    from yt_dlp import YoutubeDL

    from commonplace.adapters.fetch.client import Answer, WebFetcher

_WATCH = "https://www.youtube.com/watch"
_TRACK_BYTES = 20_000_000
_ANSWER_BYTES = 30_000_000
_SECONDS = 90.0
_TRACKS = 3  # asked for before we say that YouTube refuses them
_NOISE = re.compile(r"^\s*[\[(][^\])]*[\])]\s*$")  # [Music], (Applause)
_SMALL_TALK = re.compile(r"format|JavaScript runtime|[Ii]ncomplete data|initial data")
_CHAPTER_LINE = re.compile(r"\s*[\[(]?\d{1,2}:\d\d")  # in descriptions that list them
_REFUSED = (
    "YouTube does not give out the captions of this video now. Try again later, or upload the "
    "audio as a file to have it transcribed."
)
_OPTIONS: Json = {
    # 100 kbit/s are enough for speech. Only plain files: the parts of a playlist need joining.
    "format": "/".join(f"{kind}[protocol~='^https?$']" for kind in ("ba[abr<=100]", "ba", "b")),
    "skip_download": True,
    "ignore_no_formats_error": True,  # captions are enough
    "writesubtitles": True,  # warns when it leaves some out
    "noplaylist": True,
    "cachedir": False,
    "extractor_retries": 0,
    "ignoreconfig": True,
    "allowed_extractors": ["youtube"],
    "color": "never",
}


class YouTube:
    def __init__(
        self, web: "WebFetcher", folder: Path | None = None, languages: Sequence[str] = ("en",)
    ) -> None:
        """`languages`: of captions, for videos that have none in their own."""
        self._web, self._folder, self._languages = web, folder, languages

    async def read(self, video_id: str) -> Video:
        info = await self._info(video_id)
        tracks = _tracks(info, self._languages)
        said, language = await self._said(tracks)
        if tracks and not said:
            raise IngestFailed(_REFUSED, transient=True)
        chapters = tuple(_chapters(info))
        said_about = _description(info, chapters)
        text, marks = introduced(said_about, *join_speech(said, SUBTITLES, chapters))
        at = info.get("timestamp") or info.get("release_timestamp")
        found = Extracted(
            clean_title(str(info.get("title") or "")) or "YouTube video",
            text,
            marks,
            author=clean_title(str(info.get("uploader") or info.get("channel") or "")) or None,
            published_at=datetime.fromtimestamp(at, UTC) if isinstance(at, int | float) else None,
            language=language,
            pictures=tuple(each for each in [info.get("thumbnail")] if isinstance(each, str)),
        )
        return Video(limit_size(found), bool(said), float(info.get("duration") or 0), chapters)

    async def _said(self, tracks: Sequence[Json]) -> tuple[list[Utterance], str | None]:
        """Return the words of the best track that is not empty, and its language."""
        for track in tracks[:_TRACKS]:
            try:
                async with self._web.get(track["url"], max_bytes=_TRACK_BYTES) as fetched:
                    timed = (await anyio.Path(fetched.path).read_bytes()).decode("utf-8", "replace")
            except IngestFailed:  # empty, or forbidden
                continue
            if said := list(_utterances(timed)):
                return said, track["language"].partition("-")[0] or None
        return [], None

    @asynccontextmanager
    async def open(self, video_id: str, *, max_bytes: int) -> AsyncIterator[Path]:
        # Again: addresses expire after some hours.
        info = await self._info(video_id, audio=True)
        if (info.get("filesize") or 0) > max_bytes:
            raise IngestFailed(f"The video's audio is larger than {max_bytes / 1e6:.3g} MB.")
        with TemporaryDirectory(prefix="commonplace-", dir=self._folder) as folder:
            path = Path(folder) / "sound"
            await self._download(info, path, max_bytes)
            yield path

    async def _download(self, info: Json, path: Path, max_bytes: int) -> None:
        """Download in pieces where YouTube asks for it: it throttles requests of whole files."""
        piece = (info.get("downloader_options") or {}).get("http_chunk_size")
        size, have = info.get("filesize"), 0
        if not piece or not size:
            piece = size = max_bytes
        while have < size:
            part = "" if piece >= size else f"&range={have}-{have + piece - 1}"
            async with self._web.get(info["url"] + part, max_bytes=max_bytes - have) as fetched:
                await to_thread.run_sync(_append, fetched.path, path)
            have += fetched.size
            if fetched.size != piece:  # the end, or a server that ignores the range
                return

    async def _info(self, video_id: str, *, audio: bool = False) -> Json:
        """Return what yt-dlp knows: of the audio, too, if the video has no captions."""
        try:
            with anyio.fail_after(_SECONDS):
                info = await to_thread.run_sync(
                    self._extract, video_id, audio, abandon_on_cancel=True
                )
        except TimeoutError:
            raise IngestFailed(
                "YouTube took too long to answer about the video.", transient=True
            ) from None
        if info.get("live_status") in ("is_live", "is_upcoming", "post_live"):
            raise IngestFailed("The video is live or has not started yet. Add it once it is over.")
        return info

    def _extract(self, video_id: str, audio: bool) -> Json:
        with extra("video", "Reading YouTube videos", IngestFailed):
            from yt_dlp.utils import YoutubeDLError

        said = _Log()
        try:
            with _downloader(self._web, said) as downloader:
                info = dict(downloader.extract_info(f"{_WATCH}?v={video_id}", download=False) or {})
        except YoutubeDLError as error:
            raise _unavailable(str(error)) from error
        if not audio and _tracks(info, self._languages):
            return info
        if not audio and said.lack_captions:
            raise IngestFailed(_REFUSED, transient=True)
        if not str(info.get("url") or "").startswith(("http://", "https://")):
            raise _unavailable(said.last or "it has no audio")
        return info


class _Log:
    """Log yt-dlp's messages for debugging only; users get its failures as errors."""

    debug = info = error = logging.getLogger(__name__).debug

    def __init__(self) -> None:
        self.lack_captions, self.last = False, ""

    def warning(self, message: str, *rest: Any, **named: Any) -> None:
        if "missing subtitles" in message:
            self.lack_captions = True
        elif not _SMALL_TALK.search(message):
            self.last = self.last or message
        self.debug(message)


def _tracks(info: Json, languages: Sequence[str]) -> list[Json]:
    """List captions in JSON, best first: by their author or automatic, but never translated by
    machine, which those are whose address names a language to translate to."""
    tracks: list[Json] = [
        {
            "url": form["url"],
            "language": language.partition("-")[0],
            "by_machine": name != "subtitles",
        }
        for name in ("subtitles", "automatic_captions")
        for language, forms in (info.get(name) or {}).items()
        for form in forms
        if form.get("ext") == "json3" and "tlang=" not in form["url"]
    ]
    heard = next((track["language"] for track in tracks if track["by_machine"]), "")
    order = [str(info.get("language") or heard).partition("-")[0], *languages]

    def rank(track: Json) -> tuple[int, bool]:
        return [*order, track["language"]].index(track["language"]), track["by_machine"]

    return sorted(tracks, key=rank)


def _chapters(info: Json) -> Iterator[Chapter]:
    for chapter in info.get("chapters") or ():
        title = clean_title(str(chapter.get("title") or ""))
        if title and not title.startswith("<Untitled"):
            yield Chapter(float(chapter.get("start_time") or 0), title)


def _description(info: Json, chapters: Sequence[Chapter]) -> str:
    """Return the description, without the list of chapters, which are headings."""
    lines = str(info.get("description") or "").splitlines()
    return clean_text(
        "\n".join(line for line in lines if not (chapters and _CHAPTER_LINE.match(line)))
    )


def _utterances(timed: str) -> Iterator[Utterance]:
    """Parse a track; yield nothing for an empty answer."""
    if not timed.strip():
        return
    try:
        for event in json.loads(timed).get("events", []):
            words = "".join(part.get("utf8", "") for part in event.get("segs", []))
            text = " ".join(html.unescape(words).split())
            if text and not _NOISE.match(text):
                start = event.get("tStartMs", 0) / 1000
                yield Utterance(start, start + event.get("dDurationMs", 0) / 1000, text)
    except (ValueError, TypeError, AttributeError):
        raise IngestFailed("YouTube's captions cannot be read.") from None


def _downloader(web: "WebFetcher", log: _Log) -> "YoutubeDL":
    """Make a yt-dlp that sends all requests through our fetcher."""
    from urllib.request import Request

    from yt_dlp import YoutubeDL
    from yt_dlp.networking.common import RequestDirector, RequestHandler, Response
    from yt_dlp.networking.exceptions import HTTPError, TransportError

    from commonplace.adapters.fetch.client import OutgoingRequest

    class FetcherRH(RequestHandler):  # type: ignore[misc]
        _SUPPORTED_URL_SCHEMES = ("http", "https")
        _SUPPORTED_PROXY_SCHEMES = _SUPPORTED_FEATURES = None

        def _check_extensions(self, extensions: dict[str, Any]) -> None:
            extensions.clear()  # options of the connection, which our fetcher decides

        def _send(self, request: Any) -> Any:
            cookies = self._get_cookiejar(request)
            headers = dict(self._get_headers(request))
            if cookie := cookies.get_cookie_header(request.url):
                headers["Cookie"] = cookie
            outgoing = OutgoingRequest(request.method, headers, request.data or b"")
            try:
                answer = from_thread.run(
                    partial(web.send, request.url, outgoing, max_bytes=_ANSWER_BYTES)
                )
            except IngestFailed as error:
                raise TransportError(error.message, cause=error) from error
            received = _message(answer)
            cookies.extract_cookies(SimpleNamespace(info=lambda: received), Request(request.url))
            response = Response(io.BytesIO(answer.body), answer.url, received, answer.status)
            if not 200 <= answer.status < 300:
                raise HTTPError(response)
            return response

    class Downloader(YoutubeDL):  # type: ignore[misc]
        def build_request_director(self, handlers: Any, preferences: Any = None) -> Any:
            director = RequestDirector(logger=log)
            director.add_handler(FetcherRH(logger=log, cookiejar=self.cookiejar))
            return director

    return Downloader(_OPTIONS | {"logger": log})


def _message(answer: "Answer") -> Message:
    message = Message()
    for name, value in answer.headers:
        message.add_header(name, value)
    return message


def _append(part: Path, whole: Path) -> None:
    with part.open("rb") as source, whole.open("ab") as target:
        shutil.copyfileobj(source, target)


def _unavailable(message: str) -> IngestFailed:
    """Explain by yt-dlp's message, without its advice on its command line."""
    message = re.sub(r"^(ERROR: )?(\[[^]]*] )?([\w-]{11}: )?", "", message)
    message = re.split(r"; please report| \(caused|\. (?=Use|See|Also|Confirm)|\n", message)[0]
    return IngestFailed(
        f"YouTube does not provide the video: {clean_title(message.rstrip('.!'))}. "
        "Upload the audio as a file to have it transcribed."
    )
