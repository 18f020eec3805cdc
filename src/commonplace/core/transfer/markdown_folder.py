"""Import and export a library as a folder of Markdown files, one per item.

Texts are kept to the byte and files keep their paths, so that links between them still work.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from commonplace.core.disks.disks import PUBLIC_SUMMARY, Disks
from commonplace.core.entities import validation as rules
from commonplace.core.items.bulk_import import BulkImport
from commonplace.core.items.drafts import Record
from commonplace.core.items.folders import FolderIds, Folders
from commonplace.core.items.library import Library
from commonplace.core.items.originals import Originals
from commonplace.core.items.uploads import Uploads
from commonplace.core.items.versions import Versions
from commonplace.core.transfer.vault import Vault
from commonplace.errors import SOURCE_ERRORS, Invalid, LibraryFull, NotFound
from commonplace.model import (
    AUTHORED,
    Advance,
    Caller,
    EntityType,
    FullItem,
    Item,
    ItemFilter,
    Json,
    Kind,
    Origin,
    Outcome,
    Relation,
    Upload,
    digest,
    folder_list,
    join_path,
    new_public_id,
    now,
    split_path,
)
from commonplace.model.workflow import MACHINES, STATUSES
from commonplace.text import front_matter
from commonplace.text.note_links import journal_day

AT_ONCE = 100
ENDINGS = (".md", ".markdown")
EARLIER, ORIGINALS = ".versions", ".originals"
_UNSAFE = re.compile(r'[\x00-\x1f\\/:*?"<>|#^\[\]]+')
_LONGEST_NAME = 200
_LONGEST_TYPE = 200
_LONGEST_PART, _LONGEST_PATH = 240, 2_000  # bytes of a path in an item's metadata
_OWN = front_matter.FIELDS.keys() | {
    "id",
    "public_id",
    "title",
    "tags",
    "folders",
    "in_kb",
    "entity_type",
    "created_at",
    "metadata",
}
_OF_ENTITIES = (front_matter.ENTITY_FIELDS.keys() | {"relations", "original"}) - {"origin"}
_FOREIGN = frozenset({Origin.AGENT, Origin.WEB, Origin.UPLOAD})


@dataclass(frozen=True, slots=True)
class ImportResult:
    outcomes: dict[Outcome, int]
    folders: int
    skipped: tuple[tuple[str, str], ...]  # (file, reason)
    # parts of files that could not be read
    unread: tuple[tuple[str, str], ...] = ()
    # pages that could not be read, and are kept as the export has them
    unreachable: tuple[tuple[str, str], ...] = ()
    same: tuple[tuple[str, str], ...] = ()  # (file, an earlier one with its title and text)
    found: dict[str, int] = field(default_factory=dict)  # how much of each kind


async def import_folder(
    bulk_import: BulkImport,
    folders: Folders,
    caller: Caller,
    root: Path,
    advance: Advance,
    originals: Originals | None = None,
    uploads: Uploads | None = None,
    *,
    dry_run: bool = False,
) -> ImportResult:
    """Import every Markdown file below `root`. A file imported before is updated. The files in an
    export that its items were made of go to `originals`."""
    files = markdown_files(root)
    if not files:
        raise Invalid(f"There are no Markdown files (.md) in {root}.")
    if dry_run:
        return ImportResult({}, 0, (), found={"notes": len(files)})
    ids = FolderIds(folders, caller)
    first: dict[str, str] = {}
    same: list[tuple[str, str]] = []
    skipped: list[tuple[str, str]] = []
    relations: list[Relation] = []
    notes: dict[str, str] = {}
    files_of: dict[str, Json] = {}
    base = await asyncio.to_thread(root.resolve)
    vault = Vault(caller.library_id)

    async def batches() -> AsyncIterator[list[Record]]:
        for start in range(0, len(files), AT_ONCE):
            records = []
            for file in files[start : start + AT_ONCE]:
                path = file.relative_to(root).as_posix()
                shown = path.encode(errors="replace").decode()
                try:
                    if shown != path:
                        raise Invalid("The file's name is not UTF-8 text.")
                    note = front_matter.read(file)
                except Invalid as error:
                    skipped.append((shown, error.message))
                    continue
                other = first.setdefault(digest(f"{note.title}\n{note.text}"), shown)
                if other != shown:
                    same.append((shown, other))
                if note.created_at is None:
                    dated = journal_day(path) or datetime.fromtimestamp(file.stat().st_mtime, UTC)
                    note = replace(note, at=dated)
                if "id" not in note.front:
                    note = vault.take(note, path)
                filed_in = [await ids.find(name) for name in _folder_paths(note, path)]
                records.append(_record(note, caller.library_id, base, path, filed_in))
                vault.name(path, records[-1].item.id, note.front)
                if (item_id := _uuid(note.front.get("id"))) and "original" in note.front:
                    files_of[item_id] = note.front["original"]
                joins = list(_relations(note, caller.library_id))
                relations.extend(joins)
                notes.update(
                    {
                        join.from_id: join.to_id
                        for join in joins
                        if join.kind == Kind.ANNOTATES
                        and join.to_id == _uuid(note.front.get("annotates"))
                    }
                )
            yield records

    outcomes = dict.fromkeys(Outcome, 0)
    async for found in bulk_import.put_batches(caller, batches()):
        for outcome in found:
            outcomes[outcome] += 1
        advance(sum(outcomes.values()) + len(skipped), len(files))
    relations += vault.relations()
    unread = []
    if uploads:
        for file, note_ids in (await asyncio.to_thread(vault.files, root)).items():
            try:
                added = await uploads.add_file(caller, file)
            except LibraryFull:
                raise
            except SOURCE_ERRORS as error:
                unread.append((file.relative_to(root).as_posix(), error.message))
            else:
                relations += [vault.join(note_id, added.item.id) for note_id in note_ids]
    for start in range(0, len(relations), AT_ONCE):
        await bulk_import.relate(caller, relations[start : start + AT_ONCE])
    for start in range(0, len(notes), AT_ONCE):
        await bulk_import.mark_notes(caller, dict(list(notes.items())[start : start + AT_ONCE]))
    for item_id, said in files_of.items():
        if originals and (original := _original(base, said)):
            await originals.attach(caller, item_id, *original)
    return ImportResult(outcomes, ids.created, tuple(skipped), tuple(unread), same=tuple(same))


def _original(root: Path, said: Any) -> tuple[Path, str] | None:
    """Return the file that an export names, and its media type. It must lie in the export."""
    match said:
        case {"file": str(path), "type": str(media_type)} if path.startswith(f"{ORIGINALS}/"):
            file = root / path
            if file.resolve().is_relative_to(root / ORIGINALS) and file.is_file():
                return file, media_type[:_LONGEST_TYPE]
    return None


def markdown_files(root: Path) -> list[Path]:
    """List Markdown files, without hidden files and folders."""
    if not root.is_dir():
        raise Invalid(f"{root} is not a folder.")
    return sorted(
        file
        for file in root.rglob("*")
        if file.suffix.lower() in ENDINGS
        and file.is_file()
        and not file.is_symlink()
        and not any(part.startswith(".") for part in file.relative_to(root).parts)
    )


def _folder_paths(note: front_matter.Note, path: str) -> list[str]:
    named = note.front.get("folders")
    if isinstance(named, list):
        paths = [str(entry) for entry in named if entry is not None]
    else:
        paths = [join_path(PurePosixPath(path).parent.parts)]
    return [path for path in paths if split_path(path)]


def _record(
    note: front_matter.Note, library_id: str, root: Path, path: str, folder_ids: Iterable[str]
) -> Record:
    front, exported = note.front, _uuid(note.front.get("id"))
    own = _OWN | _OF_ENTITIES if exported else _OWN - {"id"}
    metadata = front["metadata"] if isinstance(front.get("metadata"), dict) else {}
    if front.get("summary") and not exported:
        metadata = metadata | {"summary_given": True}
    created = note.created_at or note.at or now()
    # The same file in the same folder is the same item, also after an edit.
    item_id = exported or str(uuid5(NAMESPACE_URL, f"{library_id}:{(root / path).as_uri()}"))
    return Record(
        Item(
            id=item_id,
            library_id=library_id,
            public_id=_public_id(front.get("public_id")),
            content_id="",
            entity_type=_entity_type(front.get("entity_type")),
            title=note.title,
            tags=note.tags,
            in_kb=front.get("in_kb") is not False,
            created_at=created,
            updated_at=created,
            metadata={
                **metadata,
                "path": path,
                "front_matter": {key: front[key] for key in front if key not in own},
            },
            folders=tuple(dict.fromkeys(folder_ids)),
            **front_matter.read_fields(front, front_matter.FIELDS) | {"visibility": "private"},
            **(_of_entity(front) if exported else {}),
        ),
        note.text,
        once=exported is None,
        origin=front["origin"] if exported and front.get("origin") in _FOREIGN else "",
        dated=note.created_at is not None,
    )


def _of_entity(front: Json) -> Json:
    fields = front_matter.read_fields(front, front_matter.ENTITY_FIELDS)
    machine = MACHINES.get(_entity_type(front.get("entity_type")))
    known = machine.next if machine else STATUSES
    return fields | {
        "status": fields["status"] if fields["status"] in known else "",
        **{name: _valid(name, fields[name]) for name in fields.keys() & AUTHORED.keys()},
        "annotates": None,  # from its relations
        "origin": Origin.YOU,
    }


def _valid(name: str, value: Any) -> Any:
    """Return a value of an export, or the default if an edit has made it invalid. Lists may be
    longer than those of adds."""
    try:
        return value if isinstance(value, tuple) else rules.CHECKS[name](value)
    except Invalid:
        return AUTHORED[name]


def _relations(note: front_matter.Note, library_id: str) -> Iterator[Relation]:
    from_id, listed = _uuid(note.front.get("id")), note.front.get("relations")
    for entry in listed if isinstance(listed, list) else ():
        match entry:
            case {"kind": str(kind), "to": to} if from_id and _uuid(to) not in (None, from_id):
                weight = entry.get("found")
                found = isinstance(weight, int | float)
                yield Relation(
                    library_id,
                    from_id,
                    kind[: rules.LONGEST_WORD],
                    str(UUID(str(to))),
                    explicit=not found,
                    weight=float(weight) if found else 1.0,
                )


def _entity_type(value: Any) -> str:
    return str(value) if value in set(EntityType) else EntityType.DOCUMENT


def _public_id(value: Any) -> str:
    """Return a valid public id. One of 32 characters could be read as a UUID."""
    return (
        value
        if isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9]{8,24}", value)
        else new_public_id()
    )


def _uuid(value: Any) -> str | None:
    try:
        return str(UUID(str(value)))
    except ValueError:
        return None


# -- and out again


async def export_folder(
    library: Library,
    versions: Versions,
    folders: Folders,
    caller: Caller,
    root: Path,
    advance: Advance,
    originals: Originals | None = None,
    disks: Disks | None = None,
) -> int:
    """Write one file per item; earlier versions, `originals` and pages to hidden folders. Never
    overwrites files of other origin."""
    places = _Places(root)
    paths = {node.id: node.path for node in folder_list(await folders.list_folders(caller))}
    item_ids = await _item_ids(library, caller)
    for done, item_id in enumerate(item_ids, 1):
        try:
            reading = await library.read(caller, item_id)
            earlier = [
                await versions.get(caller, item_id, each.revision)
                for each in await versions.of(caller, item_id)
            ]
        except NotFound:  # deleted meanwhile
            continue
        filed = [replace(each, name=paths.get(each.id, each.name)) for each in reading.folders]
        reading = replace(reading, folders=tuple(filed))
        if disks and (summary := await disks.own_summary(caller, reading.item)):
            metadata = reading.item.metadata | {PUBLIC_SUMMARY: summary}
            reading = replace(reading, item=replace(reading.item, metadata=metadata))
        file = places.find(reading)
        file.parent.mkdir(parents=True, exist_ok=True)
        joins = await library.relations(caller, [item_id])
        original = await originals.find(caller, item_id) if originals else None
        own = None
        if originals and original and (place := _place_of(reading.item, original)):
            with suppress(NotFound):  # deleted meanwhile
                await originals.copy(original, root / place)
                own = {"file": place, "type": original.content_type}
        elif originals and (page := await originals.page(caller, item_id)):
            place = f"{ORIGINALS}/{reading.item.public_id}/page.html"
            with suppress(NotFound):
                await originals.copy_page(page, root / place)
                own = {"file": place, "type": page.media_type}
        mine = [r for r in joins if r.from_id == item_id]
        _write(file, front_matter.render(reading, mine, own))
        for version in earlier:
            before = root / EARLIER / reading.item.public_id / f"{version.revision}.md"
            before.parent.mkdir(parents=True, exist_ok=True)
            _write(before, version.text)
        advance(done, len(item_ids))
    return len(item_ids)


def _place_of(item: Item, original: Upload) -> str:
    """Return the path of an item's original in an export."""
    name = PurePosixPath(original.filename)
    ending = _safe(name.suffix.removeprefix("."))[:20]
    stem = _safe(name.stem)[:_LONGEST_NAME] or "original"
    return f"{ORIGINALS}/{item.public_id}/{stem}" + (f".{ending}" if ending else "")


def _write(file: Path, text: str) -> None:
    """Write a file atomically: a full disk leaves the old one."""
    draft = file.with_name(".commonplace.part")
    try:
        draft.write_bytes(text.encode())
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


async def _item_ids(library: Library, caller: Caller) -> list[str]:
    found: dict[str, Item] = {}
    total = 1
    while len(found) < total:
        items, total = await library.page(caller, ItemFilter(), limit=AT_ONCE, offset=len(found))
        if not items:
            break
        found |= {item.id: item for item in items}
    # URLs and files that have not been read have no text yet; notes have.
    return [
        item_id
        for item_id, item in found.items()
        if item.ingest_status is None or item.kind == "text"
    ]


class _Places:
    """Chooses each item's file: the one of an earlier export, its original path, or a new one by
    title."""

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self._root = root
        self._own: dict[str, Path] = {}
        for file in markdown_files(root):
            try:
                exported = _uuid(front_matter.read(file).front.get("id"))
            except Invalid:  # not text, so not ours
                continue
            if exported:
                self._own[exported] = file
        # Some file systems ignore case.
        self._taken = {str(file).casefold() for file in root.rglob("*")}

    def find(self, reading: FullItem) -> Path:
        if reading.item.id in self._own:
            return self._own[reading.item.id]
        file = self._wished(reading)
        if str(file).casefold() in self._taken:
            file = file.with_name(f"{file.stem} ({reading.item.public_id}){file.suffix}")
        if str(file).casefold() in self._taken:
            raise Invalid(
                f"{file} already exists and is not from this library. Nothing was overwritten."
            )
        self._taken.add(str(file).casefold())
        return file

    def _wished(self, reading: FullItem) -> Path:
        came_from = reading.item.metadata.get("path")
        if isinstance(came_from, str) and _stays_inside(came_from):
            return self._root / came_from
        folder = split_path(reading.folders[0].name) if reading.folders else ()
        # Without an ending: a folder must not take a file's name.
        parts = (_safe(part).removesuffix(".md").removesuffix(".markdown") for part in folder)
        name = _safe(reading.item.title) or reading.item.public_id
        return self._root.joinpath(*filter(None, parts), f"{name}.md")


def _safe(name: str) -> str:
    """Make a file name: at most 255 bytes with public id and ending, without unsafe characters."""
    return (
        _UNSAFE.sub(" ", name)
        .strip(" .")
        .encode()[:_LONGEST_NAME]
        .decode(errors="ignore")
        .strip(" .")
    )


def _stays_inside(path: str) -> bool:
    """Whether a path from metadata is safe to write: relative, not hidden, and no folder named like
    a file."""
    *folders, name = PurePosixPath(path).parts or ("",)
    return (
        name.lower().endswith(ENDINGS)
        and not path.startswith("/")
        and len(path.encode()) <= _LONGEST_PATH
        and not any(
            part.startswith(".") or len(part.encode()) > _LONGEST_PART for part in (*folders, name)
        )
        and not any(folder.lower().endswith(ENDINGS) for folder in folders)
    )
