"""Import what other programs export: bookmarks, notes, conversations and subscriptions to feeds.

A reader process reads the file. Known items are skipped, so that an import can be repeated.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar
from uuid import NAMESPACE_URL, uuid5

from commonplace.core.entities.annotations import Annotations
from commonplace.core.ingest.sources import STAND_IN, content_of, own_page, url_key
from commonplace.core.items.bulk_import import BulkImport
from commonplace.core.items.drafts import AddedItem, Draft, Record
from commonplace.core.items.feeds import Feeds
from commonplace.core.items.folders import FolderIds, Folders
from commonplace.core.items.library import Library
from commonplace.core.items.uploads import Uploads
from commonplace.core.people.authorization import FULL_WRITE, WRITE, Service, verb
from commonplace.core.transfer.markdown_folder import ImportResult
from commonplace.core.transfer.session_import import Sessions
from commonplace.core.transfer.session_sources import Session
from commonplace.errors import SOURCE_ERRORS, IngestFailed, Invalid, LibraryFull
from commonplace.model import (
    FAILED,
    GONE,
    SOURCE_CHECK,
    Advance,
    Attachment,
    Caller,
    EntityType,
    Extracted,
    Item,
    Json,
    Kind,
    Outcome,
    Relation,
    Saved,
    SavedAs,
    digest,
    found_at_source,
    new_public_id,
    now,
    read_saved,
)
from commonplace.ports import Extractor

T = TypeVar("T")
AT_ONCE = 4  # URLs fetched at a time
NOTES = 100  # per transaction
_LONGEST_LINE = 50_000_000  # bytes of an entry
_MOST_NAMED = 1_000  # entries that a report names


@dataclass(eq=False)
class ProgramImport(Service):
    _library: Library
    _bulk_import: BulkImport
    _folders: Folders
    _annotations: Annotations
    _uploads: Uploads
    _feeds: Feeds
    _sessions: Sessions
    _extractor: Extractor

    @verb(WRITE, "import", needs=FULL_WRITE)
    async def run(
        self,
        caller: Caller,
        file: Path,
        advance: Advance,
        *,
        name: str = "",
        dry_run: bool = False,
        project: str | None = None,
        reflect: bool = False,
    ) -> ImportResult:
        """Import a file. Pages are fetched like single adds; those that cannot be read are kept
        with what the export says, and marked as unreachable. `name`: the file's own name."""
        async with self._opened(caller, file, name or file.name) as (entries, folder):
            counts, names, same = await asyncio.to_thread(_survey, entries)
            if dry_run:
                return ImportResult({}, len(names), (), found=counts, same=same)
            ids = FolderIds(self._folders, caller)
            by_name = {each: await ids.find(each) for each in sorted(names)}
            total = sum(counts[kind] for kind in _KINDS)
            importer = _Importer(self, caller, by_name, name or file.name, folder, advance, total)
            await importer.notes(each for each in entries() if _is_note(each))
            await importer.attach()
            await importer.addresses(each for each in entries() if _is_page(each))
            for each in entries():
                if each.lost:
                    importer.lose(each.title, each.lost)
                elif each.kind == SavedAs.FEED:
                    await importer.follow(each)
            await importer.talks(entries, project, reflect)
            await importer.relate()
            return ImportResult(
                importer.outcomes,
                ids.created,
                tuple(importer.failed),
                tuple(importer.unread),
                unreachable=tuple(importer.unreachable),
                same=same,
                found=counts,
            )

    @asynccontextmanager
    async def _opened(
        self, caller: Caller, file: Path, name: str
    ) -> AsyncIterator[tuple[Callable[[], Iterator[Saved]], Path]]:
        with TemporaryDirectory(prefix="commonplace-") as made:
            folder = Path(made)
            try:
                lines = await self._extractor.read_export(
                    file, folder, name=name, queue=caller.queue
                )
            except IngestFailed as error:
                raise Invalid(error.message) from None
            yield lambda: read_saved(lines, _LONGEST_LINE), folder


_KINDS = ("bookmarks", "notes", "sessions", "feeds")


def _is_page(saved: Saved) -> bool:
    return saved.kind == SavedAs.ITEM and saved.url is not None and not saved.lost


def _is_note(saved: Saved) -> bool:
    return saved.kind == SavedAs.ITEM and saved.url is None and not saved.lost


def _survey(
    entries: Callable[[], Iterator[Saved]],
) -> tuple[dict[str, int], set[str], tuple[tuple[str, str], ...]]:
    """Return how many entries of each kind there are, the folders that they name, and the notes
    with the same title and text as an earlier one."""
    counts = dict.fromkeys((*_KINDS, "attachments", "not kept"), 0)
    folders: set[str] = set()
    first: dict[str, str] = {}
    same: list[tuple[str, str]] = []
    for each in entries():
        if each.lost:
            counts["not kept"] += 1
            continue
        kind = {SavedAs.SESSION: "sessions", SavedAs.FEED: "feeds"}.get(SavedAs(each.kind))
        counts[kind or ("bookmarks" if each.url else "notes")] += 1
        counts["attachments"] += len(each.attachments)
        if each.folder:
            folders.add(each.folder)
        if _is_note(each) and len(same) < _MOST_NAMED:
            name = _name(each)
            other = first.setdefault(digest(f"{each.title}\n{each.text}"), name)
            if other != name:
                same.append((name, other))
    return counts, folders, tuple(same)


def _batches(found: Iterable[T]) -> Iterator[list[T]]:
    left = iter(found)
    while some := list(islice(left, NOTES)):
        yield some


def _name(saved: Saved) -> str:
    return saved.key.removeprefix("path:") or saved.title


@dataclass(slots=True)
class _Importer:
    services: ProgramImport
    caller: Caller
    folder_ids: dict[str, str]
    name: str  # of the file
    folder: Path  # with the attachments
    advance: Advance
    total: int
    outcomes: dict[Outcome, int] = field(default_factory=lambda: dict.fromkeys(Outcome, 0))
    failed: list[tuple[str, str]] = field(default_factory=list)
    unreachable: list[tuple[str, str]] = field(default_factory=list)
    unread: list[tuple[str, str]] = field(default_factory=list)
    attachments: list[tuple[str, str, Attachment]] = field(default_factory=list)
    ids: dict[str, str] = field(default_factory=dict)  # of items by their key
    joins: list[tuple[str, str]] = field(default_factory=list)  # from an id to a key
    relations: list[Relation] = field(default_factory=list)

    def lose(self, name: str, reason: str) -> None:
        if len(self.failed) < _MOST_NAMED:
            self.failed.append((name, reason))
        self._report()

    async def notes(self, found: Iterator[Saved]) -> None:
        # Notes that share title and date but differ in text are numbered.
        numbers: defaultdict[tuple[str, Any], dict[str, int]] = defaultdict(dict)
        for some in _batches(found):
            records = [self._record(each, numbers[each.title, each.at]) for each in some]
            for outcome in await self.services._bulk_import.put(self.caller, records):
                self.outcomes[outcome] += 1
            for each, record in zip(some, records, strict=True):
                if each.key:
                    self.ids[each.key] = record.item.id
                self.joins += [(record.item.id, link) for link in each.links]
                self.attachments += [
                    (record.item.id, _name(each), file) for file in each.attachments
                ]
            self._report()

    async def attach(self) -> None:
        """Add attachments as items of their own, joined to their notes."""
        for note_id, name, attachment in self.attachments:
            try:
                added = await self.services._uploads.add_file(
                    self.caller, self.folder / attachment.file, name=attachment.name
                )
            except LibraryFull:
                raise
            except SOURCE_ERRORS as error:
                self.unread.append((f"{attachment.name} of {name}", error.message))
            else:
                self.relations.append(self._join(note_id, added.item.id))

    async def relate(self) -> None:
        self.relations += [
            self._join(from_id, self.ids[key])
            for from_id, key in self.joins
            if self.ids.get(key) not in (None, from_id)
        ]
        for some in _batches(dict.fromkeys(self.relations)):
            await self.services._bulk_import.relate(self.caller, some)

    def _join(self, from_id: str, to_id: str) -> Relation:
        return Relation(self.caller.library_id, from_id, Kind.RELATED_TO, to_id, explicit=True)

    async def follow(self, each: Saved) -> None:
        """Subscribe to a feed. It is fetched when it is polled, not here."""
        created = await self.services._feeds.follow(
            self.caller, each.url or "", each.title, self.folder_ids.get(each.folder or "")
        )
        self.outcomes[Outcome.ADDED if created else Outcome.UNCHANGED] += 1
        self._report()

    async def talks(
        self, entries: Callable[[], Iterator[Saved]], project: str | None, reflect: bool
    ) -> None:
        found = (
            Session(each.key[:120], each.title, each.text, each.at, each.about)
            for each in entries()
            if each.kind == SavedAs.SESSION and not each.lost
        )
        done = sum(self.outcomes.values())
        outcomes = await self.services._sessions.import_sessions(
            self.caller,
            found,
            lambda count: self.advance(done + count, self.total),
            project=project,
            reflect=reflect,
        )
        for outcome, count in outcomes.items():
            self.outcomes[outcome] += count

    async def addresses(self, found: Iterator[Saved]) -> None:
        async def work() -> None:
            for each in found:
                await self._add(each)

        workers = [asyncio.create_task(work()) for _ in range(AT_ONCE)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def _add(self, each: Saved) -> None:
        assert each.url
        about: Json = {"author": each.author, "front_matter": each.about}
        draft = Draft(
            "url",
            "" if each.title == each.url else each.title,
            url=each.url,
            tags=each.tags,
            created_at=each.at,
            metadata={name: value for name, value in about.items() if value},
        )
        try:
            added = await self._fetch(draft, each)
            renewed = not added.created and await self._retry(added.item)
            new = [folder for folder in self._filed_in(each) if folder not in added.item.folders]
            if new and self.caller.single_folder is None:
                await self.services._folders.file(self.caller, added.item.id, new)
            annotated = bool(each.note) and await self._annotate(added.item, each.note)
        except LibraryFull:
            raise
        except SOURCE_ERRORS as error:
            self.lose(each.url, error.message)
        else:
            known = Outcome.CHANGED if renewed or new or annotated else Outcome.UNCHANGED
            self.outcomes[Outcome.ADDED if added.created else known] += 1
            self._report()

    async def _fetch(self, draft: Draft, each: Saved) -> AddedItem:
        """Add a page; one that the export has, or that cannot be read, as the export has it. One
        that could not be read before is tried again."""
        library = self.services._library
        if each.whole and draft.url:
            _, there = await library._store.items.find_by_key(
                self.caller.scope,
                url_key(draft.url),
                draft.entity_type,
                token_id=self.caller.token_id,
            )
            return (
                await self._keep(draft, each, {})
                if there is None
                else await library.add_existing(self.caller, draft, there)
            )
        try:
            return await library.add(self.caller, draft)
        except LibraryFull:
            raise
        except (IngestFailed, Invalid) as error:
            self.unreachable.append((draft.url or each.title, error.message))
            return await self._keep(draft, each, {STAND_IN: True})

    async def _retry(self, item: Item) -> bool:
        """Read a page that could not be read before. Returns whether that worked."""
        if item.source_status not in (FAILED, GONE):
            return False
        try:
            await self.services._library.refresh(self.caller, item.id)
        except (IngestFailed, Invalid) as error:
            self.unreachable.append((item.url or item.title, error.message))
            return False
        return True

    async def _keep(self, draft: Draft, each: Saved, about: Json) -> AddedItem:
        """Keep a page with the text of the export. The text is the library's own."""
        text = each.text or "\n\n".join(filter(None, (each.title, each.url)))
        # A title of the source, which its page may replace. That of the export is its owner's.
        title = each.title if each.title == each.url else ""
        found = content_of(Extracted(title, text), url=draft.url)
        content = own_page(replace(found, about=found.about | about), draft.url or "")
        if about:
            check = {SOURCE_CHECK: found_at_source(FAILED, {})}
            draft = replace(draft, metadata=draft.metadata | check)
        return await self.services._library.keep(
            self.caller, replace(draft, title=each.title), content
        )

    async def _annotate(self, item: Item, note: str) -> bool:
        """Add the owner's words on a page as an annotation, once."""
        annotations = self.services._annotations
        known = await annotations.of(self.caller, item.id)
        if any(each.text.strip() == note.strip() for each in known):
            return False
        await annotations.add(self.caller, item.id, note)
        return True

    def _filed_in(self, each: Saved) -> tuple[str, ...]:
        return (self.folder_ids[each.folder],) if each.folder else ()

    def _record(self, each: Saved, numbers: dict[str, int]) -> Record:
        """`numbers`: of the texts with its title and date."""
        # The same note of the same program is the same item, also after it has grown.
        library_id, at = self.caller.library_id, each.at or now()
        number = numbers.setdefault(each.text, len(numbers)) if each.at else 0
        key = f"{self.name}:{each.key}" if each.key.startswith("path:") else each.key
        said = key or f"{each.title}:{each.at or each.text}{number or ''}"
        path = each.key.removeprefix("path:") if each.key.startswith("path:") else ""
        about = {"author": each.author, "front_matter": each.about, "path": path}
        return Record(
            Item(
                id=str(uuid5(NAMESPACE_URL, f"{library_id}:note:{said}")),
                library_id=library_id,
                public_id=new_public_id(),
                content_id="",
                entity_type=EntityType.DOCUMENT,
                kind="text",
                title=each.title[:500],
                tags=each.tags,
                created_at=at,
                updated_at=at,
                metadata={name: value for name, value in about.items() if value},
                folders=self._filed_in(each),
            ),
            each.text,
            dated=each.at is not None,
        )

    def _report(self) -> None:
        self.advance(sum(self.outcomes.values()) + len(self.failed), self.total)
