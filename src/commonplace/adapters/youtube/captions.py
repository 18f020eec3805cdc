"""Captions of YouTube videos. The watch page lists the tracks, which are files of timed text."""

import html
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

from anyio import Path as AsyncPath

from commonplace.adapters.extract import subtitles
from commonplace.adapters.extract.input_file import clean_title, limit_size, parse_date
from commonplace.errors import IngestFailed
from commonplace.model import Extracted, Json, Mark, Utterance
from commonplace.ports import Fetcher

_WATCH = "https://www.youtube.com/watch"
_PAGE_BYTES = 8_000_000
_TRACK_BYTES = 20_000_000
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
        _refuse_unplayable(player)
        track = self._best(player)
        if track is None:
            return None
        text, marks = subtitles.join_utterances(
            _utterances(await self._text(_json_url(urljoin(page, track["baseUrl"])), _TRACK_BYTES))
        )
        return limit_size(_extracted(player, text, marks, track)) if text else None

    async def _text(self, url: str, max_bytes: int) -> str:
        async with self._web.get(url, max_bytes=max_bytes) as fetched:
            return (await AsyncPath(fetched.path).read_bytes()).decode("utf-8", "replace")

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


def _refuse_unplayable(player: Json) -> None:
    status = _get_path(player, "playabilityStatus") or {}
    if status.get("status") not in ("OK", "LIVE_STREAM_OFFLINE", None):
        reason = clean_title(str(status.get("reason") or "no reason given"))
        raise IngestFailed(f"YouTube does not show the video: {reason}.")


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
        words = "".join(part.get("utf8", "") for part in event.get("segs", []))
        yield event.get("tStartMs", 0) / 1000, event.get("dDurationMs", 0) / 1000, words


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
