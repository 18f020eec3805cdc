"""Parse exports of other programs: browser bookmarks, Pocket, Karakeep, Readwise."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html.parser import HTMLParser
from math import inf
from pathlib import Path
from typing import Any

from commonplace.errors import Invalid
from commonplace.text import front_matter

WEB = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class Saved:
    """A bookmark, or a note if it has no URL."""

    title: str
    url: str | None = None
    text: str = ""
    tags: tuple[str, ...] = ()
    folder: str | None = None
    at: datetime | None = None
    lost: str = ""  # the reason why it cannot be imported, for the report


def read(file: Path) -> list[Saved]:
    """Read an export. Raises Invalid, naming the known formats, if it is none of them."""
    text = front_matter.decode(file.read_bytes(), str(file)).removeprefix("\ufeff")
    readers: dict[str, Callable[[str], list[Saved]]] = {
        ".html": bookmarks,
        ".htm": bookmarks,
        ".csv": table,
        ".json": karakeep,
    }
    reader = readers.get(file.suffix.lower())
    found = reader(text) if reader else []
    if not found:
        raise Invalid(
            f"Nothing to import was found in {file}. You can import a folder of Markdown files, "
            "browser "
            "bookmarks or a Pocket export (HTML), Pocket or Readwise (CSV), Karakeep (JSON)."
        )
    return found


# -- bookmarks of browsers, and Pocket's HTML


def bookmarks(page: str) -> list[Saved]:
    parser = _Bookmarks()
    parser.feed(page)
    parser.close()
    return [saved for saved in parser.found if (saved.url or "").lower().startswith(WEB)]


class _Bookmarks(HTMLParser):
    """Parses nested lists with a heading per folder. Pocket's lists are flat, under `Unread` and
    `Read Archive`."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Saved] = []
        self._folders: list[str] = []  # one per open list; "" without a name
        self._heading = ""
        self._link: dict[str, str | None] | None = None
        self._text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "dl":
            self._folders.append(self._heading)
            self._heading = ""
        elif tag == "a":
            self._link = dict(attrs)
        if tag in ("a", "h3"):
            self._text = ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "dl" and self._folders:
            self._folders.pop()
        elif tag == "h3":
            self._heading = " ".join(self._text.split())
        elif tag == "a" and self._link is not None:
            url = (self._link.get("href") or "").strip()
            self.found.append(
                Saved(
                    " ".join(self._text.split()) or url,
                    url,
                    tags=_tags(self._link.get("tags") or "", ","),
                    folder="/".join(filter(None, self._folders))[:200] or None,
                    at=_seconds(self._link.get("add_date") or self._link.get("time_added")),
                )
            )
            self._link = None

    def handle_data(self, data: str) -> None:
        self._text += data


# -- tables: Pocket, Readwise


def table(text: str) -> list[Saved]:
    rows = [
        {
            (name or "").strip().lower(): value or ""
            for name, value in row.items()
            if isinstance(value, str)
        }
        for row in csv.DictReader(io.StringIO(text, newline=""))
    ]
    if rows and {"highlight", "book title"} <= rows[0].keys():
        return list(_highlights(rows))
    return [
        Saved(
            row.get("title", "").strip() or row["url"],
            row["url"].strip(),
            tags=_tags(row.get("tags") or "", "|") or _tags(row.get("document tags") or "", ","),
            at=_seconds(row.get("time_added")) or iso(row.get("saved date")),
        )
        for row in rows
        if row.get("url", "").strip().lower().startswith(WEB)
    ]


def _highlights(rows: Iterable[dict[str, str]]) -> Iterator[Saved]:
    """Yield one note per book, with its highlights."""
    books: dict[tuple[str, str], _Book] = {}
    for row in rows:
        if row["highlight"].strip():
            key = (row["book title"].strip() or "Untitled", row.get("book author", "").strip())
            books.setdefault(key, _Book()).add(row)
    for (title, author), book in books.items():
        head = [f"By {author}"] if author else []
        yield Saved(
            title,
            text="\n\n".join([*head, *book.passages]),
            tags=tuple(dict.fromkeys(book.tags)),
            at=min(book.times, default=None),
        )


@dataclass(slots=True)
class _Book:
    passages: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    times: list[datetime] = field(default_factory=list)

    def add(self, row: dict[str, str]) -> None:
        self.passages.append("> " + row["highlight"].strip().replace("\n", "\n> "))
        if row.get("note", "").strip():
            self.passages.append(row["note"].strip())
        self.tags += (*_tags(row.get("tags", ""), ","), *_tags(row.get("document tags", ""), ","))
        if at := iso(row.get("highlighted at")):
            self.times.append(at)


# -- Karakeep


def karakeep(text: str) -> list[Saved]:
    try:
        return [saved for entry in json.loads(text)["bookmarks"] for saved in _karakeep(entry)]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []


def _karakeep(entry: dict[str, Any]) -> Iterator[Saved]:
    """Yield a bookmark, and a separate note for its private comment."""
    content = entry.get("content") or {}
    url = content.get("url") if content.get("type") == "link" else None
    url = clean(str(url)) if str(url).lower().startswith(WEB) else None
    note = "\n\n".join(
        clean(part)
        for part in (content.get("text"), entry.get("note"))
        if isinstance(part, str) and part.strip()
    )
    tags = tuple(
        dict.fromkeys(
            clean(str(tag["name"] if isinstance(tag, dict) else tag))
            for tag in entry.get("tags") or ()
        )
    )
    title = clean(
        str(
            entry.get("title")
            or content.get("title")
            or url
            or " ".join(note.split())[:60]
            or "Untitled"
        )
    )
    at = _seconds(entry.get("createdAt")) or iso(entry.get("createdAt"))
    if url:
        yield Saved(title, url, tags=tags, at=at)
        if note:
            yield Saved(f"Note on {title}", text=f"{note}\n\n<{url}>", tags=tags, at=at)
    elif note:
        yield Saved(title, text=note, tags=tags, at=at)
    else:
        yield Saved(
            title,
            lost="The export has neither a URL nor a text for it, and contains no files.",
        )


# -- parts


def clean(text: str) -> str:
    """Remove NUL characters, and replace lone surrogates, which programs leave when they cut
    texts."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def _tags(text: str, between: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tag.strip()[:100] for tag in text.split(between) if tag.strip()))


def _seconds(value: Any) -> datetime | None:
    """Parse a Unix time in seconds, milliseconds or microseconds."""
    try:
        number = float(value)
        while 1e11 < number < inf:
            number /= 1000
        return datetime.fromtimestamp(number, UTC) if number > 0 else None
    except (TypeError, ValueError, OverflowError):
        return None


def iso(value: Any) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(value).strip()) if value else None
    except ValueError:
        return None
    return found.replace(tzinfo=UTC) if found and found.tzinfo is None else found
