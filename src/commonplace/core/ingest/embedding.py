"""Vectors for sections: computed in the call for short texts, by a job for the rest."""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import TypeVar

import numpy as np

from commonplace.core.jobs.retry import (
    LEASE_SECONDS,
    error_message,
    is_transient,
    renewing_lease,
    retry_at,
    retry_or_fail,
)
from commonplace.errors import EmbeddingFailed
from commonplace.model import EMBED, Entry, Job, Section, now
from commonplace.ports import Embedder, Vector, Vectors
from commonplace.store import Store
from commonplace.text.chunking import embedding_text

T = TypeVar("T")

CALL_SECONDS = 10.0  # that a call waits for the embedder; jobs wait longer
AT_ONCE = 256  # sections per commit of a long job
IN_MEMORY = 2_048  # sections loaded at a time: one text may have 60,000


async def within_call(vectors: Awaitable[T]) -> T:
    """Await vectors within a call. An embedder that hangs counts as down, and a job tries again."""
    try:
        async with asyncio.timeout(CALL_SECONDS):
            return await vectors
    except TimeoutError:
        raise EmbeddingFailed("The embedder did not answer in time.") from None


async def with_vectors(
    embedder: Embedder, title: str, sections: Sequence[Section]
) -> list[Section]:
    [vectors] = await embedder.documents([[embedding_text(title, section) for section in sections]])
    return [
        replace(section, vector=packed(vector))
        for section, vector in zip(sections, vectors, strict=True)
    ]


async def embedded(store: Store, embedder: Embedder, entries: Sequence[Entry]) -> list[Entry]:
    """Embed new entries and drop their embed jobs. Known content may have vectors already. If the
    embedder is down, the jobs stay."""
    known = await store.contents.existing_keys([entry.content.key for entry in entries])
    texts = [
        [
            embedding_text(entry.item.title, section)
            for section in entry.sections
            if entry.content.key not in known
        ]
        for entry in entries
    ]
    try:
        vectors = await embedder.documents(texts)
    except EmbeddingFailed:
        return list(entries)
    return [
        _given(entry, found) if len(found) else entry
        for entry, found in zip(entries, vectors, strict=True)
    ]


def _given(entry: Entry, vectors: Vectors) -> Entry:
    sections = (
        replace(section, vector=packed(vector))
        for section, vector in zip(entry.sections, vectors, strict=True)
    )
    return replace(
        entry, sections=tuple(sections), jobs=tuple(job for job in entry.jobs if job.kind != EMBED)
    )


def packed(vector: np.ndarray) -> bytes:
    return vector.astype(np.float16).tobytes()


def unpacked(vector: bytes) -> Vector:
    """Decode one vector, or several in a row."""
    return np.frombuffer(vector, np.float16).astype(np.float32)


@dataclass(eq=False)
class EmbedJobs:
    """Runs jobs of kind `embed`: computes missing vectors of sections."""

    at_once = 64

    _store: Store
    _embedder: Embedder

    async def run(self, worker: str, jobs: Sequence[Job]) -> None:
        """Embed all together, for full batches. If that fails, one by one, so that one bad item
        does not fail the others."""
        if len(jobs) > 1 and await self._try(worker, jobs) is None:
            return
        for tried, job in enumerate(jobs, 1):
            error = await self._try(worker, [job])
            if error is not None:
                await retry_or_fail(self._store, worker, job, error)
                if is_transient(error):  # the embedder is down for all of them
                    await self._postpone(worker, jobs[tried:], error)
                    return

    async def _try(self, worker: str, jobs: Sequence[Job]) -> Exception | None:
        try:
            async with renewing_lease(
                partial(self._store.jobs.extend, worker, [job.id for job in jobs], LEASE_SECONDS)
            ):
                await self._embed(jobs)
        except Exception as error:
            return error
        await self._store.jobs.finish(worker, [job.id for job in jobs])
        return None

    async def _postpone(self, worker: str, jobs: Sequence[Job], error: Exception) -> None:
        """Postpone jobs that were not tried on their own, for half the delay. If the one that was
        tried is the cause, the others succeed without it next time."""
        for job in jobs:
            at = retry_at(job, error)
            assert at is not None
            await self._store.jobs.fail(
                worker, job.id, error_message(job, error), now() + (at - now()) / 2, counted=False
            )

    async def _embed(self, jobs: Sequence[Job]) -> None:
        stamp = self._embedder.stamp
        item_ids = [job.item_id for job in jobs]
        while lacking := await self._store.sections.without_vectors(item_ids, stamp, IN_MEMORY):
            for batch in _batches(
                [list(group) for _, group in groupby(lacking, key=lambda found: found[0])]
            ):
                vectors = await self._embedder.documents(
                    [
                        [embedding_text(title, section) for _, title, _, section in document]
                        for document in batch
                    ]
                )
                await self._store.sections.set_vectors(
                    stamp,
                    [
                        (section_id, packed(vector))
                        for document, found in zip(batch, vectors, strict=True)
                        for (_, _, section_id, _), vector in zip(document, found, strict=True)
                    ],
                )


Document = list[tuple[str, str, int, Section]]


def _batches(documents: list[Document]) -> list[list[Document]]:
    """Group documents up to AT_ONCE sections. A longer document is cut."""
    batches: list[list[Document]] = []
    room = 0
    for document in documents:
        for start in range(0, len(document), AT_ONCE):
            part = document[start : start + AT_ONCE]
            if len(part) > room:
                batches.append([])
                room = AT_ONCE
            batches[-1].append(part)
            room -= len(part)
    return batches
