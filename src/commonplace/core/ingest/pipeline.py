"""The ingest pipeline: cut a text into passages, embed, summarize and tag it. In the call for short
texts, by jobs for the rest."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np

from commonplace.core.jobs.worker import (
    error_message,
    is_transient,
    retry_at,
    retry_or_fail,
    run_each,
)
from commonplace.errors import EmbeddingFailed
from commonplace.model import (
    BY_MODEL,
    EMBED,
    LINK,
    TRANSFORM,
    Annotation,
    EntityType,
    Entry,
    Item,
    Job,
    Json,
    Mark,
    Relation,
    Scope,
    Section,
    Transformed,
    new_id,
    now,
)
from commonplace.model.tags import derive_tags
from commonplace.model.workflow import searchable
from commonplace.ports import Embedder, Transformer, Vector, Vectors, Wake
from commonplace.store import Store
from commonplace.text import chunking, keyword_tags, prose
from commonplace.text.chunking import embedding_text
from commonplace.text.language import detect

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


def _with_vectors(sections: Sequence[Section], vectors: Vectors) -> list[Section]:
    return [
        replace(section, vector=packed(vector))
        for section, vector in zip(sections, vectors, strict=True)
    ]


async def embedded(store: Store, embedder: Embedder, entries: Sequence[Entry]) -> list[Entry]:
    """Embed new entries and drop their embed jobs. Known content may have vectors already. If the
    embedder is down, the jobs stay."""
    known = (
        await store.contents.existing_keys(
            entries[0].item.library_id, [entry.content.key for entry in entries]
        )
        if entries
        else set()
    )
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
        replace(
            entry,
            sections=tuple(_with_vectors(entry.sections, found)),
            jobs=tuple(job for job in entry.jobs if job.kind != EMBED),
        )
        if len(found)
        else entry
        for entry, found in zip(entries, vectors, strict=True)
    ]


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
            await self._embed(jobs)
        except Exception as error:
            return error
        await self._store.jobs.finish(worker, jobs)
        return None

    async def _postpone(self, worker: str, jobs: Sequence[Job], error: Exception) -> None:
        """Postpone jobs that were not tried on their own, for half the delay. If the one that was
        tried is the cause, the others succeed without it next time."""
        for job in jobs:
            at = retry_at(job, error)
            assert at is not None
            await self._store.jobs.fail(
                worker, job, error_message(job, error), now() + (at - now()) / 2, counted=False
            )

    async def _embed(self, jobs: Sequence[Job]) -> None:
        stamp = self._embedder.stamp
        items: dict[str, list[str]] = {}
        for job in jobs:
            if job.item_id:
                items.setdefault(job.library_id, []).append(job.item_id)
        while lacking := await self._store.sections.without_vectors(items, stamp, IN_MEMORY):
            documents = [list(group) for _, group in groupby(lacking, attrgetter("item_id"))]
            parts = [
                document[start : start + AT_ONCE]
                for document in documents
                for start in range(0, len(document), AT_ONCE)
            ]
            for batch in _batches(parts, len, AT_ONCE):
                found = await self._embedder.documents(
                    [
                        [embedding_text(lacks.title, lacks.section) for lacks in document]
                        for document in batch
                    ]
                )
                vectors: dict[str, list[tuple[int, bytes]]] = {}
                for lacks, vector in zip(chain(*batch), chain(*found), strict=True):
                    own = vectors.setdefault(lacks.library_id, [])
                    own.append((lacks.section_id, packed(vector)))
                await self._store.sections.set_vectors(stamp, vectors)


@dataclass(eq=False)
class IndexJobs:
    """Runs jobs of kind `index`: makes and drops the indexes of large libraries."""

    at_once = 1

    _store: Store
    _embedder: Embedder

    async def run(self, worker: str, jobs: Sequence[Job]) -> None:
        async def work(job: Job) -> None:
            await self._store.sections.maintain(job.library_id, self._embedder.stamp)

        await run_each(self._store, worker, jobs, work)


log = logging.getLogger(__name__)
# sections embedded in the call; longer texts are found by keyword first, vectors follow
IN_CALL = 8
BRIEF = 5_000  # characters that are cut faster than a thread could be started
SHORTEST = 60  # words of a document with a summary and automatic tags
# Fields that a new text changes.
OF_THE_TEXT = (
    "summary",
    "key_points",
    "tags",
    "auto_tags",
    "category",
    "metadata",
    "word_count",
)
SHORT = 50_000  # characters summarized within the call: about a tenth of a second


@dataclass(frozen=True, slots=True)
class Prepared:
    item: Item
    sections: tuple[Section, ...]
    jobs: tuple[Job, ...]  # the remaining work


@dataclass(eq=False)
class IngestPipeline:
    _store: Store
    _embedder: Embedder
    _transformer: Transformer
    _wake: Wake

    async def prepare(
        self,
        item: Item,
        text: str,
        marks: Sequence[Mark] = (),
        *,
        known: Sequence[Section] = (),
        auto_transform: bool = False,
        embed_up_to: int = IN_CALL,
        embed_first: int = 0,
    ) -> Prepared:
        """Cut, embed and summarize an item's text.

        `known`: the same passages with vectors, from another item. A text with more sections than
        `embed_up_to` is embedded by a job, but for its first `embed_first` sections.
        """
        if item.entity_type == EntityType.DOCUMENT and not item.text_language:
            language = await _aside(text, detect)
            about = {"language": language} if language else {}
            item = replace(item, metadata=item.metadata | about)
        text = searchable(item, text)
        sections = list(known) or await _aside(text, chunking.cut, item.title, marks)
        item = replace(item, word_count=await _aside(text, chunking.count))
        jobs: list[Job] = []
        if auto_transform or len(text) > SHORT:
            jobs.append(job_for(item, TRANSFORM, {"auto": auto_transform}))
        first = len(sections) if len(sections) <= embed_up_to else embed_first
        # In parallel: tokenizers release the interpreter lock.
        passages, made = await asyncio.gather(
            self._embedded(item.title, sections, first if item.in_kb else 0),
            self._transformed(item.title, text, sections),
        )
        if made is not None:
            item = replace(item, **described(item, made, text))
            passages = [
                replace(section, key_points=points)
                for section, points in zip(passages, made.section_points, strict=True)
            ]
        if not item.in_kb:
            return Prepared(item, (), tuple(jobs))
        if any(section.vector is None for section in passages):
            jobs.insert(0, job_for(item, EMBED))
        return Prepared(item, tuple(passages), tuple(jobs))

    async def change(
        self,
        scope: Scope,
        item: Item,
        changes: dict[str, Any],
        expected_revision: int | None,
        *,
        relations: Sequence[Relation] = (),
        dropped: Sequence[Relation] = (),
    ) -> tuple[Item, Sequence[Job]]:
        """Change an item, and return it with the jobs that are left. Its sections are cut again if
        title or notes, which search uses, have changed, or if it enters the KB. Leaving the KB
        drops them. An item without a text yet gets them with its text."""
        after = replace(item, **changes)
        made = Prepared(after, (), ())
        cut = after.in_kb and after.state == "ready" and _searched(after) != _searched(item)
        if cut:
            content = await self._store.contents.get(item.library_id, item.content_id)
            made = await self.prepare(after, content.text, content.marks)
        changed = await self._store.items.update(
            scope,
            item.id,
            changes,
            expected_revision=expected_revision,
            sections=made.sections if cut or after.in_kb < item.in_kb else None,
            stamp=self._embedder.stamp,
            jobs=made.jobs,
            relations=relations,
            dropped=dropped,
        )
        if made.jobs:
            await self._wake.signal()
        return changed, made.jobs

    async def _transformed(
        self, title: str, text: str, sections: Sequence[Section]
    ) -> Transformed | None:
        if len(text) > SHORT:
            return None
        try:
            return await self._transformer.transform(title, [section.text for section in sections])
        except Exception:
            # A summary is optional: the text is stored whatever goes wrong with it.
            log.exception("No summary could be made of %r", title)
            return None

    async def _embedded(self, title: str, sections: list[Section], first: int) -> list[Section]:
        """Embed the first sections. If the embedder is down, a job does it later."""
        if all(section.vector is not None for section in sections[:first]):
            return sections
        texts = [embedding_text(title, section) for section in sections[:first]]
        try:
            [vectors] = await within_call(self._embedder.documents([texts]))
        except EmbeddingFailed:
            return sections
        return [*_with_vectors(sections[:first], vectors), *sections[first:]]


def _searched(item: Item) -> tuple[object, ...]:
    return item.in_kb, item.title, item.metadata.get("notes")


async def _aside(text: str, work: Callable[..., T], *more: Any) -> T:
    """Run `work(text, *more)`, in a thread unless the text is brief."""
    return work(text, *more) if len(text) <= BRIEF else await asyncio.to_thread(work, text, *more)


def described(item: Item, made: Transformed, text: str) -> dict[str, Any]:
    """Return the item's fields as summarized. What people chose stays. A document gets automatic
    tags if it has no others, a category if it has none, and neither tags nor a summary if it is
    short."""
    document = item.entity_type == EntityType.DOCUMENT
    short = document and item.word_count < SHORTEST
    metadata = {name: value for name, value in item.metadata.items() if name not in BY_MODEL}
    if made.by_model:
        metadata |= {"ai_generated": True, "cost_usd": made.cost_usd}
    changes: dict[str, Any] = {"metadata": metadata}
    if not item.metadata.get("summary_given"):
        changes |= {"summary": "" if short else made.summary, "key_points": made.key_points}
    if (
        document
        and not item.metadata.get("category_given")
        and (made.by_model or item.category in ("", prose.OTHER))
    ):
        changes["category"] = made.category
    if document:
        return changes | derive_tags(item, () if short or item.own_tags else made.tags)
    if item.entity_type == EntityType.TASK:
        # Tags of its project were chosen when it was added, among those that its author sees.
        of_project = [tag for tag in item.auto_tags if tag in item.tags]
        found = keyword_tags.tags(item.title, text, item.technologies, of_project)
        changes |= derive_tags(item, found)
    return changes


def job_for(item: Item, kind: str, payload: Json | None = None) -> Job:
    return Job(
        id=new_id(), library_id=item.library_id, item_id=item.id, kind=kind, payload=payload or {}
    )


def link_job(scope: Scope, item: Item) -> Job:
    """Queue linking within the writer's scope: links to items they cannot see would use up the
    limit."""
    folders = None if scope.folders is None else sorted(scope.folders)
    return job_for(item, LINK, {"folders": folders, "kb_only": scope.kb_only})


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
        for _, group in groupby(others, library):
            await self._try(worker, list(group), self._local)
        for job in by_model:
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
        await self._store.jobs.finish(worker, jobs)

    async def _describe(self, jobs: Sequence[Job], transformer: Transformer) -> None:
        """Describe items. Items deleted while their job waited are skipped."""
        scope, item_ids = Scope(jobs[0].library_id), [job.item_id for job in jobs if job.item_id]
        items = (await self._store.items.get_many(scope, item_ids)).values()
        for batch in _batches(items, attrgetter("word_count"), WORDS):
            await self._describe_batch(scope, batch, transformer)

    async def _describe_batch(
        self, scope: Scope, batch: Sequence[Item], transformer: Transformer
    ) -> None:
        sections = await self._store.sections.of_items(batch)
        texts = await self._store.items.texts(
            [
                item
                for item in batch
                if item.id not in sections or item.entity_type == EntityType.TASK
            ]
        )
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
                    described(item, made[item.id], texts.get(item.id, "")),
                    made[item.id].section_points if item.id in sections else (),
                )
                for item in items.values()
                if item.content_id == said[item.id]
            ]
        )


def _batches(values: Iterable[T], size: Callable[[T], int], most: int) -> Iterator[list[T]]:
    """Group values up to a total size. A larger one is alone."""
    batch: list[T] = []
    for value in values:
        if batch and sum(map(size, batch)) + size(value) > most:
            yield batch
            batch = []
        batch.append(value)
    if batch:
        yield batch
