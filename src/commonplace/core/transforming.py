"""Summaries that take longer than a call: of long texts, of what imports bring, and by a model for those who asked for it."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from commonplace.core import sectioning
from commonplace.core.preparing import described
from commonplace.core.retrying import give_back
from commonplace.errors import NotFound
from commonplace.model import ItemRef, Job, Reading, Scope, Transformed
from commonplace.ports import Store, Transformer

MODEL_SECONDS = 600
T = TypeVar("T")


class TransformJobs:
    """Runs jobs of kind `transform`; with `auto` in the payload, by the transformer of the settings."""

    at_once = 16

    def __init__(self, store: Store, local: Transformer, chosen: Transformer) -> None:
        self._store = store
        self._local = local
        self._chosen = chosen

    async def run(self, worker: str, jobs: Sequence[Job]) -> None:
        """One after the other; the next is read while what was made of the last is written, so that many share a commit."""
        async with asyncio.TaskGroup() as writing:
            for done, job in enumerate(jobs):
                if job.payload.get("auto"):  # a model takes its time, and what it was paid for is not to be asked for twice
                    await self._store.jobs.extend(worker, [left.id for left in jobs[done:]], MODEL_SECONDS)
                made = await self._tried(worker, job, self._make(job))
                if made is not None:
                    writing.create_task(self._tried(worker, job, self._keep(worker, job, *made)))

    async def _tried(self, worker: str, job: Job, step: Awaitable[T]) -> T | None:
        try:
            return await step
        except NotFound:  # the item was deleted while the job waited: there is nothing left to describe
            await self._store.jobs.finish(worker, [job.id])
        except Exception as error:
            await give_back(self._store, worker, job, error)
        return None

    async def _make(self, job: Job) -> tuple[Reading, Transformed]:
        read = await self._store.items.whole(Scope(job.library_id), ItemRef(id=job.item_id))
        sections = read.sections or sectioning.cut(read.text, read.item.title)
        transformer = self._chosen if job.payload.get("auto") else self._local
        return read, await transformer.transform(read.item.title, [section.text for section in sections])

    async def _keep(self, worker: str, job: Job, read: Reading, made: Transformed) -> None:
        # Read anew: somebody may have tagged it meanwhile, or changed its text, which then has a job of its own.
        item = await self._store.items.get(Scope(job.library_id), ItemRef(id=job.item_id))
        if item.content_id == read.item.content_id:
            await self._store.items.annotate(item, described(item, made), made.section_points if read.sections else ())
        await self._store.jobs.finish(worker, [job.id])
