"""Feeds: RSS, Atom, JSON Feed, podcasts."""

import json
from calendar import timegm
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from io import BytesIO
from typing import Any

import feedparser

from commonplace.adapters.extract import html_to_markdown, media_links
from commonplace.adapters.extract.input_file import LONGEST_TEXT, Caps, Source, title
from commonplace.errors import IngestFailed
from commonplace.model import Extracted, Feed, FeedEntry

_ENTRIES = 5000
_SUMMARY = 10_000
_NOT_A_FEED = "The address is not a feed: neither RSS, Atom nor JSON Feed can be read in it."


def parse(source: Source, caps: Caps) -> Feed:
    data = source.data(caps)
    url = source.url or ""
    feed = (
        _json(data, url)
        if data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
        else _xml(data, url, source.charset)
    )
    if not feed.title and not feed.entries:
        raise IngestFailed(_NOT_A_FEED)
    return replace(feed, entries=tuple(_bounded(feed.entries)))


def _bounded(entries: Iterable[FeedEntry]) -> Iterator[FeedEntry]:
    """Every entry; its summary only as long as all of them together make no longer text than one file may."""
    room = LONGEST_TEXT // 4  # characters, of up to four bytes
    for entry in entries:
        yield replace(entry, summary=entry.summary[: max(room, 0)])
        room -= len(entry.summary)


def read(source: Source, caps: Caps) -> Extracted:
    """A feed as a text, for one that is added like a page; its recordings are its links."""
    feed = parse(source, caps)
    parts = [
        f"## {entry.title}\n\n{entry.summary}".strip()
        for entry in feed.entries
        if entry.title or entry.summary
    ]
    if not parts:
        raise IngestFailed("The feed has no entries yet.")
    recordings = tuple(entry.audio_url for entry in feed.entries if entry.audio_url)
    return Extracted(feed.title or source.title, "\n\n".join(parts), links=recordings)


def _xml(data: bytes, url: str, charset: str | None) -> Feed:
    headers = {
        "content-location": url,
        "content-type": "application/xml" + (f"; charset={charset}" if charset else ""),
    }
    try:
        found = feedparser.parse(BytesIO(data), response_headers=headers, sanitize_html=False)
    except (ValueError, LookupError):  # an encoding that is none
        raise IngestFailed(_NOT_A_FEED) from None
    if not found.get("version") and not found.entries:
        raise IngestFailed(_NOT_A_FEED)
    entries = tuple(
        _entry(
            id=entry.get("id"),
            name=entry.get("title"),
            url=media_links.absolute(url, entry.get("link") or ""),
            audio=_audio(
                url, ((each.get("href"), each.get("type")) for each in entry.get("enclosures", []))
            ),
            at=_parsed(entry.get("published_parsed") or entry.get("updated_parsed")),
            summary=max(
                [
                    entry.get("summary") or "",
                    *(each.get("value") or "" for each in entry.get("content", [])),
                ],
                key=len,
            ),
        )
        for entry in found.entries[:_ENTRIES]
    )
    return Feed(title(html_to_markdown.text(found.feed.get("title") or "")), url, entries)


def _json(data: bytes, url: str) -> Feed:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise IngestFailed(_NOT_A_FEED) from None
    items = found.get("items")
    if "jsonfeed.org" not in str(found.get("version")) or not isinstance(items, list):
        raise IngestFailed(_NOT_A_FEED)
    entries = tuple(
        _entry(
            id=item.get("id"),
            name=item.get("title"),
            url=media_links.absolute(url, str(item.get("url") or item.get("external_url") or "")),
            audio=_audio(
                url,
                (
                    (each.get("url"), each.get("mime_type"))
                    for each in item.get("attachments") or []
                ),
            ),
            at=_iso(item.get("date_published") or item.get("date_modified")),
            summary=item.get("content_html")
            or item.get("content_text")
            or item.get("summary")
            or "",
        )
        for item in items[:_ENTRIES]
        if isinstance(item, dict)
    )
    return Feed(title(str(found.get("title") or "")), url, entries)


def _entry(
    *, id: Any, name: Any, url: str | None, audio: str | None, at: datetime | None, summary: Any
) -> FeedEntry:
    text = html_to_markdown.text(str(summary))
    name = title(html_to_markdown.text(str(name or ""))) or title(text[:80]) or url or ""
    return FeedEntry(title(str(id or url or audio or name)), name, url, audio, at, text[:_SUMMARY])


def _audio(base: str, enclosures: Iterable[tuple[Any, Any]]) -> str | None:
    """The first recording: said to be one, or with the ending of one."""
    for address, kind in enclosures:
        if address and (
            str(kind or "").startswith("audio/") or media_links.AUDIO_ENDING.search(str(address))
        ):
            return media_links.absolute(base, str(address))
    return None


def _parsed(moment: Any) -> datetime | None:
    return (
        datetime.fromtimestamp(timegm(moment), UTC)
        if moment and 1900 <= moment[0] <= 9999
        else None
    )


def _iso(moment: Any) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(moment)) if moment else None
    except ValueError:
        return None
    return found.replace(tzinfo=UTC) if found and found.tzinfo is None else found
