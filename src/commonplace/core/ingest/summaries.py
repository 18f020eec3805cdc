"""Summaries by jobs: of long texts, of imports, and by a model where requested."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import attrgetter

from commonplace.core.ingest.pipeline import described
from commonplace.core.jobs.retry import LEASE_SECONDS, renewing_lease, retry_or_fail
from commonplace.model import Annotation, Item, Job, Scope
from commonplace.ports import Transformer
from commonplace.store import Store
from commonplace.text import chunking

MODEL_SECONDS = 600
WORDS = 200_000  # of the texts in memory at once


@dataclass(eq=False)
class TransformJobs:
    """Runs jobs of kind `transform`. With `auto` in the payload, the configured transformer
    runs."""

    at_once = 64

    _store: Store
    _local: Transformer
    _chosen: Transformer

    async def run(self, worker: str, jobs: Sequence[Job]) -> None:
        """Describe texts in batches. Requests to a model are made one by one."""
        library = attrgetter("library_id")
        by_model = [job for job in jobs if job.payload.get("auto")]
        others = sorted((job for job in jobs if not job.payload.get("auto")), key=library)
        async with renewing_lease(
            partial(self._store.jobs.extend, worker, [job.id for job in jobs], LEASE_SECONDS)
        ):
            for _, group in groupby(others, library):
                await self._try(worker, list(group), self._local)
        for done, job in enumerate(by_model):
            # A paid answer must not be requested again.
            await self._store.jobs.extend(
                worker, [left.id for left in by_model[done:]], MODEL_SECONDS
            )
            await self._try(worker, [job], self._chosen)

    async def _try(self, worker: str, jobs: Sequence[Job], transformer: Transformer) -> None:
        """Describe all together. If that fails, one by one, so that one bad item does not fail the
        others."""
        try:
            await self._describe(jobs, transformer)
        except Exception as error:
            for job in jobs if len(jobs) > 1 else ():
                await self._try(worker, [job], transformer)
            if len(jobs) == 1:
                await retry_or_fail(self._store, worker, jobs[0], error)
            return
        await self._store.jobs.finish(worker, [job.id for job in jobs])

    async def _describe(self, jobs: Sequence[Job], transformer: Transformer) -> None:
        """Describe items. Items deleted while their job waited are skipped."""
        scope, item_ids = Scope(jobs[0].library_id), [job.item_id for job in jobs]
        for batch in _batches(list((await self._store.items.get_many(scope, item_ids)).values())):
            await self._describe_batch(scope, batch, transformer)

    async def _describe_batch(
        self, scope: Scope, batch: Sequence[Item], transformer: Transformer
    ) -> None:
        sections = await self._store.sections.of_items(batch)
        texts = await self._store.items.texts([item for item in batch if item.id not in sections])
        made = {}
        for item in batch:
            cut = sections.get(item.id) or chunking.cut(texts.get(item.id, ""), item.title)
            made[item.id] = await transformer.transform(
                item.title, [section.text for section in cut]
            )
        # Read again: somebody may have tagged it meanwhile, or changed its text, which has its own
        # job.
        said = {item.id: item.content_id for item in batch}
        items = await self._store.items.get_many(scope, list(said))
        await self._store.items.set_derived(
            [
                Annotation(
                    item,
                    described(item, made[item.id]),
                    made[item.id].section_points if item.id in sections else (),
                )
                for item in items.values()
                if item.content_id == said[item.id]
            ]
        )


def _batches(items: Sequence[Item]) -> Iterator[list[Item]]:
    """Group items to about WORDS words, or a single longer one."""
    batch: list[Item] = []
    for item in items:
        if batch and sum(each.word_count for each in batch) + item.word_count > WORDS:
            yield batch
            batch = []
        batch.append(item)
    if batch:
        yield batch
