"""Read exports of other programs. What a file is, its content says and not its ending."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from commonplace.adapters.exports import (
    bookmarks,
    chats,
    evernote,
    kindle,
    mail,
    notebook,
    opml,
    services,
    tables,
    zipped,
)
from commonplace.adapters.exports.parts import Found, Output, load_json
from commonplace.adapters.extract import charset, media_type, process_limits
from commonplace.adapters.extract.input_file import Caps, Source
from commonplace.errors import IngestFailed
from commonplace.model import Json, Saved

KNOWN = (
    "Nothing to import was found in {name}. You can import a folder or a zip file of Markdown "
    "files (Obsidian, Logseq, Notion), bookmarks of browsers, Pocket, Raindrop, Instapaper, "
    "Pinboard, Linkwarden, Karakeep, Readwise, Omnivore, OPML, conversations of ChatGPT and "
    "Claude, Kindle clippings, Evernote (enex), mail (eml, mbox) and notebooks (ipynb)."
)
_LARGEST = 500_000_000  # bytes that a reader may write
_LARGER = 10  # times as large as a page may be
_HEAD = 8_192


def export(source: Source, caps: Caps, into: str) -> Json:
    """Read a file, and write what it contains to the folder `into`: the entries as lines of JSON,
    attachments as numbered files."""
    process_limits.limit_cpu(caps.ocr_cpu_seconds)
    out = Output(Path(into), _LARGEST)
    with out:
        for saved in read(source, caps, out):
            out.write(saved)
    if not out.count:
        raise IngestFailed(KNOWN.format(name=source.file_name))
    return {"count": out.count}


def read(source: Source, caps: Caps, out: Output) -> Iterator[Saved]:
    with source.path.open("rb") as file:
        head = file.read(_HEAD)
    if head.startswith(b"PK\x03\x04"):
        yield from zipped.read(source.path, caps, out, _of_member)
        return
    if evernote.MAGIC in head:
        yield from evernote.read(source.path, out)
        return
    kind = media_type.mail_type(head)
    if kind == media_type.MAILBOX:
        yield from mail.read_mbox(source.path, out)
        return
    if kind == media_type.MAIL:
        yield from mail.read_message(source.path.read_bytes(), out)
        return
    caps = replace(caps, text_megabytes=caps.text_megabytes * _LARGER)
    data = source.read_all(caps)
    yield from _of_text(_decode(data), source.file_name)


def _of_member(data: bytes, name: str, out: Output) -> Iterator[Saved]:
    """Read a file of a zip file."""
    head = data[:_HEAD]
    if evernote.MAGIC in head:
        yield from evernote.read_bytes(data, out)
    elif media_type.mail_type(head) == media_type.MAIL:
        yield from mail.read_message(data, out)
    else:
        yield from _of_text(_decode(data), name)


def _of_text(text: str, name: str) -> Found:
    head = text[:_HEAD].lstrip()
    for knows, reader in _READERS:
        if knows(head):
            return reader(text)
    if head[:1] in ("{", "["):
        loaded = load_json(text)
        for of_json in (services.read, chats.read, notebook.read):
            if found := list(of_json(loaded, name)):
                return iter(found)
    return iter(())


_READERS: tuple[tuple[Callable[[str], bool], Callable[[str], Found]], ...] = (
    (opml.knows, opml.read),
    (kindle.knows, kindle.read),
    (bookmarks.knows, bookmarks.read),
    (tables.knows, tables.read),
)


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return charset.decode(data)
