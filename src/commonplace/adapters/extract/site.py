"""Where a site's pages are: the links of a page, a sitemap, or a list of pages in Markdown."""

import re
import zlib
from collections.abc import Iterator

from lxml import etree
from lxml.html import HtmlElement

from commonplace.adapters.extract import charset
from commonplace.adapters.extract.html import convert, media_links
from commonplace.adapters.extract.html.declared import read_address
from commonplace.adapters.extract.html.media_links import absolute_url
from commonplace.adapters.extract.input_file import Caps, Source
from commonplace.errors import IngestFailed
from commonplace.model import SiteLink, SiteLinks

_MOST = 20_000  # links; a sitemap may have 50,000
_MOST_SITEMAPS = 500
_UNPACKED = 50_000_000  # bytes of a sitemap, as its protocol has it
_ROBOTS = ("robots", "commonplace")
_MARKDOWN_LINK = re.compile(r"\]\(\s*<?([^\s<>()]{1,2000})")
_SITEMAP = re.compile(rb"<(?:[\w.-]{1,40}:)?(?:urlset|sitemapindex)[\s>]")
_HEAD = 2000


def read(source: Source, caps: Caps) -> SiteLinks:
    data = _unpacked(source.read_all(caps))
    url = source.url or ""
    if _SITEMAP.search(data[:_HEAD]):
        return _read_sitemap(data, url)
    text = charset.decode(data, source.charset, markup=True)
    if source.media_type == "text/html":
        tree = convert.parse(text)
        return SiteLinks() if tree is None else _read_page(tree, url)
    plain = [line for line in text.split() if line.startswith(("http://", "https://"))]
    found = [*_MARKDOWN_LINK.findall(text), *plain]
    return SiteLinks(_links(found, url))


def _unpacked(data: bytes) -> bytes:
    if not data.startswith(b"\x1f\x8b"):
        return data
    unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        unpacked = unpacker.decompress(data, _UNPACKED)
    except zlib.error:
        raise IngestFailed("The sitemap is damaged.") from None
    if unpacker.unconsumed_tail:
        raise IngestFailed("The sitemap is larger than a sitemap may be.")
    return unpacked


def _read_sitemap(data: bytes, url: str) -> SiteLinks:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, recover=True)
    root = etree.fromstring(data, parser)
    links, sitemaps = dict[str, str](), list[str]()
    for entry in root.iter("{*}url", "{*}sitemap") if root is not None else ():
        address = absolute_url(url, (entry.findtext("{*}loc") or "").strip())
        if address is None:
            continue
        if etree.QName(entry).localname == "sitemap":
            sitemaps.append(address)
        elif len(links) < _MOST:
            links.setdefault(address, (entry.findtext("{*}lastmod") or "").strip()[:40])
    return SiteLinks(
        tuple(SiteLink(address, modified) for address, modified in links.items()),
        tuple(dict.fromkeys(sitemaps))[:_MOST_SITEMAPS],
    )


def _read_page(tree: HtmlElement, url: str) -> SiteLinks:
    rules = ",".join(
        (meta.get("content") or "").lower()
        for meta in tree.iter("meta")
        if (meta.get("name") or "").lower() in _ROBOTS
    )
    words = {word.strip() for word in rules.split(",")}
    base = media_links.base_of(tree, url)
    follows = not words & {"nofollow", "none"}
    return SiteLinks(
        _links(_anchors(tree), base) if follows else (),
        index=not words & {"noindex", "none"},
        canonical=read_address(tree, url),
        markdown=next(filter(None, (absolute_url(base, each) for each in _markdown(tree))), None),
    )


def _anchors(tree: HtmlElement) -> Iterator[str]:
    for link in tree.iter("a", "area"):
        if "nofollow" not in (link.get("rel") or "").lower().split():
            yield link.get("href") or ""


def _markdown(tree: HtmlElement) -> Iterator[str]:
    for link in tree.iter("link"):
        rel = (link.get("rel") or "").lower().split()
        if "alternate" in rel and (link.get("type") or "").lower().startswith("text/markdown"):
            yield link.get("href") or ""


def _links(addresses: Iterator[str] | list[str], base: str) -> tuple[SiteLink, ...]:
    found = dict.fromkeys(filter(None, (absolute_url(base, each) for each in addresses)))
    return tuple(map(SiteLink, list(found)[:_MOST]))
