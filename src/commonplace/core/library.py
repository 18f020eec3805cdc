"""The verbs of a library. Every face ends here; every verb starts by asking `access` and reads through a scope."""

import asyncio
import hashlib
import unicodedata
from collections.abc import AsyncIterable, AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from commonplace.core import sectioning
from commonplace.core.access import DELETE, READ, WRITE, Access
from commonplace.core.embedding import EMBED, with_vectors
from commonplace.errors import EmbeddingFailed, ForbiddenScope, IngestFailed, Invalid
from commonplace.model import (
    Caller,
    Content,
    EntityType,
    Entry,
    Folder,
    Item,
    ItemFilter,
    ItemRef,
    Job,
    Outcome,
    Section,
    new_id,
    new_public_id,
    now,
)
from commonplace.ports import Embedder, Store, Wake

IN_CALL = 8  # sections that get their vectors within the call; longer texts are keyword-live at once, vectors follow


@dataclass(frozen=True, slots=True)
class Draft:
    """What somebody wants kept."""

    kind: str
    title: str = ""
    text: str = ""
    url: str | None = None
    in_kb: bool = True
    auto_transform: bool = False
    tags: tuple[str, ...] = ()
    entity_type: str = EntityType.DOCUMENT


@dataclass(frozen=True, slots=True)
class Record:
    """An item as it is to be, with its text: what imports bring. See Entry for `once`."""

    item: Item
    text: str
    once: bool = True


@dataclass(frozen=True, slots=True)
class Added:
    status: str  # ready, transcribing
    item: Item
    folder_id: str | None
    created: bool
    job_id: str | None = None  # what is left to do after the call


@dataclass(frozen=True, slots=True)
class Reading:
    item: Item
    text: str
    sections: tuple[Section, ...]
    folders: tuple[Folder, ...]


class Library:
    def __init__(self, store: Store, embedder: Embedder, access: Access, wake: Wake) -> None:
        self._store = store
        self._embedder = embedder
        self._access = access
        self._wake = wake

    # -- items

    async def add(self, caller: Caller, draft: Draft) -> Added:
        await self._access.admit(caller, WRITE, "add", draft.title or draft.url)
        if draft.kind != "text":
            raise IngestFailed("This server does not read web addresses yet; add the text itself with kind=text.")
        in_kb = draft.in_kb or caller.kb_only
        sections = await self._sections(draft.title, draft.text) if in_kb else []
        item = Item(
            id=new_id(), library_id=caller.library_id, public_id=new_public_id(), content_id="",
            entity_type=draft.entity_type, kind=draft.kind, title=draft.title, url=draft.url, tags=draft.tags,
            in_kb=in_kb, word_count=sectioning.count(draft.text), created_by=caller.token_id)
        content = Content(new_id(), _private_key(caller, draft.text), draft.text)
        job = self._job_for(item, sections)
        item, created = await self._store.items.add(
            item, content, sections, scope=caller.scope, folder_id=caller.only_folder, stamp=self._embedder.stamp, job=job)
        if not created:
            item, job = await self._into_kb(caller, item, sections) if in_kb and not item.in_kb else (item, None)
        await self._wake.signal()
        return Added("ready", item, caller.only_folder, created, job.id if job else None)

    async def put(self, caller: Caller, records: Sequence[Record]) -> list[Outcome]:
        """Many at once, in one transaction: found by their words when this returns, by meaning once jobs have run."""
        await self._access.admit(caller, WRITE, "import", owner=True)
        entries = await asyncio.to_thread(lambda: [self._entry(caller, record) for record in records])
        outcomes = await self._store.items.put(entries, scope=caller.scope, stamp=self._embedder.stamp)
        await self._wake.signal()
        return outcomes

    async def put_all(self, caller: Caller, batches: AsyncIterable[Sequence[Record]]) -> AsyncIterator[list[Outcome]]:
        """One batch after the other, each a transaction; while one is written, the next is cut."""
        ahead: asyncio.Task[list[Outcome]] | None = None
        try:
            async for batch in batches:
                before, ahead = ahead, asyncio.create_task(self.put(caller, batch))
                if before is not None:
                    yield await before
            if ahead is not None:
                yield await ahead
        finally:
            if ahead is not None:
                await asyncio.gather(ahead, return_exceptions=True)

    async def read(self, caller: Caller, item_id: str) -> Reading:
        await self._access.admit(caller, READ, "read", item_id)
        item = await self._store.items.get(caller.scope, ItemRef.parse(item_id))
        folders = {folder.id: folder for folder in await self._store.folders.within(caller.scope)} if item.folders else {}
        return Reading(item, await self._store.items.text(item), tuple(await self._store.sections.of_item(item)),
                       tuple(folders[folder_id] for folder_id in item.folders if folder_id in folders))

    async def recent(self, caller: Caller, limit: int = 20) -> list[Item]:
        return (await self.page(caller, ItemFilter(), limit=limit))[0]

    async def page(self, caller: Caller, where: ItemFilter, *, limit: int = 20, offset: int = 0) -> tuple[list[Item], int]:
        await self._access.admit(caller, READ, "list", where.folder_id)
        if where.folder_id is not None and caller.folders is not None and where.folder_id not in caller.folders:
            return [], 0  # also for items in scope: that they lie in that folder too is not this caller's to know
        return await self._store.items.page(caller.scope, where, limit=limit, offset=offset)

    async def update(self, caller: Caller, item_id: str, changes: dict[str, Any],
                     expected_revision: int | None = None) -> Item:
        """Title, tags, in_kb, archived. Leaving the KB drops the sections; coming back makes them anew."""
        await self._access.admit(caller, WRITE, "update", item_id)
        item = await self._store.items.get(caller.scope, ItemRef.parse(item_id))
        if caller.kb_only and changes.get("in_kb") is False:
            raise ForbiddenScope("A token that sees only the KB cannot take items out of it.")
        if not changes:
            raise Invalid("Name at least one field to change.")
        title, in_kb = changes.get("title", item.title), changes.get("in_kb", item.in_kb)
        sections: list[Section] | None = None
        job = None
        if not in_kb and item.in_kb:
            sections = []
        elif in_kb and (not item.in_kb or title != item.title):
            sections = await self._sections(title, await self._store.items.text(item))
            job = self._job_for(item, sections)
        updated = await self._store.items.update(caller.scope, item.id, changes, expected_revision=expected_revision,
                                                 sections=sections, stamp=self._embedder.stamp, job=job)
        await self._wake.signal()
        return updated

    async def delete(self, caller: Caller, item_id: str) -> None:
        await self._access.admit(caller, DELETE, "delete", item_id)
        item = await self._store.items.get(caller.scope, ItemRef.parse(item_id))
        await self._store.items.delete(caller.scope, item.id)

    # -- folders

    async def folders(self, caller: Caller) -> list[Folder]:
        await self._access.admit(caller, READ, "list_folders")
        return await self._store.folders.within(caller.scope)

    async def create_folder(self, caller: Caller, name: str) -> Folder:
        await self._access.admit(caller, WRITE, "create_folder", name, owner=True)
        folder = Folder(new_id(), caller.library_id, _folder_name(name), now())
        await self._store.folders.create(folder)
        return folder

    async def rename_folder(self, caller: Caller, folder_id: str, name: str) -> Folder:
        await self._access.admit(caller, WRITE, "rename_folder", folder_id, owner=True)
        return await self._store.folders.rename(caller.scope, folder_id, _folder_name(name))

    async def delete_folder(self, caller: Caller, folder_id: str, *, cascade_items: bool = False) -> None:
        await self._access.admit(caller, DELETE, "delete_folder", folder_id, owner=True)
        await self._store.folders.delete(caller.scope, folder_id, cascade_items=cascade_items)

    async def file(self, caller: Caller, item_id: str, folder_ids: Sequence[str]) -> list[str]:
        """Folders it was newly put in. A token may only file into its own folders, and one of a single folder not at all."""
        await self._access.admit(caller, WRITE, "file", item_id)
        if caller.only_folder is not None:
            raise ForbiddenScope("A token for one folder files what it adds there by itself, and nowhere else.")
        outside = [] if caller.folders is None else [f for f in folder_ids if f not in caller.folders]
        if outside:
            raise ForbiddenScope("Some folders are out of this token's scope.", out_of_scope=outside)
        return await self._store.items.file(caller.scope, ItemRef.parse(item_id), folder_ids, token_id=caller.token_id)

    async def unfile(self, caller: Caller, item_id: str, folder_id: str) -> None:
        await self._access.admit(caller, WRITE, "unfile", item_id)
        if caller.folders is not None and folder_id not in caller.folders:
            raise ForbiddenScope("That folder is out of this token's scope.", out_of_scope=[folder_id])
        await self._store.items.unfile(caller.scope, ItemRef.parse(item_id), folder_id)

    async def job(self, caller: Caller, job_id: str) -> Job:
        await self._access.admit(caller, READ, "job", job_id)
        return await self._store.jobs.get(caller.scope, job_id)

    # -- how

    async def _into_kb(self, caller: Caller, item: Item, sections: Sequence[Section]) -> tuple[Item, Job | None]:
        """What was kept out of the KB and is now added to it: `ready` must mean that search finds it."""
        job = self._job_for(item, sections)
        return await self._store.items.update(caller.scope, item.id, {"in_kb": True}, expected_revision=None,
                                              sections=sections, stamp=self._embedder.stamp, job=job), job

    async def _sections(self, title: str, text: str) -> list[Section]:
        """Cut, and with vectors if that is quick; an embedder that is down only delays the vectors."""
        sections = await asyncio.to_thread(sectioning.cut, text, title)
        if len(sections) <= IN_CALL:
            try:
                return await with_vectors(self._embedder, title, sections)
            except EmbeddingFailed:
                return sections
        return sections

    def _entry(self, caller: Caller, record: Record) -> Entry:
        item = replace(record.item, library_id=caller.library_id, word_count=sectioning.count(record.text),
                       created_by=caller.token_id)
        sections = tuple(sectioning.cut(record.text, item.title)) if item.in_kb else ()
        content = Content(new_id(), _private_key(caller, record.text), record.text)
        return Entry(item, content, sections, self._job_for(item, sections), record.once)

    def _job_for(self, item: Item, sections: Sequence[Section]) -> Job | None:
        if all(section.vector is not None for section in sections):
            return None
        return Job(id=new_id(), library_id=item.library_id, item_id=item.id, kind=EMBED)


def _private_key(caller: Caller, text: str) -> str:
    """Private text is one content only within its library and for those who see the same of it: a `content_id` that
    comes back would tell a token that somebody else keeps this text."""
    within = "" if caller.folders is None else hashlib.sha256(" ".join(sorted(caller.folders)).encode()).hexdigest()
    return f"text:{caller.library_id}:{within}:{hashlib.sha256(text.encode()).hexdigest()}"


def _folder_name(name: str) -> str:
    """As people see it: names that look the same are the same."""
    return unicodedata.normalize("NFC", " ".join(name.split()))
