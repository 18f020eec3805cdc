"""What the text of a note refers to: [[links]], ![[embeds]], relative links and #tags."""

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import unquote

from commonplace.model import parse_time

_FENCE = re.compile(r"[ \t]{0,12}(```|~~~)")
_CODE = re.compile(r"`[^`\n]{0,500}`")
_WIKI = re.compile(r"\[\[([^\[\]\n]{1,500})\]\]")
_LINK = re.compile(r"\]\((?:<([^<>\n]{1,1000})>|([^()<>\s]{1,1000}))")
_TAG = re.compile(r"(?:^|[ \t(])#([\w/-]{1,100})")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,20}:")
_DAY = re.compile(r"(?:^|/)(\d{4})[-_](\d\d)[-_](\d\d)\Z")
NOTES = (".md", ".markdown")


@dataclass(frozen=True, slots=True)
class References:
    links: tuple[str, ...] = ()  # as they are written, without aliases and headings
    tags: tuple[str, ...] = ()


def find_references(text: str) -> References:
    """Find them outside of code."""
    links: dict[str, None] = {}
    tags: dict[str, None] = {}
    fence = ""
    for line in text.splitlines():
        if mark := _FENCE.match(line):
            fence = "" if fence == mark[1] else fence or mark[1]
            continue
        if fence or (line.startswith(("    ", "\t")) and not line.lstrip().startswith(("-", "*"))):
            continue
        line = _CODE.sub(" ", line)
        if "[[" in line:
            links.update((_target(found), None) for found in _WIKI.findall(line))
        if "](" in line:
            named = (unquote(one or other) for one, other in _LINK.findall(line))
            links.update((_target(to), None) for to in named if not _SCHEME.match(to))
        if "#" in line:
            found = (tag.strip("/-") for tag in _TAG.findall(_WIKI.sub(" ", line)))
            tags.update((tag, None) for tag in found if not tag.isdigit() and tag)
    links.pop("", None)
    return References(tuple(links), tuple(tags))


def _target(link: str) -> str:
    return link.partition("|")[0].partition("#")[0].partition("^")[0].strip()


@dataclass(eq=False)
class Names:
    """What notes and files are called, to find what a link leads to."""

    _paths: dict[str, str] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)  # the last parts of paths
    _aliases: dict[str, str] = field(default_factory=dict)

    def add(self, path: str, key: str, aliases: Iterable[str] = ()) -> None:
        bare = _bare(path)
        self._paths.setdefault(bare, key)
        self._names.setdefault(bare.rpartition("/")[2], key)
        for alias in aliases:
            self._aliases.setdefault(alias.strip().casefold(), key)

    def find(self, link: str, path: str) -> str | None:
        """Return the key that a link in the note at `path` leads to."""
        bare = _bare(link)
        near = _bare(posixpath.normpath(posixpath.join(posixpath.dirname(path), link)))
        name = bare.rpartition("/")[2]
        return (
            self._paths.get(near)
            or self._paths.get(bare.lstrip("/"))
            or (self._names.get(name) if "/" not in bare else None)
            or self._aliases.get(link.strip().casefold())
        )


def _bare(path: str) -> str:
    path = path.casefold()
    return next((path.removesuffix(end) for end in NOTES if path.endswith(end)), path)


def journal_day(path: str) -> datetime | None:
    """Return the day that the name of a journal's page gives: `journals/2024_03_02.md`."""
    day = _DAY.search(posixpath.splitext(path)[0])
    return parse_time("-".join(day.groups())) if day else None


def aliases_of(front: dict[str, object]) -> tuple[str, ...]:
    """Return the other names of a note that its front matter gives."""
    found: list[str] = []
    for name in ("aliases", "alias"):
        value = front.get(name)
        if isinstance(value, str):
            found += value.split(",")
        elif isinstance(value, list):
            found += [str(each) for each in value]
    return tuple(alias.strip() for alias in found if alias.strip())
