"""Summaries that take longer than a call: of long texts, of what imports bring, and by a model for those who asked for it."""

from collections.abc import Sequence

from commonplace.core import sectioning
from commonplace.core.preparing import described
from commonplace.core.retrying import give_back
from commonplace.errors import NotFound
from commonplace.model import ItemRef, Job, Scope
from commonplace.ports import Store, Transformer

MODEL_SECONDS = 600


class TransformJobs:
    """Runs jobs of kind `transform`; with `auto` in the payload, by the transformer of the settings."""

    at_once = 16

    def __init__(self, store: Store, local: Transformer, chosen: Transformer) -> None:
        self._store = store
        self._local = local
        self._chosen = chosen

    async def run(self, worker: str, jobs: Sequence[Job]) -> None:
        for done, job in enumerate(jobs):
            if job.payload.get("auto"):  # a model takes its time, and what it was paid for is not to be asked for twice
                await self._store.jobs.extend(worker, [left.id for left in jobs[done:]], MODEL_SECONDS)
            try:
                await self._transform(job)
            except NotFound:
                pass  # the item was deleted while the job waited: there is nothing left to describe
            except Exception as error:
                await give_back(self._store, worker, job, error)
                continue
            await self._store.jobs.finish(worker, [job.id])

    async def _transform(self, job: Job) -> None:
        item = await self._store.items.get(Scope(job.library_id), ItemRef(id=job.item_id))
        sections = await self._store.sections.of_item(item)
        texts = [section.text for section in sections] or [
            section.text for section in sectioning.cut(await self._store.items.text(item), item.title)]
        transformer = self._chosen if job.payload.get("auto") else self._local
        made = await transformer.transform(item.title, texts)
        # Read anew: somebody may have tagged it meanwhile, or changed its text, which then has a job of its own.
        after = await self._store.items.get(Scope(job.library_id), ItemRef(id=job.item_id))
        if after.content_id == item.content_id:
            await self._store.items.annotate(after, described(after, made), made.section_points if sections else ())
