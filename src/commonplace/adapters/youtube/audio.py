"""Audio of YouTube videos. yt-dlp finds it; all its requests go through our guarded fetcher."""

import io
import logging
import re
import shutil
from collections.abc import AsyncIterator
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

from commonplace.adapters.extract.input_file import clean_title
from commonplace.errors import IngestFailed, extra
from commonplace.model import Json, Soundtrack

if TYPE_CHECKING:
    from yt_dlp import YoutubeDL

    from commonplace.adapters.fetch.client import Answer, WebFetcher

_log = logging.getLogger(__name__)
_WATCH = "https://www.youtube.com/watch?v="
_PAGE_BYTES = 30_000_000
_SECONDS = 90.0
# 100 kbit/s are enough for speech. Only plain files: the parts of a playlist need joining.
_FORMAT = "/".join(f"{kind}[protocol~='^https?$']" for kind in ("ba[abr<=100]", "ba", "b"))


class _QuietLogger:
    """Log yt-dlp's messages for debugging only; users get its failures as errors."""

    debug = info = warning = error = _log.debug


_OPTIONS: Json = {
    "format": _FORMAT,
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
            with anyio.fail_after(_SECONDS):
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
                return dict(downloader.extract_info(_WATCH + video_id, download=False) or {})
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
                    partial(web.send, request.url, outgoing, max_bytes=_PAGE_BYTES)
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
