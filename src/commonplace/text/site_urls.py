"""Addresses of a site's pages: which belong to a crawl, and which are traps."""

import re
from collections import Counter
from collections.abc import Iterable
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from commonplace.errors import Invalid
from commonplace.text.urls import canonical

_LONGEST = 500  # characters; longer ones are made by scripts
_REPEATED = 3  # times a part of a path, in links that lead ever deeper
_SESSION = frozenset(["phpsessid", "jsessionid", "sessionid", "session_id", "aspsessionid", "sid"])
_SESSION_PATH = re.compile(r";(?:jsessionid|phpsessid|sid)=[^/;]*", re.I)
# Extensions of what is no text.
_EXTENSIONS = (
    "7z avi bin bmp bz2 css csv deb dmg eot exe flac gif gz ico iso jar jpeg jpg js json m4a m4v "
    "map mjs mkv mov mp3 mp4 mpeg msi ogg opus otf png rar rpm rss svg tar tgz tif tiff ttf txz "
    "wasm wav webm webp whl woff woff2 xml xz zip zst"
)
_FILES = frozenset(_EXTENSIONS.split())
_LISTS = ("llms.txt", "llms-full.txt", "robots.txt")
_NUMBERED = re.compile(r"v?\d{1,3}(?:\.\d{1,3}){1,3}(?:[.-]?(?:x|rc\d*|a\d*|b\d*|alpha|beta))?|v\d")
_NAMED = ("stable", "latest")  # best first
_PERHAPS = ("current", "main", "master", "dev", "devel", "next", "nightly")
_WHOLE = re.compile(r"\d{1,3}")
_LANGUAGE = re.compile(r"[a-z]{2}(?:[-_][a-zA-Z]{2,4})?")


def page_address(url: str) -> str | None:
    """Return the address by which a crawl knows a page, without a session; None for others."""
    try:
        found = canonical(url).partition("#")[0]
    except Invalid:
        return None
    address, _, query = found.partition("?")
    pairs = [pair for pair in query.split("&") if pair.partition("=")[0].lower() not in _SESSION]
    rest = "&".join(filter(None, pairs))
    return _SESSION_PATH.sub("", address) + (f"?{rest}" if rest else "")


def prefix_of(url: str) -> str:
    """Return the folder of an address."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path.rpartition('/')[0]}/"


def origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def within(url: str, prefix: str) -> bool:
    """Whether a page lies under a prefix: in its folder, or it is the folder without its slash."""
    return url.startswith(prefix) or url == prefix.rstrip("/")


def is_page(url: str) -> bool:
    """Whether an address may have text, by its extension."""
    name = urlsplit(url).path.rpartition("/")[2]
    if name in _LISTS:
        return False
    return "." not in name or name.rpartition(".")[2].lower() not in _FILES


def is_trap(url: str) -> bool:
    """Whether an address seems to be one of endlessly many."""
    parts = Counter(filter(None, urlsplit(url).path.split("/")))
    return len(url) > _LONGEST or max(parts.values(), default=0) >= _REPEATED


def excluded(url: str, patterns: Iterable[str]) -> bool:
    """Whether a pattern with * and ? fits the address or its path."""
    path = urlsplit(url).path
    return any(fnmatchcase(url, each) or fnmatchcase(path, each) for each in patterns)


def markdown_twins(url: str) -> list[str]:
    """Return the addresses at which sites have a page as Markdown."""
    address, _, query = url.partition("?")
    if query or address.endswith(".md"):
        return []
    if address.endswith("/"):
        return [f"{address}index.md", f"{address}index.html.md", f"{address[:-1]}.md"]
    base = address.removesuffix(".html")
    return list(dict.fromkeys([f"{address}.md", f"{base}.md"]))


# -- versions


def version_of(url: str, prefix: str) -> str:
    """Return the part of a path that may be a version: the first under the prefix, or the one after
    a language."""
    parts = url.removeprefix(prefix).partition("?")[0].split("/")[:-1]
    if parts and not _is_perhaps(parts[0]) and _LANGUAGE.fullmatch(parts[0]):
        parts = parts[1:]
    return parts[0] if parts and _is_perhaps(parts[0]) else ""


def own_version(prefix: str) -> str:
    """Return the version that a prefix names."""
    parts = urlsplit(prefix).path.split("/")
    return next((part for part in reversed(parts) if _is_sure(part)), "")


def beside(url: str, prefix: str) -> str:
    """Return the version that has the place of the prefix's own in an address outside of it."""
    own = own_version(prefix)
    if not own:
        return ""
    before = prefix[: prefix.rindex(f"/{own}/") + 1]
    part = url.removeprefix(before).partition("/")[0] if url.startswith(before) else ""
    return part if part != own and _is_perhaps(part) else ""


def versions_among(parts: Iterable[str]) -> list[str]:
    """Return the versions, the best first; none if the parts are not several versions."""
    found = dict.fromkeys(filter(None, parts))
    if len(found) < 2 or not any(map(_is_sure, found)):
        return []
    return sorted(found, key=_rank)


def _is_sure(part: str) -> bool:
    return part in _NAMED or _NUMBERED.fullmatch(part) is not None


def _is_perhaps(part: str) -> bool:
    return _is_sure(part) or part in _PERHAPS or _WHOLE.fullmatch(part) is not None


def _rank(part: str) -> tuple[int, list[int], str]:
    if part in _NAMED:
        return _NAMED.index(part), [], part
    if part in _PERHAPS:
        return len(_NAMED) + 1 + _PERHAPS.index(part), [], part
    numbers = [-int(number) for number in re.findall(r"\d+", part)]
    return len(_NAMED), numbers, part
