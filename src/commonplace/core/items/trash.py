"""The trash: deleted items until they are restored or expire."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from commonplace.core.ingest.pipeline import job_for
from commonplace.core.items.epic_status import Epics
from commonplace.core.people.authorization import (
    DELETE,
    FULL_WRITE,
    READ,
    WRITE,
    Needs,
    Service,
    verb,
)
from commonplace.model import EMBED, Caller, Item, ItemRef, Trashed, now
from commonplace.ports import Embedder, Wake
from commonplace.settings import Settings

PERMANENT = Needs(DELETE, "delete", FULL_WRITE)


@dataclass(eq=False)
class Trash(Service):
    _embedder: Embedder
    _wake: Wake
    _epics: Epics
    _settings: Settings

    @verb(READ, "list_trash")
    async def page(
        self, caller: Caller, *, limit: int = 100, offset: int = 0
    ) -> tuple[list[Trashed], int]:
        """Return what was in the caller's scope when it was deleted, newest first, and the
        total."""
        return await self._store.trash.list_page(
            caller.scope, self._since, limit=limit, offset=offset
        )

    @verb(WRITE, "restore_item", target="item_id")
    async def restore(self, caller: Caller, item_id: str) -> Item:
        """Restore an item with its notes, relations, versions, capture and the folders that still
        exist. A disk is not published again."""
        return await self.put_back(caller, ItemRef.parse(item_id))

    async def put_back(self, caller: Caller, ref: ItemRef) -> Item:
        """Restore an item. The caller is authorized already."""
        item = await self._store.items.restore(caller.scope, ref, self._since)
        if item.in_kb and await self._store.sections.without_vectors(
            {item.library_id: [item.id]}, self._embedder.stamp, 1
        ):  # another embedder is in use by now
            await self._store.jobs.enqueue([job_for(item, EMBED)])
        await self._wake.signal()  # for jobs that were open
        await self._epics.follow(caller.scope, await self._epics.of(item))
        return item

    @verb(DELETE, "delete_trashed_item", target="item_id", needs=FULL_WRITE)
    async def delete(self, caller: Caller, item_id: str) -> None:
        """Delete an item in the trash for good."""
        await self._store.trash.delete(caller.scope, ItemRef.parse(item_id), self._since)

    @verb(DELETE, "empty_trash", needs=FULL_WRITE)
    async def empty(self, caller: Caller) -> int:
        """Delete all that is in the trash for good, and return how many items that were."""
        deleted = 0
        while some := await self._store.trash.delete_some(caller.library_id):
            deleted += some
        return deleted

    @property
    def _since(self) -> datetime:
        return now() - timedelta(days=self._settings.trash_days)
