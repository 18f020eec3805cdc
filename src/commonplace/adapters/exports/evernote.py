"""Evernote's exports (ENEX): notes as XHTML in XML, with their attachments."""

import hashlib
import re
from base64 import b64decode
from binascii import Error
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from lxml import etree

from commonplace.adapters.exports.parts import Found, Output, clean, line, tags
from commonplace.adapters.extract.html import convert
from commonplace.errors import IngestFailed
from commonplace.model import Attachment, Saved

MAGIC = b"<en-export"
_TODO = re.compile(r'<en-todo(?:\s{1,9}checked="(true|false)")?[^<>]{0,200}>(?:</en-todo>)?')
_MEDIA = re.compile(r"<en-media\b([^<>]{0,2000})>(?:</en-media>)?")
_HASH = re.compile(r'\bhash="([0-9a-f]{32})"')
_DONE, _OPEN = "\u2611 ", "\u2610 "  # until the text is Markdown, where they are boxes
_ENDINGS = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "application/pdf": "pdf"}


def read(path: Path, out: Output) -> Found:
    with path.open("rb") as file:
        yield from _notes(file, out)


def read_bytes(data: bytes, out: Output) -> Found:
    yield from _notes(BytesIO(data), out)


def _notes(file: BinaryIO, out: Output) -> Found:
    # huge_tree: an attachment is one text. The process has a limit of memory.
    steps = etree.iterparse(
        file, tag="note", resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True
    )
    try:
        for _, note in steps:
            yield _note(note, out)
            note.clear()
            while note.getprevious() is not None:
                del note.getparent()[0]
    except etree.XMLSyntaxError:
        raise IngestFailed("The Evernote export is damaged.") from None


def _note(note: etree._Element, out: Output) -> Saved:
    title = line(note.findtext("title")) or "Untitled"
    files: dict[str, Attachment] = {}
    for resource in note.iterfind("resource"):
        try:
            data = b64decode(resource.findtext("data") or "")
        except (Error, ValueError):
            continue
        kind = (resource.findtext("mime") or "").strip()
        name = line(resource.findtext("resource-attributes/file-name"))
        said = hashlib.md5(data, usedforsecurity=False).hexdigest()
        if data:
            ending = _ENDINGS.get(kind, kind.rpartition("/")[2][:10] or "bin")
            files[said] = out.attach(name or f"{title}.{ending}", data)
    text = "\n\n".join(filter(None, (_text(note, files), _tasks(note))))
    about = {
        "source_url": line(note.findtext("note-attributes/source-url")),
        "updated": at.isoformat() if (at := _date(note.findtext("updated"))) else "",
    }
    if not text and not files:
        return Saved(title, lost="The note is empty.")
    return Saved(
        title,
        text=text or title,
        tags=tags([tag.text or "" for tag in note.iterfind("tag")]),
        at=_date(note.findtext("created")),
        author=line(note.findtext("note-attributes/author")),
        attachments=tuple(files.values()),
        about={name: value for name, value in about.items() if value},
    )


def _text(note: etree._Element, files: dict[str, Attachment]) -> str:
    def media(match: re.Match[str]) -> str:
        found = _HASH.search(match[1])
        name = files[found[1]].name if found and found[1] in files else ""
        return f"<span>({_escape(name)})</span>" if name else ""

    page = note.findtext("content") or ""
    page = page[max(page.find("<en-note"), 0) :]
    page = _TODO.sub(lambda match: _DONE if match[1] == "true" else _OPEN, page)
    tree = convert.parse(f"<html><body>{_MEDIA.sub(media, page)}</body></html>")
    text = convert.convert(tree) if tree is not None else ""
    return clean("\n".join(map(_task_line, text.splitlines()))).strip()


def _task_line(text: str) -> str:
    for mark, box in ((_DONE, "[x]"), (_OPEN, "[ ]")):
        bare = text.lstrip("- ")
        if bare.startswith(mark.strip()):
            return f"- {box} {bare[1:].strip()}"
    return text


def _tasks(note: etree._Element) -> str:
    return "\n".join(
        f"- [{'x' if task.findtext('taskStatus') == 'completed' else ' '}] {title}"
        for task in note.iterfind("task")
        if (title := line(task.findtext("title")))
    )


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _date(text: str | None) -> datetime | None:
    try:
        return datetime.strptime((text or "").strip(), "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None
