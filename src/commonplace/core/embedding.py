"""Vectors for sections: in the call for short texts, by a job for the rest."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import groupby

import numpy as np

from commonplace.core.sectioning import embedding_text
from commonplace.errors import CommonplaceError
from commonplace.model import Job, Section, now
from commonplace.ports import Embedder, Store

log = logging.getLogger(__name__)
EMBED = "embed"
AT_ONCE = 256      # sections between two commits of a long job
ATTEMPTS = 8
LEASE_SECONDS = 120


async def with_vectors(embedder: Embedder, title: str, sections: Sequence[Section]) -> list[Section]:
    [vectors] = await embedder.documents([[embedding_text(title, section) for section in sections]])
    return [replace(section, vector=packed(vector)) for section, vector in zip(sections, vectors, strict=True)]


def packed(vector: np.ndarray) -> bytes:
    return vector.astype(np.float16).tobytes()


class EmbedJobs:
    """Runs jobs of kind `embed`: gives the sections of their items the vectors they lack."""

    def __init__(self, store: Store, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder

    async def run(self, worker: str, jobs: Sequence[Job]) -> None:
        """All together, for full batches; one by one when that fails, so that one bad item harms no other."""
        try:
            await self._embed(worker, jobs)
        except Exception as error:
            for job in jobs if len(jobs) > 1 else ():
                await self.run(worker, [job])
            if len(jobs) == 1:
                await self._postpone(worker, jobs[0], error)
            return
        await self._store.jobs.finish(worker, [job.id for job in jobs])

    async def _embed(self, worker: str, jobs: Sequence[Job]) -> None:
        stamp = self._embedder.stamp
        lacking = await self._store.sections.unembedded([job.item_id for job in jobs], stamp)
        documents = [list(group) for _, group in groupby(lacking, key=lambda found: found[0])]
        for batch in _batches(documents):
            vectors = await self._embedder.documents(
                [[embedding_text(title, section) for _, title, _, section in document] for document in batch])
            await self._store.sections.set_vectors(stamp, [
                (section_id, packed(vector)) for document, found in zip(batch, vectors, strict=True)
                for (_, _, section_id, _), vector in zip(document, found, strict=True)])
            await self._store.jobs.extend(worker, [job.id for job in jobs], LEASE_SECONDS)

    async def _postpone(self, worker: str, job: Job, error: Exception) -> None:
        if not isinstance(error, CommonplaceError):
            log.exception("Embedding of item %s failed", job.item_id, exc_info=error)
            error = CommonplaceError(f"Unexpected {type(error).__name__}; the server's log says more.")
        last = job.attempts >= ATTEMPTS
        retry_at = None if last else now() + timedelta(seconds=min(2 ** job.attempts, 600))
        await self._store.jobs.fail(worker, job.id, error.message, retry_at)


Document = list[tuple[str, str, int, Section]]


def _batches(documents: list[Document]) -> list[list[Document]]:
    """Documents put together up to AT_ONCE sections; a longer document is cut."""
    batches: list[list[Document]] = []
    room = 0
    for document in documents:
        for start in range(0, len(document), AT_ONCE):
            part = document[start:start + AT_ONCE]
            if len(part) > room:
                batches.append([])
                room = AT_ONCE
            batches[-1].append(part)
            room -= len(part)
    return batches
