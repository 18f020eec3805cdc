"""Feeds: RSS, Atom, JSON Feed, podcasts."""

import json
from calendar import timegm
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from io import BytesIO
from typing import Any

import feedparser

from commonplace.adapters.extract import charset
from commonplace.adapters.extract.html import convert, media_links
from commonplace.adapters.extract.html.convert import convert_fragment, plain_text
from commonplace.adapters.extract.html.declared import clean_author
from commonplace.adapters.extract.html.media_links import AUDIO_EXTENSION, absolute_url
from commonplace.adapters.extract.input_file import (
    LONGEST_TEXT,
    Caps,
    Source,
    clean_title,
    parse_date,
)
from commonplace.errors import IngestFailed
from commonplace.model import Extracted, Feed, FeedEntry, Json

_ENTRIES = 5000
_SUMMARY_CHARS = 200_000  # some feeds carry whole articles
_TAGS, _TAG_CHARS = 20, 50
_NOT_A_FEED = "The URL is not a feed: it contains neither RSS, Atom nor JSON Feed."


def parse(source: Source, caps: Caps) -> Feed:
    data = source.read_all(caps)
    is_json = data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
    url = source.url or ""
    try:
        feed = _parse_json(data, url) if is_json else _parse_xml(data, url, source.charset)
    except IngestFailed:
        page = convert.parse(charset.decode(data, source.charset, markup=True))
        feeds = () if page is None else media_links.find_feeds(page, url)
        if not feeds:
            raise
        return Feed("", url, (), feeds)
    if not feed.title and not feed.entries:
        raise IngestFailed(_NOT_A_FEED)
    return replace(feed, entries=tuple(_limit_summaries(feed.entries)))


def _limit_summaries(entries: Iterable[FeedEntry]) -> Iterator[FeedEntry]:
    """Yield every entry, cutting summaries once they are as long together as one text may be."""
    room = LONGEST_TEXT // 4  # characters, of up to four bytes
    for entry in entries:
        yield replace(entry, summary=entry.summary[: max(room, 0)])
        room -= len(entry.summary)


def read(source: Source, caps: Caps) -> Extracted:
    """Read a feed that is added like a page: its entries as text, its recordings as links."""
    feed = parse(source, caps)
    parts = [
        f"## {entry.title}\n\n{entry.summary}".strip()
        for entry in feed.entries
        if entry.title or entry.summary
    ]
    if not parts:
        raise IngestFailed("The feed has no entries yet.")
    return Extracted(
        feed.title or source.title,
        "\n\n".join(parts),
        links=tuple(entry.audio_url for entry in feed.entries if entry.audio_url),
    )


def _parse_xml(data: bytes, url: str, encoding: str | None) -> Feed:
    headers = {
        "content-location": url,
        "content-type": "application/xml" + (f"; charset={encoding}" if encoding else ""),
    }
    try:
        found = feedparser.parse(BytesIO(data), response_headers=headers, sanitize_html=False)
    except (ValueError, LookupError):  # an unknown encoding
        raise IngestFailed(_NOT_A_FEED) from None
    if not found.get("version") and not found.entries:
        raise IngestFailed(_NOT_A_FEED)
    entries = tuple(
        _entry(
            id=entry.get("id"),
            name=entry.get("title"),
            url=absolute_url(url, entry.get("link") or ""),
            audio=_audio(
                url, ((each.get("href"), each.get("type")) for each in entry.get("enclosures", []))
            ),
            at=_from_struct_time(entry.get("published_parsed") or entry.get("updated_parsed")),
            summary=max(
                [
                    entry.get("summary") or "",
                    *(each.get("value") or "" for each in entry.get("content", [])),
                ],
                key=len,
            ),
            author=entry.get("author") or found.feed.get("author"),
            tags=[each.get("term") for each in entry.get("tags", [])],
        )
        for entry in found.entries[:_ENTRIES]
    )
    return Feed(clean_title(plain_text(found.feed.get("title") or "")), url, entries)


def _parse_json(data: bytes, url: str) -> Feed:
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
            url=absolute_url(url, str(item.get("url") or item.get("external_url") or "")),
            audio=_audio(
                url,
                (
                    (each.get("url"), each.get("mime_type"))
                    for each in item.get("attachments") or []
                ),
            ),
            at=parse_date(item.get("date_published") or item.get("date_modified")),
            summary=item.get("content_html")
            or item.get("content_text")
            or item.get("summary")
            or "",
            author=_json_author(item) or _json_author(found),
            tags=item.get("tags"),
        )
        for item in items[:_ENTRIES]
        if isinstance(item, dict)
    )
    return Feed(clean_title(str(found.get("title") or "")), url, entries)


def _json_author(about: Json) -> Any:
    authors = about.get("authors")
    named = authors if isinstance(authors, list) and authors else [about.get("author")]
    return named[0].get("name") if isinstance(named[0], dict) else None


def _entry(
    *,
    id: Any,
    name: Any,
    url: str | None,
    audio: str | None,
    at: datetime | None,
    summary: Any,
    author: Any,
    tags: Any,
) -> FeedEntry:
    text = convert_fragment(str(summary), url or "")
    name = clean_title(plain_text(str(name or ""))) or clean_title(text[:80]) or url or ""
    terms = [clean_title(str(tag or ""))[:_TAG_CHARS] for tag in tags or () if tag]
    return FeedEntry(
        clean_title(str(id or url or audio or name)),
        name,
        url,
        audio,
        at,
        text[:_SUMMARY_CHARS],
        clean_author(str(author or "")) or "",
        tuple(dict.fromkeys(filter(None, terms)))[:_TAGS],
    )


def _audio(base: str, enclosures: Iterable[tuple[Any, Any]]) -> str | None:
    """Return the first enclosure that is a recording by its type or its extension."""
    for address, kind in enclosures:
        if address and (
            str(kind or "").startswith("audio/") or AUDIO_EXTENSION.search(str(address))
        ):
            return absolute_url(base, str(address))
    return None


def _from_struct_time(moment: Any) -> datetime | None:
    in_range = moment and 1900 <= moment[0] <= 9999
    return datetime.fromtimestamp(timegm(moment), UTC) if in_range else None
