"""What a page declares about itself in meta elements, links and JSON-LD: author, date of
publication, picture and address."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urljoin

from lxml.html import HtmlElement

from commonplace.adapters.extract.input_file import clean_title, parse_date

_DATES = (
    "article:published_time",
    "og:article:published_time",
    "datepublished",
    "dc.date.issued",
    "dcterms.issued",
    "dcterms.created",
    "parsely-pub-date",
    "citation_publication_date",
    "citation_date",
    "sailthru.date",
    "publish-date",
    "publishdate",
    "pubdate",
    "date",
    "dc.date",
    "dcterms.date",
)
_AUTHORS = (
    "citation_author",
    "dc.creator",
    "dcterms.creator",
    "dc:creator",
    "dcterms:creator",
    "article:author",
    "og:article:author",
    "parsely-author",
    "sailthru.author",
    "author",
    "byl",
)
_PICTURES = (
    "og:image:secure_url",
    "og:image:url",
    "og:image",
    "twitter:image",
    "twitter:image:src",
)
_DATE_IN_JSON = re.compile(r'"datePublished"\s*+:\s*+"([^"]{4,40})"')
_JSON_START = re.compile(r"[{\[]")
_DECODER = json.JSONDecoder(strict=False)
_MOST_NODES = 5_000  # of JSON-LD
_MOST_AUTHORS = 10
_LONGEST_NAME = 100
_NO_NAME = re.compile(
    r"https?://|www\.|@\w|^(?:admin|administrator|author|editor|user(?:name)?)$", re.I
)
_BY = re.compile(r"^(?:by|written by|von|par|por|di|door|av|af)\s+", re.I)
_AFTER_NAME = re.compile(r"https?:|[|·•]", re.I)
_CALENDAR = re.compile(
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    r"oct(?:ober)?|nov(?:ember)?|dec(?:ember)?|(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|"
    r"sun)(?:day)?|updated|published|posted|on|at",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Declared:
    author: str | None = None
    published_at: datetime | None = None
    picture: str | None = None
    address: str | None = None  # rel=canonical, else og:url


def read_declared(tree: HtmlElement, url: str | None) -> Declared:
    named = _meta(tree)
    entries = list(_json_ld(tree))
    return Declared(
        _author(named, entries),
        next(filter(None, map(parse_date, _dates(named, entries, tree))), None),
        next(_pictures(named, entries, url), None),
        next(_addresses(named, tree, url), None),
    )


def read_address(tree: HtmlElement, url: str) -> str | None:
    """Return the address that a page names by rel=canonical."""
    return next(_addresses({}, tree, url), None)


def clean_author(found: str | None) -> str | None:
    """Return names without what stands beside them: "by", addresses, a month that was a date."""
    names = list[str]()
    for name in (found or "").split(";"):
        words = clean_title(_AFTER_NAME.split(_BY.sub("", name.strip()), 1)[0]).split()
        # Of "Ann Bee, Monday, March 3, 2025" the numbers are gone. April is a first name, too.
        while len(words) > 1 and _CALENDAR.fullmatch(words[-1].strip(".,")):
            words.pop()
        cleaned = " ".join(words).strip(" ,:-(")
        if names and _CALENDAR.fullmatch(cleaned):
            continue
        if cleaned and len(cleaned) <= _LONGEST_NAME and not _NO_NAME.search(cleaned):
            names.append(cleaned)
    return ", ".join(dict.fromkeys(names[:_MOST_AUTHORS])) or None


def _meta(tree: HtmlElement) -> dict[str, list[str]]:
    """Return the contents of meta elements by name. One property may have several names."""
    named: dict[str, list[str]] = {}
    for meta in tree.iter("meta"):
        content = (meta.get("content") or "").strip()
        names = meta.get("property") or meta.get("name") or meta.get("itemprop") or ""
        for name in names.lower().split() if content else ():
            named.setdefault(name, []).append(content)
    return named


def _author(named: dict[str, list[str]], entries: Sequence[dict[str, Any]]) -> str | None:
    found = (clean_author("; ".join(_names(entry.get("author")))) for entry in entries)
    if by_json := next(filter(None, found), None):
        return by_json
    for name in _AUTHORS:
        if by_meta := clean_author("; ".join(named.get(name, ()))):
            return by_meta
    return None


def _names(value: Any) -> Iterator[str]:
    """Yield the names of the people that a JSON-LD value tells of."""
    match value:
        case str():
            yield value
        case list():
            for each in value[:_MOST_AUTHORS]:
                yield from _names(each)
        case {"name": str(name)}:
            yield name
        case {"name": list(names)}:
            yield from (name for name in names[:_MOST_AUTHORS] if isinstance(name, str))


def _dates(
    named: dict[str, list[str]], entries: Sequence[dict[str, Any]], tree: HtmlElement
) -> Iterator[str]:
    # Before article:published_time, which some sites set with each change.
    for entry in entries:
        if isinstance(date := entry.get("datePublished"), str):
            yield date
    yield from (date for name in _DATES[:2] for date in named.get(name, ()))
    for script in _scripts(tree):
        yield from _DATE_IN_JSON.findall(script)
    yield from (date for name in _DATES[2:] for date in named.get(name, ()))
    for element in tree.iter("time", "span", "div", "abbr", "p"):
        if (element.get("itemprop") or "").lower() == "datepublished" or (
            element.tag == "time" and element.get("pubdate") is not None
        ):
            yield (
                element.get("datetime")
                or element.get("content")
                or element.get("title")
                or element.text
                or ""
            ).strip()


def _pictures(
    named: dict[str, list[str]], entries: Sequence[dict[str, Any]], url: str | None
) -> Iterator[str]:
    found = [*(named[name][0] for name in _PICTURES if name in named)]
    for entry in entries:
        found += list(_addresses_of(entry.get("image")))[:1]
    for address in found:
        if absolute := _absolute(address, url):
            yield absolute


def _addresses_of(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for each in value[:_MOST_AUTHORS]:
                yield from _addresses_of(each)
        case {"url": str(address)} | {"contentUrl": str(address)}:
            yield address


def _addresses(named: dict[str, list[str]], tree: HtmlElement, url: str | None) -> Iterator[str]:
    links = [
        link.get("href") or ""
        for link in tree.iter("link")
        if "canonical" in (link.get("rel") or "").lower().split()
    ]
    # Several that differ are a mistake, of which none can be trusted.
    for address in [*(links[:1] if len(set(links)) == 1 else ()), *named.get("og:url", ())[:1]]:
        if absolute := _absolute(address, url):
            yield absolute


def _absolute(address: str, url: str | None) -> str | None:
    try:
        absolute = urljoin(url or "", address.strip())
    except ValueError:
        return None
    return absolute if absolute.startswith(("http://", "https://")) else None


def _scripts(tree: HtmlElement) -> Iterator[str]:
    for script in tree.iter("script"):
        if (script.get("type") or "").lower().startswith("application/ld+json"):
            yield script.text or ""


def _json_ld(tree: HtmlElement) -> Iterator[dict[str, Any]]:
    """Yield what the page is about, articles first. Scripts that are not valid JSON are left
    out."""
    articles, others = list[dict[str, Any]](), list[dict[str, Any]]()
    for script in _scripts(tree):
        try:
            start = _JSON_START.search(script.replace("<![CDATA[", ""))
            waiting = [_DECODER.raw_decode(start.string, start.start())[0]] if start else []
        except (ValueError, RecursionError):
            continue
        for _ in range(_MOST_NODES):
            if not waiting:
                break
            node = waiting.pop(0)
            if isinstance(node, list):
                waiting = node[:_MOST_NODES] + waiting
            elif isinstance(node, dict):
                kinds = str(node.get("@type", ""))
                if re.search("Article|Posting|Report|Recipe|Episode|Book|Review", kinds):
                    articles.append(node)
                elif re.search("Page|VideoObject|AudioObject|CreativeWork", kinds):
                    others.append(node)
                waiting += [node[name] for name in ("@graph", "mainEntity") if name in node]
    yield from articles
    yield from others
