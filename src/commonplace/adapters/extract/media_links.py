"""Recordings and feeds that a page points to."""

import re
from collections.abc import Iterator
from urllib.parse import urljoin

from lxml.html import HtmlElement

AUDIO_ENDING = re.compile(r"\.(?:mp3|m4a|m4b|wav|ogg|oga|opus|flac|aac)(?:$|[?#])", re.IGNORECASE)
_FEEDS = {"application/rss+xml", "application/atom+xml", "application/feed+json"}
_NAMES = ("og:audio", "og:audio:url", "og:audio:secure_url")
_MOST = 20
LONGEST_ADDRESS = 2000  # characters


def found(tree: HtmlElement, url: str | None) -> tuple[str, ...]:
    """Absolute addresses, best first: what the page names as its recording, what it plays, its feeds, mere links."""
    base = (
        absolute(
            url or "",
            next((each.get("href") for each in tree.iter("base") if each.get("href")), ""),
        )
        or url
        or ""
    )
    full = (
        absolute(base, address)
        for address in (*_named(tree), *_played(tree), *_feeds(tree), *_linked(tree))
    )
    return tuple(dict.fromkeys(address for address in full if address))[:_MOST]


def _named(tree: HtmlElement) -> Iterator[str]:
    for meta in tree.iter("meta"):
        name = (meta.get("property") or meta.get("name") or "").lower()
        address = meta.get("content") or ""
        if name in _NAMES or (name == "twitter:player:stream" and AUDIO_ENDING.search(address)):
            yield address
    for link in tree.iter("link"):
        if "enclosure" in (link.get("rel") or "").lower().split():
            yield link.get("href") or ""


def _played(tree: HtmlElement) -> Iterator[str]:
    for player in tree.iter("audio"):
        yield player.get("src") or ""
        yield from (part.get("src") or "" for part in player.iter("source"))


def _feeds(tree: HtmlElement) -> Iterator[str]:
    for link in tree.iter("link"):
        if (
            "alternate" in (link.get("rel") or "").lower().split()
            and (link.get("type") or "").lower().strip() in _FEEDS
        ):
            yield link.get("href") or ""


def _linked(tree: HtmlElement) -> Iterator[str]:
    for link in tree.iter("a"):
        if AUDIO_ENDING.search(link.get("href") or ""):
            yield link.get("href") or ""


def absolute(base: str, address: str) -> str | None:
    """None for what is no address on the web."""
    try:
        full = urljoin(base, address.strip()) if address.strip() else ""
    except ValueError:
        return None
    return (
        full if full.startswith(("http://", "https://")) and len(full) <= LONGEST_ADDRESS else None
    )
