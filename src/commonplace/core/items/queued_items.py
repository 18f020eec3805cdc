"""Items stored before they are read: the web app writes an item and a job at once, and the job
reads the URL, text or file."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from commonplace.core.ingest.pipeline import OF_THE_TEXT, job_for
from commonplace.core.ingest.sources import private_key, title_of, url_key, with_source
from commonplace.core.items.drafts import AddedItem, Draft, new_item, text_content
from commonplace.core.items.library import Library
from commonplace.core.items.source_files import SourceFiles
from commonplace.core.jobs.worker import run_each
from commonplace.core.people.authorization import WRITE, Service, verb
from commonplace.model import (
    INGEST,
    Caller,
    Content,
    Item,
    ItemRef,
    Job,
    Scope,
    Upload,
    new_id,
    new_shared_id,
)
from commonplace.ports import Wake
from commonplace.store import Store
from commonplace.store.optimistic import retry_on_conflict
from commonplace.text.urls import canonical


@dataclass(eq=False)
class QueuedItems(Service):
    _wake: Wake
    _library: Library
    _files: SourceFiles
    _stamp: str

    @verb(WRITE, "add", target=lambda draft: draft.title or draft.url)
    async def submit(self, caller: Caller, draft: Draft, folder_id: str | None = None) -> AddedItem:
        """Store a text or URL with a job that reads it. Nothing is lost once this returns."""
        if draft.url is None:
            content = replace(text_content(caller, draft), id=new_shared_id())
            return await self.enqueue(caller, draft, content, draft.title, folder_id)
        _, there = await self._store.items.find_by_key(
            caller.scope, url_key(draft.url), draft.entity_type, token_id=caller.token_id
        )
        if there is not None:
            return await self.file_existing(caller, draft, there, folder_id)
        content = Content(new_id(), private_key(caller, "unread-url", canonical(draft.url)), "")
        return await self.enqueue(caller, draft, content, title_of(draft.url), folder_id)

    async def enqueue(
        self,
        caller: Caller,
        draft: Draft,
        content: Content,
        title: str,
        folder_id: str | None,
        upload: Upload | None = None,
    ) -> AddedItem:
        """Write an unread item, its job and its folder in one transaction. `title`: used until the
        source gives one."""
        item = replace(
            new_item(caller, draft, draft.title or title),
            ingest_status="queued",
            folders=(folder_id,) if folder_id else (),
        )
        job = job_for(
            item,
            INGEST,
            {
                "person": caller.person_id,
                "auto": draft.auto_transform,
                "title": "" if draft.title else title,
                **({"upload": upload.id} if upload else {}),
            },
        )
        item, created = await self._store.items.add(
            item,
            content,
            (),
            scope=caller.scope,
            folder_id=caller.single_folder,
            stamp=self._stamp,
            jobs=[job],
            upload=upload,
        )
        if not created:
            return await self.file_existing(caller, draft, item, folder_id)
        await self._wake.signal()
        return AddedItem(item.state, item, caller.single_folder, created, job.id)

    async def file_existing(
        self, caller: Caller, draft: Draft, item: Item, folder_id: str | None
    ) -> AddedItem:
        """Answer with the existing item, filed in the folder."""
        if folder_id is not None:
            await self._store.items.file(
                caller.scope, ItemRef(id=item.id), [folder_id], token_id=caller.token_id
            )
        return await self._library.add_existing(caller, draft, item)

    async def complete(self, job: Job, item: Item, content: Content) -> Item:
        """Complete a queued item from its source. The store's `QueuedItems.complete_ingest` says
        what happens to text that is there already."""
        found = content.about.get("title") if item.title == job.payload["title"] else None
        made = await self._library.make(
            # the title, unless somebody has changed it meanwhile
            with_source(replace(item, title=found or item.title), content),
            content,
            job.payload["person"],
            job.payload["auto"],
        )
        changes = {
            name: getattr(made.item, name)
            for name in ("title", "url", *OF_THE_TEXT, "transcription_status")
        }
        content = await self._files.put(item.library_id, content)
        kept = await self._store.queued_items.complete_ingest(
            Scope(item.library_id),
            item,
            replace(content, id=new_shared_id()),
            changes,
            sections=made.sections,
            stamp=self._stamp,
            jobs=made.jobs,
        )
        if kept.id != item.id and item.in_kb and not kept.in_kb:
            await self._library.add_to_kb(kept)
        await self._wake.signal()
        return kept


@dataclass(eq=False)
class IngestJobs:
    """Runs jobs of kind `ingest`. Running one twice is harmless: an item is completed once."""

    at_once = 1

    _store: Store
    _library: Library
    _queued_items: QueuedItems
    _read_upload: Callable[[str], Awaitable[Content]]
    _discard_upload: Callable[[str, Item, Item], Awaitable[None]]

    async def run(self, worker: str, jobs: Sequence[Job]) -> None:
        # A missing page, a private address, an unreadable file or a used-up quota does not change.
        # Only unexpected errors are worth another attempt.
        await run_each(
            self._store,
            worker,
            jobs,
            lambda job: retry_on_conflict(partial(self._read, job), guarded=False),
            known_errors=1,
        )

    async def _read(self, job: Job) -> None:
        item = await self._store.items.get(Scope(job.library_id), ItemRef(id=job.item_id))
        if item.ingest_status is None:
            return  # a previous run ended before it could finish the job
        kept = await self._queued_items.complete(job, item, await self._locate(job, item))
        if upload_id := job.payload.get("upload"):
            await self._discard_upload(upload_id, kept, item)

    async def _locate(self, job: Job, item: Item) -> Content:
        if upload_id := job.payload.get("upload"):
            return await self._read_upload(upload_id)
        if item.url is not None:
            content, _ = await self._library.locate(
                Scope(item.library_id), item.url, item.entity_type, queue=item.library_id
            )
            return content
        return await self._store.contents.get(item.library_id, item.content_id)
