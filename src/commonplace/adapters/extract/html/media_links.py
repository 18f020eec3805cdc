"""Find the recordings and feeds that a page links to."""

import re
from collections.abc import Iterator
from urllib.parse import urljoin

from lxml.html import HtmlElement

AUDIO_EXTENSION = re.compile(
    r"\.(?:mp3|m4a|m4b|wav|ogg|oga|opus|flac|aac)(?:$|[?#])", re.IGNORECASE
)
_FEEDS = {"application/rss+xml", "application/atom+xml", "application/feed+json"}
_MOST = 20
_LONGEST_URL = 2000  # characters


def find_links(tree: HtmlElement, url: str | None) -> tuple[str, ...]:
    """Return absolute URLs, best first: declared recordings, players, feeds, plain links."""
    base = base_of(tree, url)
    full = (absolute_url(base, address or "") for address in _addresses(tree))
    return tuple(dict.fromkeys(filter(None, full)))[:_MOST]


def base_of(tree: HtmlElement, url: str | None) -> str:
    """Return the address that the page's links are relative to."""
    bases = (each.get("href") for each in tree.iter("base"))
    return absolute_url(url or "", next(filter(None, bases), "")) or url or ""


def find_feeds(tree: HtmlElement, url: str | None) -> tuple[str, ...]:
    """Return the feeds that a page names, without those of its comments."""
    base = base_of(tree, url)
    found = (absolute_url(base, address) for address in _feeds(tree) if "comments" not in address)
    return tuple(dict.fromkeys(filter(None, found)))[:_MOST]


def _feeds(tree: HtmlElement) -> Iterator[str]:
    for link in tree.iter("link"):
        is_other = "alternate" in (link.get("rel") or "").lower().split()
        if is_other and (link.get("type") or "").lower().strip() in _FEEDS:
            yield link.get("href") or ""


def _addresses(tree: HtmlElement) -> Iterator[str | None]:
    for meta in tree.iter("meta"):
        name = (meta.get("property") or meta.get("name") or "").lower()
        address = meta.get("content") or ""
        if name in ("og:audio", "og:audio:url", "og:audio:secure_url") or (
            name == "twitter:player:stream" and AUDIO_EXTENSION.search(address)
        ):
            yield address
    links = [((link.get("rel") or "").lower().split(), link) for link in tree.iter("link")]
    yield from (link.get("href") for rel, link in links if "enclosure" in rel)
    for player in tree.iter("audio"):
        yield player.get("src")
        yield from (part.get("src") for part in player.iter("source"))
    yield from _feeds(tree)
    for link in tree.iter("a"):
        if AUDIO_EXTENSION.search(link.get("href") or ""):
            yield link.get("href")


def absolute_url(base: str, address: str) -> str | None:
    """Resolve an address; None if the result is not a web address or too long."""
    try:
        full = urljoin(base, address.strip()) if address.strip() else ""
    except ValueError:
        return None
    is_web = full.startswith(("http://", "https://")) and len(full) <= _LONGEST_URL
    return full if is_web else None
