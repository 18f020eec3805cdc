"""The library: add, read, change and delete items. Every method checks access first and reads
through the caller's scope."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from commonplace.core.ingest.pipeline import IngestPipeline, Prepared, job_for
from commonplace.core.ingest.sources import (
    VALIDATORS,
    KeyedLock,
    Sources,
    own_page,
    recording_of,
    url_key,
    with_source,
)
from commonplace.core.ingest.transcription import Quota
from commonplace.core.items.drafts import AddedItem, Draft, derive_changes, new_item, text_content
from commonplace.core.items.epic_status import Epics
from commonplace.core.items.source_files import SourceFiles
from commonplace.core.items.text_editor import TextEditor
from commonplace.core.items.trash import PERMANENT
from commonplace.core.people.authorization import DELETE, GRAPH_WRITE, READ, WRITE, Service, verb
from commonplace.errors import ForbiddenScope, IngestFailed, Invalid, NotFound
from commonplace.model import (
    CHANGED,
    FAILED,
    GONE,
    INGEST,
    MOVED,
    TRANSCRIBE,
    UNCHANGED,
    Annotation,
    Caller,
    Content,
    EntityType,
    FullItem,
    Item,
    ItemFilter,
    ItemRef,
    Job,
    Order,
    Progress,
    Relation,
    Scope,
    Upload,
    find_by_id,
    mark_source,
    new_shared_id,
    no_progress,
)
from commonplace.ports import Embedder, Wake
from commonplace.store.optimistic import retry_on_conflict


@dataclass(eq=False)
class Library(Service):
    _embedder: Embedder
    _wake: Wake
    _sources: Sources
    _pipeline: IngestPipeline
    _quota: Quota
    _epics: Epics
    _editor: TextEditor
    _files: SourceFiles
    auto_transforms: bool  # whether a model is configured; without one, all is done in the call
    _turns: KeyedLock = field(default_factory=KeyedLock, init=False)

    # -- items

    @verb(WRITE, target=lambda draft: draft.title or draft.url)
    async def add(
        self, caller: Caller, draft: Draft, progress: Progress = no_progress
    ) -> AddedItem:
        if draft.url is None:
            content = text_content(caller, draft)
            stored = await self._store.contents.find_id(caller.library_id, content.key)
            return await self.keep(caller, draft, replace(content, id=stored or ""), progress)
        # One fetch when several callers add one URL at once. Across processes the unique key helps.
        add = self._add_page if draft.html else self._add_address
        async with self._turns.take(url_key(draft.url)):
            return await retry_on_conflict(
                partial(add, caller, draft, draft.url, progress), guarded=False
            )

    async def _add_page(
        self, caller: Caller, draft: Draft, url: str, progress: Progress
    ) -> AddedItem:
        """Add a page that a browser sent. It is private, and a version of an item that is there."""
        key = url_key(url)
        content = await self._sources.read_page(url, draft.html, queue=caller.queue)
        _, item = await self._store.items.find_by_key(
            caller.scope, key, draft.entity_type, token_id=caller.token_id
        )
        if item is None:
            return await self.keep(caller, draft, own_page(content, url), progress)
        content = await self._files.put(item.library_id, replace(content, edit_of=key))
        changed = await self._editor.captured(caller, item, content)
        return await self.add_existing(caller, draft, changed)

    async def _add_address(
        self, caller: Caller, draft: Draft, url: str, progress: Progress
    ) -> AddedItem:
        content, item = await self.locate(
            caller.scope,
            url,
            draft.entity_type,
            token_id=caller.token_id,
            queue=caller.queue,
            progress=progress,
        )
        if item is not None:
            return await self.add_existing(caller, draft, item)
        return await self.keep(caller, draft, content, progress)

    async def locate(
        self,
        scope: Scope,
        url: str,
        entity_type: str,
        *,
        queue: str,
        token_id: str | None = None,
        progress: Progress = no_progress,
    ) -> tuple[Content, Item | None]:
        """Find the content of a URL, reading it if nobody has, and the caller's item of it. A page
        is stored under the URL where its redirects end."""
        find = partial(
            self._store.items.find_by_key, scope, entity_type=entity_type, token_id=token_id
        )
        stored, item = await find(url_key(url))
        if item is not None and stored is None:  # only its edited text is left
            return await self._store.contents.get(item.library_id, item.content_id), item
        if stored:
            return stored, item
        content = await self._sources.read(url, progress, queue=queue)
        stored, item = await find(content.key) if content.redirected else (None, None)
        if content.canonical and stored is None:
            stored, item = await find(url_key(content.canonical))
            if stored:
                content = _alias(content, stored)
            else:
                content = await self._read_canonical(content, queue)
        if stored is None:
            return content, None
        for key in content.redirected:
            await self._store.contents.redirect(key, stored)
        return replace(stored, redirected=content.redirected), item

    async def _read_canonical(self, content: Content, queue: str) -> Content:
        """Return the page that another one names as canonical, from its own address: a page could
        put words into the mouth of any other. If that cannot be read, return the page itself."""
        if not content.canonical:
            return content
        try:
            named = await self._sources.read(content.canonical, queue=queue)
        except IngestFailed:
            return content
        return content if recording_of(named) is not None else _alias(content, named)

    async def keep(
        self,
        caller: Caller,
        draft: Draft,
        content: Content,
        progress: Progress = no_progress,
        upload: Upload | None = None,
    ) -> AddedItem:
        """Store a source, or queue its recording. The caller is authorized already. `upload`: the
        uploaded file of the source."""
        item = with_source(
            new_item(caller, draft, draft.title or content.about.get("title", "")), content
        )
        made = await self.make(item, content, caller.person_id, draft.auto_transform, progress)
        content = await self._files.put(item.library_id, content)
        job_id = made.jobs[0].id if made.jobs else None
        if upload is not None:
            upload = replace(
                upload,
                answer={
                    "status": made.item.state,
                    "folder_id": caller.single_folder,
                    "job_id": job_id,
                },
            )
        item, created = await self._store.items.add(
            made.item,
            replace(content, id=new_shared_id()),
            made.sections,
            scope=caller.scope,
            folder_id=caller.single_folder,
            stamp=self._embedder.stamp,
            jobs=made.jobs,
            upload=upload,
        )
        if not created:
            return await self.add_existing(caller, draft, item)
        if made.jobs:
            await self._wake.signal()
        return AddedItem(item.state, item, caller.single_folder, created, job_id)

    async def make(
        self,
        item: Item,
        content: Content,
        person_id: str,
        auto_transform: bool,
        progress: Progress = no_progress,
    ) -> Prepared:
        """Prepare an item's fields, sections and jobs, or the job that transcribes it. Passages and
        vectors of stored content are reused."""
        auto, recording = auto_transform and self.auto_transforms, recording_of(content)
        if recording is not None:
            await self._quota.check(item.library_id, person_id, recording.get("seconds", 0.0))
            item = replace(
                item,
                transcription_status="queued",
                metadata=item.metadata | ({"auto_transform": True} if auto else {}),
            )
            return Prepared(
                item, (), (job_for(item, TRANSCRIBE, {**recording, "person": person_id}),)
            )
        await progress(0.7, "Indexing it")
        known = (
            await self._store.sections.of_content(
                item.library_id, content, item.title, self._embedder.stamp
            )
            if content.id and item.in_kb
            else []
        )
        return await self._pipeline.prepare(
            item, content.text, content.marks, known=known, auto_transform=auto
        )

    @verb(WRITE, target="item_id")
    async def refresh(self, caller: Caller, item_id: str) -> Item:
        """Fetch the item's page again unless it is unchanged, and replace text and sections in one
        transaction. Title and tags chosen by people stay, and so does a text that somebody has
        edited: that of the page becomes a version.

        Libraries that share the old text keep it. The next add of the URL gets the new one.
        """
        item = await self._store.items.get(caller.scope, ItemRef.parse(item_id))
        if (
            item.url is None
            or item.transcription_status is not None
            or item.ingest_status is not None
        ):
            raise Invalid("Only web pages and documents can be refreshed.")
        before = await self._store.contents.get(item.library_id, item.content_id)
        try:
            content = await self._sources.read_again(
                item.url, before.about.get(VALIDATORS, {}), queue=caller.queue
            )
        except IngestFailed as error:
            await self.mark(item, GONE if error.data.get("http_status") in (404, 410) else FAILED)
            raise
        if content is None:
            return await self.mark(item, UNCHANGED)
        content = await self._read_canonical(content, caller.queue)
        if recording_of(content) is not None:
            raise Invalid("The URL now leads to a recording. Add it as a new item.")
        return await self.renew(caller, item, content)

    async def renew(self, caller: Caller, item: Item, content: Content) -> Item:
        """Give an item what its page says now. The caller is authorized already."""
        before = await self._store.contents.get(item.library_id, item.content_id)
        content = await self._files.put(item.library_id, content)

        async def replace_text() -> Item:
            # read again: it may have changed during the fetch
            current = await self._store.items.get(caller.scope, ItemRef(id=item.id))
            return await self._editor.refetched(caller, current, content)

        renewed = await retry_on_conflict(replace_text, guarded=False)
        moved = before.shared and content.key != before.key
        changed = content.text != before.text
        return await self.mark(renewed, MOVED if moved else CHANGED if changed else UNCHANGED)

    async def mark(self, item: Item, status: str) -> Item:
        """Note what was found at the item's address today, and since when that is so."""
        marked = mark_source(item, status)
        await self._store.items.set_derived([Annotation(item, {"metadata": marked.metadata})])
        return marked

    @verb(WRITE, target="item_id")
    async def retry(self, caller: Caller, item_id: str) -> Item:
        """Queue the failed jobs of an item again."""
        item = await self._store.items.get(caller.scope, ItemRef.parse(item_id))
        await self._retry(caller, item)
        return await self._store.items.get(caller.scope, ItemRef(id=item.id))

    @verb(WRITE, "retry", target="job_id")
    async def retry_job(self, caller: Caller, job_id: str) -> Job:
        job = await self._store.jobs.get(caller.scope, job_id)
        await self._retry(
            caller, await self._store.items.get(caller.scope, ItemRef(id=job.item_id))
        )
        return await self._store.jobs.get(caller.scope, job_id)

    @verb(READ, target="item_id")
    async def read(self, caller: Caller, item_id: str) -> FullItem:
        return await self._read(caller, ItemRef.parse(item_id))

    async def reread(self, caller: Caller, item: Item) -> FullItem:
        """Return an item that was just changed, in full. The caller is authorized already."""
        return await self._read(caller, ItemRef(id=item.id))

    async def _read(self, caller: Caller, ref: ItemRef) -> FullItem:
        reading = await self._store.items.get_with_sections(caller.scope, ref)
        if reading.item.transcription_status in (None, "done"):
            return reading
        return replace(
            reading, transcription=await self._store.jobs.latest(reading.item, TRANSCRIBE)
        )

    @verb(READ, "read", target="item_id")
    async def find(self, caller: Caller, item_id: str) -> Item | None:
        """Return the item without its text, or None if the caller does not see it."""
        try:
            return await self._store.items.get(caller.scope, ItemRef.parse(item_id))
        except NotFound:
            return None

    @verb(READ, "list")
    async def recent(self, caller: Caller, limit: int = 20) -> list[Item]:
        return (
            await self._store.items.list_page(
                caller.scope, ItemFilter(), limit=limit, offset=0, count=False
            )
        )[0]

    @verb(READ, "list", target=lambda where: where.folder_id)
    async def page(
        self,
        caller: Caller,
        where: ItemFilter,
        *,
        limit: int = 20,
        offset: int = 0,
        order: Order = Order.NEWEST,
    ) -> tuple[list[Item], int]:
        await self._require_folder(caller, where)
        return await self._store.items.list_page(
            caller.scope, where, limit=limit, offset=offset, order=order
        )

    @verb(READ, "list")
    async def beside(
        self, caller: Caller, item: Item, where: ItemFilter, order: Order = Order.NEWEST
    ) -> tuple[Item | None, Item | None]:
        """Return the items before and after one in a list."""
        await self._require_folder(caller, where)
        return await self._store.items.beside(caller.scope, where, order, item)

    @verb(READ, "list")
    async def count_before(
        self, caller: Caller, item: Item, where: ItemFilter, order: Order = Order.NEWEST
    ) -> int:
        """Return how many items of a list come before one."""
        await self._require_folder(caller, where)
        return await self._store.items.count_before(caller.scope, where, order, item)

    @verb(GRAPH_WRITE, target="item_id")
    async def update(
        self,
        caller: Caller,
        item_id: str,
        changes: dict[str, Any],
        expected_revision: int | None = None,
    ) -> Item:
        """Change text, title, tags, category, in_kb or archived. Leaving the KB drops the sections,
        returning creates them again."""
        updated = await retry_on_conflict(
            partial(self._update, caller, item_id, changes, expected_revision),
            guarded=expected_revision is not None,
        )
        if "archived" in changes and updated.entity_type == EntityType.TASK:
            await self._epics.follow(caller.scope, await self._epics.of(updated))
        return updated

    async def _update(
        self, caller: Caller, item_id: str, changes: dict[str, Any], expected_revision: int | None
    ) -> Item:
        item = await self._store.items.get(caller.scope, ItemRef.parse(item_id))
        expected_revision = item.revision if expected_revision is None else expected_revision
        if caller.kb_only and changes.get("in_kb") is False:
            raise ForbiddenScope("A token limited to the KB cannot remove items from it.")
        if not changes:
            raise Invalid("There is nothing to change. Name at least one field.")
        others = {name: value for name, value in changes.items() if name != "text"}
        derived = derive_changes(item, others) if others else {}
        if "text" in changes:
            return await self._editor.edit(
                caller.scope, item, changes["text"], derived, expected_revision
            )
        updated, _ = await self._pipeline.change(caller.scope, item, derived, expected_revision)
        return updated

    @verb(DELETE, target="item_id")
    async def delete(
        self,
        caller: Caller,
        item_id: str,
        expected_revision: int | None = None,
        permanent: bool = False,
    ) -> Item:
        """Move an item to the trash with its passages, notes, capture, relations and candidates. If
        it is also filed outside the caller's scope, it is only taken out of the caller's folders.
        `permanent`: delete it for good."""
        if permanent:
            self._access.require(caller, PERMANENT, item_id)
        item = await self._store.items.get(caller.scope, ItemRef.parse(item_id))
        await self._epics.delete(caller.scope, item, expected_revision, permanent=permanent)
        return item

    @verb(READ)
    async def relations(self, caller: Caller, item_ids: Sequence[str]) -> list[Relation]:
        return await self._store.relations.of_items(caller.scope, item_ids)

    @verb(READ, target="job_id")
    async def job(self, caller: Caller, job_id: str) -> Job:
        return await self._store.jobs.get(caller.scope, job_id)

    # -- how

    async def _require_folder(self, caller: Caller, where: ItemFilter) -> None:
        """Refuse a folder out of scope, also for items in scope: the caller may not know that they
        are in it."""
        if where.folder_id is not None:
            folders = await self._store.folders.list_folders(caller.scope)
            find_by_id(folders, where.folder_id, "Folder")

    async def add_existing(self, caller: Caller, draft: Draft, item: Item) -> AddedItem:
        """Answer an add with the existing item. Failed work is retried, and an item outside the KB
        enters it if requested: `ready` must mean that search finds it."""
        jobs: list[Job] = []
        if item.state == "failed":
            jobs = await self._retry(caller, item)
            item = replace(
                item,
                status_reason=None,
                ingest_status=item.ingest_status and "queued",
                transcription_status=item.transcription_status and "queued",
            )
        elif item.state != "ready":
            waiting = await self._store.jobs.latest(
                item, INGEST if item.ingest_status else TRANSCRIBE
            )
            jobs = [waiting] if waiting else []
        if (draft.in_kb or caller.kb_only) and not item.in_kb:
            item, more = await self.add_to_kb(item)
            jobs += more
        return AddedItem(
            item.state, item, caller.single_folder, False, jobs[0].id if jobs else None
        )

    async def add_to_kb(self, item: Item) -> tuple[Item, Sequence[Job]]:
        # Without a scope: a token of several folders, or of the KB, does not see its item yet.
        kept, jobs = await self._pipeline.change(
            Scope(item.library_id), item, {"in_kb": True}, None
        )
        return replace(kept, folders=item.folders), jobs

    async def _retry(self, caller: Caller, item: Item) -> list[Job]:
        jobs = await self._store.jobs.retry(caller.scope, item.id)
        await self._wake.signal()
        return jobs


def _alias(content: Content, canonical: Content) -> Content:
    """Return the canonical page of a content, to which its addresses lead, too."""
    keys = dict.fromkeys((*canonical.redirected, content.key, *content.redirected))
    keys.pop(canonical.key, None)
    return replace(canonical, redirected=tuple(keys))
