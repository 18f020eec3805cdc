"""YouTube: captions of a video, and the audio of one without.

The watch page lists the tracks of captions, which are files of timed text. yt-dlp finds the audio;
all its requests go through our guarded fetcher.
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
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

import anyio
from anyio import from_thread, to_thread

from commonplace.adapters.extract import subtitles
from commonplace.adapters.extract.input_file import clean_title, limit_size, parse_date
from commonplace.errors import IngestFailed, extra
from commonplace.model import Extracted, Json, Mark, Soundtrack, Utterance
from commonplace.ports import Fetcher

if TYPE_CHECKING:
    from yt_dlp import YoutubeDL

    from commonplace.adapters.fetch.client import Answer, WebFetcher

_WATCH = "https://www.youtube.com/watch"
_PAGE_BYTES = 8_000_000
_TRACK_BYTES = 20_000_000
_SOUND_PAGE_BYTES = 30_000_000
_SOUND_SECONDS = 90.0
_PLAYER = re.compile(r"ytInitialPlayerResponse\s*=\s*(?=\{)")
_SOUND = re.compile(r"^\s*[\[(][^\])]*[\])]\s*$")  # [Music], (Applause)


class YouTubeCaptions:
    """Fetch the best track: by the order of `languages`, and manual before automatic ones."""

    def __init__(
        self, web: Fetcher, languages: Sequence[str] = ("en",), watch: str = _WATCH
    ) -> None:
        self._web, self._languages, self._watch = web, languages, watch

    async def fetch(self, video_id: str) -> Extracted | None:
        """Return None for a video without accessible captions, which has to be transcribed."""
        page = f"{self._watch}?{urlencode({'v': video_id, 'hl': 'en'})}"
        player = _player(await self._text(page, _PAGE_BYTES))
        status = _get_path(player, "playabilityStatus") or {}
        if status.get("status") not in ("OK", "LIVE_STREAM_OFFLINE", None):
            reason = clean_title(str(status.get("reason") or "no reason given"))
            raise IngestFailed(f"YouTube does not show the video: {reason}.")
        track = self._best(player)
        if track is None:
            return None
        text, marks = subtitles.join_utterances(
            _utterances(await self._text(_json_url(urljoin(page, track["baseUrl"])), _TRACK_BYTES))
        )
        return limit_size(_extracted(player, text, marks, track)) if text else None

    async def _text(self, url: str, max_bytes: int) -> str:
        async with self._web.get(url, max_bytes=max_bytes) as fetched:
            return (await anyio.Path(fetched.path).read_bytes()).decode("utf-8", "replace")

    def _best(self, player: Json) -> Json | None:
        listed = _get_path(player, "captions", "playerCaptionsTracklistRenderer", "captionTracks")
        return min(
            (track for track in listed or [] if isinstance(track, dict) and track.get("baseUrl")),
            key=self._rank,
            default=None,
        )

    def _rank(self, track: Json) -> tuple[int, bool]:
        language = str(track.get("languageCode", "")).partition("-")[0]
        return [*self._languages, language].index(language), track.get("kind") == "asr"


def _player(page: str) -> Json:
    found = _PLAYER.search(page)
    try:
        player = json.JSONDecoder().raw_decode(page, found.end())[0] if found else None
    except ValueError:
        player = None
    if not isinstance(player, dict):
        raise IngestFailed(
            "YouTube did not show the video's page; it may ask for consent or a login."
        )
    return player


def _json_url(url: str) -> str:
    parts = urlsplit(url)
    query = [pair for pair in parse_qsl(parts.query, keep_blank_values=True) if pair[0] != "fmt"]
    return urlunsplit(parts._replace(query=urlencode([*query, ("fmt", "json3")])))


def _utterances(timed: str) -> Iterator[Utterance]:
    """Parse JSON, or the older XML of an unknown format; yield nothing for an empty answer."""
    if not timed.strip():
        return
    try:
        lines = list(_json3(timed) if timed.lstrip().startswith("{") else _xml(timed))
    except (ValueError, TypeError, AttributeError):
        raise IngestFailed("YouTube's captions cannot be read.") from None
    for start, length, words in lines:
        text = " ".join(html.unescape(words).split())
        if text and not _SOUND.match(text):
            yield Utterance(start, start + length, text)


def _json3(timed: str) -> Iterator[tuple[float, float, str]]:
    for event in json.loads(timed).get("events", []):
        yield (
            event.get("tStartMs", 0) / 1000,
            event.get("dDurationMs", 0) / 1000,
            "".join(part.get("utf8", "") for part in event.get("segs", [])),
        )


def _xml(timed: str) -> Iterator[tuple[float, float, str]]:
    from lxml import etree  # most captions come as JSON

    root = etree.fromstring(
        timed.encode(), etree.XMLParser(resolve_entities=False, no_network=True, recover=True)
    )
    if root is None:
        raise ValueError("no XML")
    for line in root.iter("text", "p"):
        scale = 1 if line.tag == "text" else 1000
        start = float(line.get("start") or line.get("t") or 0)
        length = float(line.get("dur") or line.get("d") or 0)
        yield start / scale, length / scale, "".join(line.itertext())


def _extracted(player: Json, text: str, marks: tuple[Mark, ...], track: Json) -> Extracted:
    details = _get_path(player, "videoDetails") or {}
    return Extracted(
        clean_title(str(details.get("title") or "")) or "YouTube video",
        text,
        marks,
        author=clean_title(str(details.get("author") or "")) or None,
        published_at=parse_date(
            _get_path(player, "microformat", "playerMicroformatRenderer", "publishDate")
        ),
        language=str(track.get("languageCode") or "").partition("-")[0] or None,
    )


def _get_path(value: Any, *path: str) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


class _QuietLogger:
    """Log yt-dlp's messages for debugging only; users get its failures as errors."""

    debug = info = warning = error = logging.getLogger(__name__).debug


_OPTIONS: Json = {
    # 100 kbit/s are enough for speech. Only plain files: the parts of a playlist need joining.
    "format": "/".join(f"{kind}[protocol~='^https?$']" for kind in ("ba[abr<=100]", "ba", "b")),
    "skip_download": True,
    "noplaylist": True,
    "cachedir": False,
    "extractor_retries": 0,
    "ignoreconfig": True,
    "allowed_extractors": ["youtube"],
    "color": "never",
    "logger": _QuietLogger(),
}


class YouTubeSound:
    def __init__(self, web: "WebFetcher", folder: Path | None = None) -> None:
        self._web, self._folder = web, folder

    async def find(self, video_id: str) -> Soundtrack:
        info = await self._info(video_id)
        at = info.get("timestamp")
        return Soundtrack(
            clean_title(str(info.get("title") or "")) or "YouTube video",
            float(info.get("duration") or 0),
            clean_title(str(info.get("uploader") or info.get("channel") or "")) or None,
            datetime.fromtimestamp(at, UTC) if isinstance(at, int | float) else None,
        )

    @asynccontextmanager
    async def open(self, video_id: str, *, max_bytes: int) -> AsyncIterator[Path]:
        info = await self._info(video_id)  # again: addresses expire after some hours
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

    async def _info(self, video_id: str) -> Json:
        try:
            with anyio.fail_after(_SOUND_SECONDS):
                info = await to_thread.run_sync(self._extract, video_id, abandon_on_cancel=True)
        except TimeoutError:
            raise IngestFailed(
                "YouTube took too long to answer about the video's audio.", transient=True
            ) from None
        if info.get("live_status") in ("is_live", "is_upcoming", "post_live"):
            raise IngestFailed("The video is live or has not started yet. Add it once it is over.")
        if not str(info.get("url") or "").startswith(("http://", "https://")):
            raise IngestFailed(
                "YouTube does not provide the video's audio. Upload it as a file instead."
            )
        return info

    def _extract(self, video_id: str) -> Json:
        with extra("video", "The sound of a video without captions", IngestFailed):
            from yt_dlp.utils import YoutubeDLError

        try:
            with _downloader(self._web) as downloader:
                return dict(downloader.extract_info(f"{_WATCH}?v={video_id}", download=False) or {})
        except YoutubeDLError as error:
            raise IngestFailed(
                "The video has no captions, and YouTube does not provide its audio: "
                f"{_reason(error)}. Upload the audio as a file to have it transcribed."
            ) from error


def _downloader(web: "WebFetcher") -> "YoutubeDL":
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
                    partial(web.send, request.url, outgoing, max_bytes=_SOUND_PAGE_BYTES)
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
            director = RequestDirector(logger=_QuietLogger())
            director.add_handler(FetcherRH(logger=_QuietLogger(), cookiejar=self.cookiejar))
            return director

    return Downloader(dict(_OPTIONS))


def _message(answer: "Answer") -> Message:
    message = Message()
    for name, value in answer.headers:
        message.add_header(name, value)
    return message


def _append(part: Path, whole: Path) -> None:
    with part.open("rb") as source, whole.open("ab") as target:
        shutil.copyfileobj(source, target)


def _reason(error: Exception) -> str:
    """Return yt-dlp's message without its advice on its command line."""
    message = re.sub(r"^(ERROR: )?(\[[^]]*] )?([\w-]{11}: )?", "", str(error))
    message = re.split(r"; please report| \(caused|\. (?=Use|See|Also|Confirm)|\n", message)[0]
    return clean_title(message.rstrip(".!"))
