"""When a page was published, by what it declares."""

import re
from collections.abc import Iterator
from datetime import datetime

from lxml.html import HtmlElement

from commonplace.adapters.extract.input_file import parse_date

_META = (
    "article:published_time",
    "og:article:published_time",
    "datepublished",
    "dc.date.issued",
    "dcterms.issued",
    "dcterms.created",
    "parsely-pub-date",
    "citation_publication_date",
    "sailthru.date",
    "publish-date",
    "publishdate",
    "pubdate",
    "date",
    "dc.date",
)
_IN_JSON = re.compile(r'"datePublished"\s*+:\s*+"([^"]{4,40})"')


def declared_date(tree: HtmlElement) -> datetime | None:
    """Return the first date of publication that the page declares: in a meta element, in JSON-LD,
    in an element marked as datePublished. Dates of changes do not count."""
    return next(filter(None, map(parse_date, _dates(tree))), None)


def _dates(tree: HtmlElement) -> Iterator[str]:
    named: dict[str, str] = {}
    for meta in tree.iter("meta"):
        name = meta.get("property") or meta.get("name") or meta.get("itemprop") or ""
        named.setdefault(name.lower(), (meta.get("content") or "").strip())
    yield from (named[name] for name in _META[:2] if name in named)
    for script in tree.iter("script"):
        if (script.get("type") or "").lower().startswith("application/ld+json"):
            # Not parsed: it is often not valid JSON.
            yield from _IN_JSON.findall(script.text or "")
    yield from (named[name] for name in _META[2:] if name in named)
    for element in tree.iter("time", "span", "div", "abbr", "p"):
        if (element.get("itemprop") or "").lower() == "datepublished" or (
            element.tag == "time" and element.get("pubdate") is not None
        ):
            yield (element.get("datetime") or element.get("content") or element.text or "").strip()
