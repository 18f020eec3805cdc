"""Published views: derived when an item is published, and again after it has changed."""

import asyncio
import logging
from dataclasses import dataclass, field, replace

from commonplace.core.disks.redaction import redacted, refuse_quotations
from commonplace.core.ingest.pipeline import packed
from commonplace.core.ingest.sources import KeyedLock
from commonplace.errors import EmbeddingFailed, NotFound
from commonplace.model import (
    NO_DISK,
    Audience,
    Caller,
    Item,
    ItemRef,
    Published,
    RedactedDisk,
    Scope,
)
from commonplace.ports import Embedder
from commonplace.store import Store
from commonplace.text import chunking, prose

log = logging.getLogger(__name__)


@dataclass(eq=False)
class Publisher:
    _store: Store
    _embedder: Embedder
    # deriving takes seconds for a long text, so each caller does one at a time
    _turns: KeyedLock = field(default_factory=KeyedLock)

    async def preview(self, caller: Caller, item: Item) -> RedactedDisk:
        """Return the view that others would see. It is derived once per revision and cached."""
        if published := await self._published(item):
            return (await self.current(published)).view
        if view := await self._store.disks.preview(item):
            return view
        async with self._turns.take(caller.queue):
            view = await self._store.disks.preview(item)
            if view is None:
                view = await self.derive(item)
                await self._store.disks.save_preview(caller.scope, item, view)
        return view

    async def publish(
        self, caller: Caller, item: Item, audience: Audience, summary: str | None
    ) -> Published:
        """Publish an item, or update its view. `summary`: the owner's words; None keeps the current
        ones."""
        before = await self._published(item)
        async with self._turns.take(caller.queue):
            if summary:
                await asyncio.to_thread(
                    refuse_quotations, await self._store.items.text(item), summary
                )
            elif summary is None:
                summary = before.own_summary if before else ""
            kept = None if before or summary else await self._store.disks.preview(item)
            published = await self._store.disks.publish(
                caller.scope, item, audience, kept or await self.derive(item, summary), summary
            )
        await self._embed(published)
        return await self.current(published)

    async def _published(self, item: Item) -> Published | None:
        return (await self._store.disks.of_items(item.library_id, [item.id])).get(item.id)

    async def derive(self, item: Item, summary: str = "") -> RedactedDisk:
        text = await self._store.items.text(item)
        sections = await self._store.sections.of_item(item) or await asyncio.to_thread(
            chunking.cut, text, item.title
        )
        terms = await asyncio.to_thread(prose.recurring, text)
        return await asyncio.to_thread(redacted, item, text, sections, terms, summary)

    async def current(self, published: Published) -> Published:
        """Return the view of the current revision. A view of an older one is never shown."""
        if not published.stale:
            return published
        async with self._turns.take(published.item_id):
            try:
                item = await self._store.items.get(
                    Scope(published.library_id), ItemRef(id=published.item_id)
                )
                if (
                    again := await self._published(item)
                ) and not again.stale:  # derived while this one waited
                    return replace(again, saved_at=published.saved_at)
                view = await self.derive(item, published.own_summary)
            except NotFound:
                raise NotFound(NO_DISK) from None
            await self._store.disks.set_view(published, view)
        fresh = replace(published, view=view, stale=False)
        await self._embed(fresh)
        return fresh

    async def _embed(self, published: Published) -> None:
        """Embed the published view. A vector of the source would let readers guess at its text."""
        view = published.view
        try:
            vector = await self._embedder.query(
                f"{view.title}. {view.summary or _points(view)} {', '.join(view.tags)}"[:1_000]
            )
        except EmbeddingFailed as error:
            log.warning(
                "The view of %s could not be embedded: %s", published.public_id, error.message
            )
            return
        await self._store.disks.set_vector(published, self._embedder.stamp, packed(vector))


def _points(view: RedactedDisk) -> str:
    points = (point for section in view.sections for point in section.key_points)
    return ", ".join(dict.fromkeys(points))[:700]
