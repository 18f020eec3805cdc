"""Jobs that read URLs, texts and files which the web app has accepted."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from commonplace.core.items.library import Library
from commonplace.core.items.queued_items import QueuedItems
from commonplace.core.items.uploads import Uploads
from commonplace.core.jobs.retry import ATTEMPTS, LEASE_SECONDS, renewing_lease, retry_or_fail
from commonplace.errors import CommonplaceError, NotFound
from commonplace.model import Content, Item, ItemRef, Job, Scope, now
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
        for job in jobs:
            try:
                async with renewing_lease(
                    partial(self._store.jobs.extend, worker, [job.id], LEASE_SECONDS)
                ):
                    await retry_on_conflict(partial(self._read, job), guarded=False)
                await self._store.jobs.finish(worker, [job.id])
            except NotFound:
                await self._store.jobs.finish(worker, [job.id])  # the item was deleted meanwhile
            except asyncio.CancelledError:
                # the server stops: the next one continues at once
                await self._store.jobs.postpone(worker, job.id, now())
                raise
            except Exception as error:
                # A missing page, a private address, an unreadable file or a used-up quota does not
                # change. Only unexpected errors are worth another attempt.
                attempts = 1 if isinstance(error, CommonplaceError) else ATTEMPTS
                await retry_or_fail(self._store, worker, job, error, attempts)

    async def _read(self, job: Job) -> None:
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
