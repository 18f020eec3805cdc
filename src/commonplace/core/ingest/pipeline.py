"""The ingest pipeline: cut a text into passages, embed, summarize and tag it."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from commonplace.core.ingest.embedding import with_vectors, within_call
from commonplace.errors import EmbeddingFailed
from commonplace.model import (
    BY_MODEL,
    EMBED,
    TRANSFORM,
    Item,
    Job,
    Json,
    Mark,
    Relation,
    Scope,
    Section,
    Transformed,
    new_id,
)
from commonplace.model.workflow import searchable
from commonplace.ports import Embedder, Transformer, Wake
from commonplace.store import Store
from commonplace.text import chunking

log = logging.getLogger(__name__)
T = TypeVar("T")
# sections embedded in the call; longer texts are found by keyword first, vectors follow
IN_CALL = 8
BRIEF = 5_000  # characters that are cut faster than a thread could be started
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
            item = replace(item, **described(item, made))
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
            content = await self._store.contents.get(item.content_id)
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
        try:
            return [
                *await within_call(with_vectors(self._embedder, title, sections[:first])),
                *sections[first:],
            ]
        except EmbeddingFailed:
            return sections


def _searched(item: Item) -> tuple[object, ...]:
    return item.in_kb, item.title, item.metadata.get("notes")


async def _aside(text: str, work: Callable[..., T], *more: Any) -> T:
    """Run `work(text, *more)`, in a thread unless the text is brief."""
    return work(text, *more) if len(text) <= BRIEF else await asyncio.to_thread(work, text, *more)


def described(item: Item, made: Transformed) -> dict[str, Any]:
    """Return the item's fields as summarized. Tags and a category chosen by people stay."""
    changes: dict[str, Any] = {"summary": made.summary, "key_points": made.key_points}
    if not item.metadata.get("category_given"):
        changes["category"] = made.category
    given = bool(item.tags) and not item.metadata.get("tags_derived")
    metadata = {name: value for name, value in item.metadata.items() if name not in BY_MODEL}
    if not given:
        changes["tags"] = made.tags
        metadata["tags_derived"] = True
    if made.by_model:
        metadata |= {"ai_generated": True, "cost_usd": made.cost_usd}
    return changes | {"metadata": metadata}


def job_for(item: Item, kind: str, payload: Json | None = None) -> Job:
    return Job(
        id=new_id(), library_id=item.library_id, item_id=item.id, kind=kind, payload=payload or {}
    )
