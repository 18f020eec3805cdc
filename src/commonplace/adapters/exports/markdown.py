"""Markdown notes in a zip file. Notion's have 32 hex digits in their names, and their properties
below the title."""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath

from commonplace.adapters.exports.archive import Archive
from commonplace.adapters.exports.parts import Found, Output, clean, folder, line, tags
from commonplace.errors import Invalid
from commonplace.model import Attachment, Json, Saved, parse_time
from commonplace.text import front_matter
from commonplace.text.note_links import Names, aliases_of, find_references, journal_day

_HEX = re.compile(r"(?: |%20)([0-9a-f]{32})")
_PROPERTY = re.compile(r"([^:\n\[\]<>#*`]{1,60}): ?([^\n]{0,2000})")
_MOST_PROPERTIES = 60
_FORMS = ("%B %d, %Y %I:%M %p", "%B %d, %Y", "%Y/%m/%d %H:%M", "%Y/%m/%d", "%d/%m/%Y %H:%M")
_CREATED = ("created", "created time", "date created", "created at")


@dataclass(frozen=True, slots=True)
class _Note:
    path: str
    note: front_matter.Note
    notion: bool


def read(archive: Archive, paths: Sequence[str], used: set[str], out: Output) -> Found:
    names, notes = Names(), []
    for path in paths:
        used.add(path)
        try:
            text = front_matter.decode(archive.read(path), path)
            found = front_matter.parse(text, PurePosixPath(strip_hex(path)).stem)
        except Invalid as error:
            yield Saved(path, lost=error.message)
            continue
        notes.append(_Note(path, found, bool(_HEX.search(path))))
        names.add(path, _key(path), aliases_of(found.front))
    tables = [path for path in archive.files if path.lower().endswith(".csv") and _HEX.search(path)]
    others = Names()
    for path in archive.files:
        if path not in used and path not in tables:
            others.add(path, path)
    for each in notes:
        yield _read(each, names, others, archive, used, out)
    yield from _databases(archive, tables, {note.path for note in notes}, used)


def _read(
    each: _Note, names: Names, others: Names, archive: Archive, used: set[str], out: Output
) -> Saved:
    note, path = each.note, each.path
    text, about, at = note.text, {**note.front}, note.created_at or journal_day(path)
    for name in ("title", "tags", "created", "created_at", "date"):
        about.pop(name, None)
    found_tags: tuple[str, ...] = note.tags
    links = find_references(text)
    if each.notion:
        text, about = _properties(text)
        at = next((at for key in about if key.lower() in _CREATED if (at := _date(about[key]))), at)
        found_tags = tags(str(about.get("Tags") or ""))
        text = _HEX.sub("", text)
    else:
        found_tags = tuple(dict.fromkeys((*found_tags, *links.tags)))
        at = at or archive.at(path)
    attachments: list[Attachment] = []
    for link in links.links:
        file = others.find(link, path)
        if file is not None:
            used.add(file)
            attachments.append(out.attach(PurePosixPath(file).name, archive.read(file)))
    parts = PurePosixPath(strip_hex(path)).parent.parts
    return Saved(
        line(note.title),
        text=text if text.strip() else line(note.title),
        tags=found_tags,
        folder=folder(*parts),
        at=at,
        author=note.author,
        key=_key(path),
        links=tuple(key for link in links.links if (key := names.find(link, path))),
        attachments=tuple(attachments),
        about=about,
    )


def _key(path: str) -> str:
    """Return what identifies a note: Notion's digits stay when a page is moved."""
    found = _HEX.findall(path.rpartition("/")[2])
    return f"notion:{found[-1]}" if found else f"path:{path}"


def strip_hex(path: str) -> str:
    return _HEX.sub("", path)


def _properties(text: str) -> tuple[str, Json]:
    """Take Notion's properties from below the title: lines `Key: value` up to an empty one."""
    head, title, body = "", "", text.lstrip("\n")
    if body.startswith("# "):
        title, _, body = body.partition("\n")
        head, body = title + "\n\n", body.lstrip("\n")
    block, _, rest = body.partition("\n\n")
    lines = block.splitlines()
    found = [_PROPERTY.fullmatch(each) for each in lines]
    if not lines or len(lines) > _MOST_PROPERTIES or not all(found):
        return text, {}
    return head + rest, {match[1].strip(): clean(match[2]).strip() for match in found if match}


def _date(value: object) -> datetime | None:
    said = str(value).split("(")[0].strip()
    for form in _FORMS:
        try:
            return datetime.strptime(said, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return parse_time(said)


def _databases(archive: Archive, tables: Sequence[str], pages: set[str], used: set[str]) -> Found:
    """Keep each database as a table. `_all.csv` has every row; the other one is a view of it."""
    known = set(tables)
    for path in tables:
        used.add(path)
        if path.removesuffix(".csv") + "_all.csv" in known:
            continue
        name = PurePosixPath(strip_hex(path.removesuffix("_all.csv").removesuffix(".csv")))
        rows = list(csv.reader(io.StringIO(archive.read(path).decode("utf-8-sig", "replace"))))
        rows = [[_cell(value) for value in row] for row in rows if row]
        if not rows:
            yield Saved(str(name), lost="The database is empty.")
            continue
        rows[1:1] = [["---"] * len(rows[0])]
        table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        yield Saved(
            line(name.name),
            text=table,
            folder=folder(*name.parent.parts),
            key=f"{_key(path)}:table",
        )


def _cell(value: str) -> str:
    return " ".join(clean(value).split()).replace("|", "\\|")
