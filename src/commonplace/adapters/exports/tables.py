"""Tables (CSV): Pocket, Readwise, Raindrop, Instapaper."""

import csv
import io
from collections import defaultdict
from collections.abc import Iterable

from commonplace.adapters.exports.parts import (
    NO_ADDRESS,
    Found,
    clean,
    folder,
    is_web,
    line,
    load_json,
    moment,
    tags,
)
from commonplace.model import Saved

_LONGEST_FIELD = 5_000_000


def knows(head: str) -> bool:
    names = _names(next(csv.reader(io.StringIO(head)), []))
    return "url" in names or {"highlight", "book title"} <= names


def _names(header: Iterable[str]) -> set[str]:
    return {name.strip().lower() for name in header}


def read(text: str) -> Found:
    csv.field_size_limit(_LONGEST_FIELD)
    rows = [
        {
            (name or "").strip().lower(): clean(value)
            for name, value in row.items()
            if isinstance(value, str)
        }
        for row in csv.DictReader(io.StringIO(text, newline=""))
    ]
    if rows and {"highlight", "book title"} <= rows[0].keys():
        yield from _highlights(rows)
        return
    for row in rows:
        if any(row.values()):
            yield _bookmark(row)


def _bookmark(row: dict[str, str]) -> Saved:
    url = row.get("url", "").strip()
    title = line(row.get("title")) or url
    if not is_web(url):
        return Saved(title or "A line without an address", lost=NO_ADDRESS)
    listed = load_json(row["tags"]) if row.get("tags", "").startswith("[") else None
    if isinstance(listed, list):  # Instapaper
        found = tags(listed)
    elif "status" in row:  # Pocket
        found = tags(row.get("tags", ""), "|")
    else:  # Raindrop; Readwise's Reader
        found = tags(row.get("tags") or row.get("document tags") or "")
    dates = ("time_added", "timestamp", "created", "saved date")
    parts = (row.get("note", ""), row.get("selection", ""), row.get("highlights", ""))
    names = row.get("folder", "").split("/") if row.get("folder") else ()
    return Saved(
        title,
        url,
        tags=found,
        folder=folder(*names),
        at=next(filter(None, (moment(row.get(name)) for name in dates)), None),
        note="\n\n".join(part.strip() for part in parts if part.strip()),
    )


def _highlights(rows: Iterable[dict[str, str]]) -> Found:
    """Yield one note per book, with its highlights."""
    books: defaultdict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    for row in rows:
        if row["highlight"].strip():
            key = line(row["book title"]) or "Untitled", row.get("book author", "").strip()
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
        found = [
            tag
            for row in marked
            for name in ("tags", "document tags")
            for tag in tags(row.get(name, ""))
        ]
        times = (moment(row.get("highlighted at")) for row in marked)
        yield Saved(
            title,
            text="\n\n".join(filter(None, [author and f"By {author}", *passages])),
            tags=tuple(dict.fromkeys(found)),
            at=min(filter(None, times), default=None),
            author=author,
        )
