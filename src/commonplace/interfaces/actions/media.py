"""Fields of items about the media that they are made of, as scripts for Graniite read them."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from commonplace.interfaces.actions.shapes import Call, Field
from commonplace.model import FullItem, Item, Json
from commonplace.text.speech import spoken

LATER = "null: not known yet"
RECORDINGS = ("audio", "video")

_PLATFORMS = {"text": "text", "file": "upload"}


def _of_source(item: Item, name: str) -> Any:
    """Return what its source says; the metadata of texts is free."""
    return None if item.kind == "text" else item.metadata.get(name)


def _said(kind: Any, name: str, help: str = "") -> Field:
    return Field(kind, lambda item, call: _of_source(item, name), help)


def _platform(item: Item) -> str:
    return str(_of_source(item, "platform") or _PLATFORMS.get(item.kind, "web"))


def media_kind(item: Item) -> str | None:
    """audio, video, image or document; None for texts and web pages."""
    declared = str(_of_source(item, "media_type") or "")
    if _platform(item) == "youtube":
        return "video"
    if (family := declared.partition("/")[0]) in ("audio", "video", "image"):
        return family
    if item.transcription_status is not None:
        return "audio"
    is_file = item.kind == "file" or declared not in ("", "text/html")
    return "document" if is_file else None


def thumbnail_url(item: Item, call: Call) -> str | None:
    """Return the address of an item's picture, which changes with the picture."""
    if not item.picture:
        return None
    return f"{call.settings.issuer}/api/v1/items/{item.id}/thumbnail?v={item.picture[:12]}"


THUMBNAIL = Field(
    str | None, thumbnail_url, "A WebP of at most 480 pixels; takes the token as all routes do"
)
MEDIA: dict[str, Any] = {
    "platform": Field(
        str, lambda item, call: _platform(item), "text, upload, web, youtube, podcast or audio"
    ),
    "media_kind": Field(
        str | None, lambda item, call: media_kind(item), "audio, video, document, image or null"
    ),
    "duration_seconds": _said(float | None, "duration_seconds"),
    "author": Field(str | None, lambda item, call: item.author or None),
    "language": Field(
        str | None, lambda item, call: item.text_language or None, "Of the text: en, de"
    ),
    "auto_transform": Field(bool, lambda item, call: item.metadata.get("auto_transform") is True),
    "read": Field(bool | None, lambda item, call: None, LATER),
    "thumbnail_url": THUMBNAIL,
}


def _source_title(full: FullItem) -> str | None:
    return None if full.item.kind == "text" else full.source_title


def _custom_title(full: FullItem) -> str | None:
    """Return the title that somebody gave it in the place of the source's."""
    source = _source_title(full)
    return full.item.title if source and full.item.title != source else None


def _is_transcript(full: FullItem) -> bool:
    return bool(full.text) and media_kind(full.item) in RECORDINGS


def _segments(full: FullItem) -> list[Json] | None:
    return list(_timed(full.item, full.text, full.segments)) if _is_transcript(full) else None


def _timed(item: Item, text: str, segments: Sequence[Json]) -> Iterator[Json]:
    """Yield what was said when. A segment ends where the next one begins."""
    timed = [each for each in segments if "seconds" in each["locator"]]
    end = {"at": len(text), "locator": {"seconds": _of_source(item, "duration_seconds")}}
    for one, following in pairwise([*timed, end]):
        yield {
            "start": one["locator"]["seconds"],
            "end": following["locator"]["seconds"],
            "text": spoken(text[one["at"] : following["at"]]),
            "speaker": one["locator"].get("speaker"),
        }


SOURCE: dict[str, Any] = {
    "custom_title": Field(
        str | None,
        lambda part, call: _custom_title(part.full),
        "Yours, if it differs from `source_title`",
    ),
    "source_title": Field(str | None, lambda part, call: _source_title(part.full)),
    "mime_type": Field(str | None, lambda part, call: _of_source(part.item, "media_type")),
    "transcript": Field(
        str | None,
        lambda part, call: part.full.text if _is_transcript(part.full) else None,
        "Of recordings",
    ),
    "transcript_segments": Field(
        list[Json] | None,
        lambda part, call: _segments(part.full),
        "Of recordings: start and end in seconds, text, speaker",
    ),
}
ERROR = Field(
    str | None,
    lambda part, call: part.transcription.error if part.transcription else None,
    "Why the last attempt failed",
)
PROGRESS = Field(
    float | None,
    lambda part, call: round(part.transcription.progress, 3) if part.transcription else None,
    "0 to 1, during transcription",
)
