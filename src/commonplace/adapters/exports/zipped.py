"""Zip files: notes of Notion, Obsidian and Logseq with what they link to, Omnivore's pages, and
exports of other programs that come in a zip file, or in one within it."""

from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from commonplace.adapters.exports import markdown, omnivore
from commonplace.adapters.exports.archive import Archive
from commonplace.adapters.exports.parts import Found, Output, load_json
from commonplace.adapters.extract.input_file import Caps
from commonplace.model import Saved

_NOTES = (".md", ".markdown")
_EXPORTS = (".html", ".htm", ".csv", ".json", ".enex", ".opml", ".xml", ".eml", ".ipynb", ".txt")
_OF_MEMBER = Callable[[bytes, str, Output], Iterator[Saved]]
_NO_NOTE = "The file belongs to no note, and is not an export that can be read."


def read(path: Path, caps: Caps, out: Output, of_member: _OF_MEMBER) -> Found:
    archive = Archive(path, caps)
    yield from archive.lost
    used: set[str] = set()
    yield from _omnivore(archive, used)
    notes = [name for name in archive.files if name.lower().endswith(_NOTES) and name not in used]
    yield from markdown.read(archive, notes, used, out)
    for name in archive.files:
        if name in used:
            continue
        found = (
            list(of_member(archive.read(name), PurePosixPath(name).name, out))
            if name.lower().endswith(_EXPORTS)
            else []
        )
        yield from found or [Saved(name, lost=_NO_NOTE)]


def _omnivore(archive: Archive, used: set[str]) -> Found:
    for name in archive.files:
        path = PurePosixPath(name)
        if not (path.name.startswith("metadata_") and path.suffix == ".json"):
            continue
        listed = load_json(archive.read(name).decode("utf-8", "replace"))
        if not isinstance(listed, list):
            continue
        used.add(name)
        for entry in listed:
            if isinstance(entry, dict) and isinstance(entry.get("slug"), str):
                base, slug = path.parent, entry["slug"]
                page, marks = (
                    str(base / f"content/{slug}.html"),
                    str(base / f"highlights/{slug}.md"),
                )
                used |= {page, marks} & archive.files.keys()
                yield omnivore.page(
                    entry,
                    archive.read(page) if page in archive.files else b"",
                    archive.read(marks) if marks in archive.files else b"",
                )
