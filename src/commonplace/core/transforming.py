"""Summaries that take longer than a call: of long texts, and by a model for those who asked for it."""

from collections.abc import Sequence

from commonplace.core import sectioning
from commonplace.core.preparing import described
from commonplace.core.retrying import give_back
from commonplace.errors import NotFound
from commonplace.model import ItemRef, Job, Scope
from commonplace.ports import Store, Transformer


class TransformJobs:
    """Runs jobs of kind `transform`; with `auto` in the payload, by the transformer of the settings."""

    at_once = 1

    def __init__(self, store: Store, local: Transformer, chosen: Transformer) -> None:
        self._store = store
        self._local = local
        self._chosen = chosen

    async def run(self, worker: str, jobs: Sequence[Job]) -> None:
        for job in jobs:
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
        await self._store.items.annotate(item, described(item, made), made.section_points if sections else ())
