"""Import exports of other programs: browser bookmarks, Pocket, Karakeep, Readwise.

Known items are skipped, so that an import can be repeated.
"""

import asyncio
import csv
import io
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html.parser import HTMLParser
from math import inf
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from commonplace.core.items.bulk_import import BulkImport
from commonplace.core.items.drafts import Draft, Record
from commonplace.core.items.folders import FolderIds, Folders
from commonplace.core.items.library import Library
from commonplace.core.transfer.markdown_folder import ImportResult
from commonplace.errors import SOURCE_ERRORS, Invalid, LibraryFull
from commonplace.model import (
    Advance,
    Caller,
    EntityType,
    Item,
    Outcome,
    join_path,
    new_public_id,
    now,
    parse_time,
)
from commonplace.text import front_matter

WEB = ("http://", "https://")
AT_ONCE = 4  # URLs fetched at a time
NOTES = 100  # per transaction


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


async def import_file(
    library: Library,
    bulk_import: BulkImport,
    folders: Folders,
    caller: Caller,
    file: Path,
    advance: Advance,
) -> ImportResult:
    """Import a file. URLs are fetched like single adds; those that fail are reported at the end."""
    found = await asyncio.to_thread(read, file)
    ids = FolderIds(folders, caller)
    by_name = {
        name: await ids.find(name)
        for name in sorted({each.folder for each in found if each.folder})
    }
    importer = _Importer(library, bulk_import, folders, caller, by_name, advance, len(found))
    importer.failed += [(each.title, each.lost) for each in found if each.lost]
    await importer.notes([each for each in found if each.url is None and not each.lost])
    await importer.addresses([each for each in found if each.url is not None])
    return ImportResult(importer.outcomes, ids.created, tuple(importer.failed))


@dataclass(slots=True)
class _Importer:
    library: Library
    bulk_import: BulkImport
    folders: Folders
    caller: Caller
    folder_ids: dict[str, str]
    advance: Advance
    total: int
    outcomes: dict[Outcome, int] = field(default_factory=lambda: dict.fromkeys(Outcome, 0))
    failed: list[tuple[str, str]] = field(default_factory=list)

    async def notes(self, found: Sequence[Saved]) -> None:
        # Notes that share title and date but differ in text are numbered.
        numbers: defaultdict[tuple[str, datetime | None], dict[str, int]] = defaultdict(dict)
        for start in range(0, len(found), NOTES):
            records = [
                self._record(each, numbers[each.title, each.at])
                for each in found[start : start + NOTES]
            ]
            for outcome in await self.bulk_import.put(self.caller, records):
                self.outcomes[outcome] += 1
                self._report()

    async def addresses(self, found: Sequence[Saved]) -> None:
        waiting = iter(found)

        async def work() -> None:
            for each in waiting:
                await self._add(each)

        workers = [asyncio.create_task(work()) for _ in range(AT_ONCE)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def _add(self, each: Saved) -> None:
        try:
            added = await self.library.add(
                self.caller, Draft("url", url=each.url, tags=each.tags, created_at=each.at)
            )
            new = [folder for folder in self._filed_in(each) if folder not in added.item.folders]
            if new and self.caller.single_folder is None:
                await self.folders.file(self.caller, added.item.id, new)
        except LibraryFull:
            raise
        except SOURCE_ERRORS as error:
            self.failed.append((each.url or each.title, error.message))
        else:
            known = Outcome.CHANGED if new else Outcome.UNCHANGED
            self.outcomes[Outcome.ADDED if added.created else known] += 1
        self._report()

    def _filed_in(self, each: Saved) -> tuple[str, ...]:
        return (self.folder_ids[each.folder],) if each.folder else ()

    def _record(self, each: Saved, numbers: dict[str, int]) -> Record:
        """`numbers`: of the texts with its title and date."""
        # The same note of the same program is the same item, also after it has grown.
        library_id, at = self.caller.library_id, each.at or now()
        number = numbers.setdefault(each.text, len(numbers)) if each.at else 0
        item_id = uuid5(
            NAMESPACE_URL, f"{library_id}:note:{each.title}:{each.at or each.text}{number or ''}"
        )
        return Record(
            Item(
                id=str(item_id),
                library_id=library_id,
                public_id=new_public_id(),
                content_id="",
                entity_type=EntityType.DOCUMENT,
                kind="text",
                title=each.title[:500],
                tags=each.tags,
                created_at=at,
                updated_at=at,
                folders=self._filed_in(each),
            ),
            each.text,
            dated=each.at is not None,
        )

    def _report(self) -> None:
        self.advance(sum(self.outcomes.values()) + len(self.failed), self.total)


# -- formats


def read(file: Path) -> list[Saved]:
    """Read an export. Raises Invalid, naming the known formats, if it is none of them."""
    text = front_matter.decode(file.read_bytes(), str(file)).removeprefix("\ufeff")
    reader = {".html": bookmarks, ".htm": bookmarks, ".csv": table, ".json": karakeep}.get(
        file.suffix.lower()
    )
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
                    folder=join_path(name[:200] for name in self._folders if name) or None,
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
            at=_seconds(row.get("time_added")) or parse_time(row.get("saved date")),
        )
        for row in rows
        if row.get("url", "").strip().lower().startswith(WEB)
    ]


def _highlights(rows: Iterable[dict[str, str]]) -> Iterator[Saved]:
    """Yield one note per book, with its highlights."""
    books: defaultdict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    for row in rows:
        if row["highlight"].strip():
            key = row["book title"].strip() or "Untitled", row.get("book author", "").strip()
            books[key].append(row)
    for (title, author), marked in books.items():
        passages = [
            passage
            for row in marked
            for passage in (
                "> " + row["highlight"].strip().replace("\n", "\n> "),
                row.get("note", "").strip(),
            )
        ]
        tags = [
            tag
            for row in marked
            for name in ("tags", "document tags")
            for tag in _tags(row.get(name, ""), ",")
        ]
        times = (parse_time(row.get("highlighted at")) for row in marked)
        yield Saved(
            title,
            text="\n\n".join(filter(None, [author and f"By {author}", *passages])),
            tags=tuple(dict.fromkeys(tags)),
            at=min(filter(None, times), default=None),
        )


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
    at = _seconds(entry.get("createdAt")) or parse_time(entry.get("createdAt"))
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
