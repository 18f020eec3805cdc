"""Jobs that read URLs, texts and files which the web app has accepted."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from commonplace.core.items.library import Library
from commonplace.core.items.queued_items import QueuedItems
from commonplace.core.items.uploads import Uploads
from commonplace.core.jobs.worker import run_each
from commonplace.model import Content, Item, ItemRef, Job, Scope
from commonplace.store import Store
from commonplace.store.optimistic import retry_on_conflict


@dataclass(eq=False)
class IngestJobs:
    """Runs jobs of kind `ingest`. Running one twice is harmless: an item is completed once."""

    at_once = 1

    _store: Store
    _library: Library
    _queued_items: QueuedItems
    _uploads: Uploads

    async def run(self, worker: str, jobs: Sequence[Job]) -> None:
        # A missing page, a private address, an unreadable file or a used-up quota does not change.
        # Only unexpected errors are worth another attempt.
        await run_each(self._store, worker, jobs, self._read, known_errors=1)

    async def _read(self, job: Job) -> None:
        await retry_on_conflict(partial(self._complete, job), guarded=False)

    async def _complete(self, job: Job) -> None:
        item = await self._store.items.get(Scope(job.library_id), ItemRef(id=job.item_id))
        if item.ingest_status is None:
            return  # a previous run ended before it could finish the job
        kept = await self._queued_items.complete(job, item, await self._locate(job, item))
        if upload_id := job.payload.get("upload"):
            await self._uploads.discard(upload_id, kept, item)

    async def _locate(self, job: Job, item: Item) -> Content:
        if upload_id := job.payload.get("upload"):
            return await self._uploads.read_queued(upload_id)
        if item.url is not None:
            content, _ = await self._library.locate(
                Scope(item.library_id), item.url, item.entity_type, queue=item.library_id
            )
            return content
        return await self._store.contents.get(item.content_id)
