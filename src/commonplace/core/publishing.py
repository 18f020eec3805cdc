"""Views for others: derived when an item is published, and again when it has changed since."""

import asyncio
import logging
from dataclasses import replace

from commonplace.core import sectioning
from commonplace.core.embedding import packed
from commonplace.core.redaction import Outline, redacted
from commonplace.errors import EmbeddingFailed, NotFound
from commonplace.model import NO_DISK, Item, ItemRef, Published, RedactedDisk, Scope
from commonplace.ports import Embedder, Store, Transformer

log = logging.getLogger(__name__)


class Publisher:
    def __init__(self, store: Store, embedder: Embedder, transformer: Transformer) -> None:
        self._store = store
        self._embedder = embedder
        self._transformer = transformer     # the local one: what it finds stays on this machine

    async def derive(self, item: Item) -> RedactedDisk:
        text = await self._store.items.text(item)
        sections = await self._store.sections.of_item(item) or await asyncio.to_thread(sectioning.cut, text, item.title)
        whole = await self._transformer.transform(item.title, [section.text for section in sections])
        each = [(await self._transformer.transform("", [section.text])).tags for section in sections]
        return await asyncio.to_thread(redacted, item, text, sections, Outline(whole.tags, tuple(each)))

    async def current(self, published: Published) -> Published:
        """Up to date: a view of what the item was before is never shown."""
        if not published.stale:
            return published
        try:
            item = await self._store.items.get(Scope(published.library_id), ItemRef(id=published.item_id))
            view = await self.derive(item)
        except NotFound:
            raise NotFound(NO_DISK) from None
        await self._store.disks.derived(published, view)
        fresh = replace(published, view=view, stale=False)
        await self.embed(fresh)
        return fresh

    async def embed(self, published: Published) -> None:
        """A vector of what others may see: one of the source would let them guess at it. Without one, nothing is related."""
        view = published.view
        try:
            vector = await self._embedder.query(f"{view.title}. {view.summary} {', '.join(view.tags)}"[:1_000])
        except EmbeddingFailed as error:
            log.warning("No vector could be made of the view of %s: %s", published.public_id, error.message)
            return
        await self._store.disks.set_vector(published, self._embedder.stamp, packed(vector))
