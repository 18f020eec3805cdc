"""Import many items at once: records, their relations and notes."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Sequence
from dataclasses import dataclass, replace

from commonplace.core.ingest.pipeline import embedded, job_for
from commonplace.core.ingest.sources import private_key
from commonplace.core.items.drafts import Record
from commonplace.core.people.authorization import FULL_WRITE, WRITE, Service, verb
from commonplace.errors import NotFound
from commonplace.model import (
    EMBED,
    TRANSFORM,
    Annotation,
    Caller,
    Content,
    EntityType,
    Entry,
    Outcome,
    Relation,
    digest,
    new_id,
)
from commonplace.model.workflow import searchable
from commonplace.ports import Embedder, Wake
from commonplace.text import chunking


@dataclass(eq=False)
class BulkImport(Service):
    _embedder: Embedder
    _wake: Wake

    @verb(WRITE, "import", needs=FULL_WRITE)
    async def put(self, caller: Caller, records: Sequence[Record]) -> list[Outcome]:
        """Import records in one transaction. Keyword search finds them on return, semantic
        search at the latest when the jobs have run."""
        entries = await asyncio.to_thread(
            lambda: [self._entry(caller, record) for record in records]
        )
        if self._embedder.quick:
            entries = await embedded(self._store, self._embedder, entries)
        outcomes = await self._store.items.import_entries(
            entries, scope=caller.scope, stamp=self._embedder.stamp
        )
        await self._wake.signal()
        return outcomes

    async def put_batches(
        self, caller: Caller, batches: AsyncIterable[Sequence[Record]]
    ) -> AsyncIterator[list[Outcome]]:
        """Import batches, each in a transaction. The next one is prepared while one is written."""
        ahead: asyncio.Task[list[Outcome]] | None = None
        try:
            async for batch in batches:
                before, ahead = ahead, asyncio.create_task(self.put(caller, batch))
                if before is not None:
                    yield await before
            if ahead is not None:
                yield await ahead
        finally:
            if ahead is not None:
                await asyncio.gather(ahead, return_exceptions=True)

    @verb(WRITE, "import", needs=FULL_WRITE)
    async def relate(self, caller: Caller, relations: Sequence[Relation]) -> int:
        """Add many relations, for imports, and return how many are new. Relations of missing items
        are skipped."""
        try:
            return await self._store.relations.put(caller.scope, relations)
        except NotFound as error:
            missing = set(error.data["ids"])
            return await self._store.relations.put(
                caller.scope,
                [
                    relation
                    for relation in relations
                    if not missing & {relation.from_id, relation.to_id}
                ],
            )

    @verb(WRITE, "import", needs=FULL_WRITE)
    async def mark_notes(self, caller: Caller, notes: dict[str, str]) -> None:
        """Mark items as notes on others, for imports: {note id: item id}. Missing items are
        skipped."""
        found = await self._store.items.get_many(caller.scope, {*notes, *notes.values()})
        await self._store.items.set_derived(
            [
                Annotation(found[note_id], {"annotates": item_id})
                for note_id, item_id in notes.items()
                if note_id in found and item_id in found
            ]
        )

    def _entry(self, caller: Caller, record: Record) -> Entry:
        item = replace(
            record.item,
            library_id=caller.library_id,
            word_count=chunking.count(record.text),
            created_by=caller.token_id,
            origin=record.origin or caller.origin(record.item.kind),
        )
        sections = (
            tuple(chunking.cut(searchable(item, record.text), item.title)) if item.in_kb else ()
        )
        said = digest(record.text)
        content = Content(new_id(), private_key(caller, "text", said), record.text, hash=said)
        jobs = [job_for(item, EMBED)] if sections else []
        if (
            record.describe
            and item.entity_type == EntityType.DOCUMENT
            and not item.summary
            and record.text.strip()
        ):
            jobs.append(job_for(item, TRANSFORM))
        return Entry(item, content, sections, tuple(jobs), record.once, record.dated)
