"""Disks: read, publish and save them. Owners see their items in full, others see published
views."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from commonplace.core.disks.disk_views import (
    Disk,
    DiskHit,
    DiskLine,
    Related,
    disk_hit,
    own_line,
    owner_name_shown,
    saved_line,
)
from commonplace.core.disks.publishing import Publisher
from commonplace.core.entities.neighbours import Neighbours
from commonplace.core.ingest.pipeline import unpacked
from commonplace.core.people.authorization import (
    DELETE,
    FULL_WRITE,
    READ,
    WRITE,
    Needs,
    Service,
    verb,
)
from commonplace.core.search.search import Search
from commonplace.errors import EmbeddingFailed, Invalid, NotFound, SearchFailed
from commonplace.model import (
    DISKS,
    NO_DISK,
    NOT_DISKS,
    PRIVATE,
    PUBLISHED,
    Audience,
    Caller,
    DiskFilter,
    DiskScope,
    EntityType,
    Item,
    ItemFilter,
    ItemRef,
    Mode,
    OpenDisk,
    OpenSection,
    Passage,
    Published,
    SearchResult,
)
from commonplace.ports import Embedder, Profile

EMBEDDED_CHARACTERS = 1_000
RELATED = 5
SECTIONS_OF_A_DISK = 5  # looked at for each disk that is wanted
PUBLIC_SUMMARY, LONGEST_SUMMARY = "public_summary", 2_000  # in the metadata of imported items
SAVED_COMPARED = 1_000  # the most recently saved


@dataclass(eq=False)
class Disks(Service):
    _embedder: Embedder
    _search: Search
    _neighbours: Neighbours
    _publisher: Publisher

    # -- reading

    async def search(
        self, caller: Caller, query: str, limit: int = 5
    ) -> tuple[SearchResult, list[DiskHit]]:
        """Search the caller's library by meaning."""
        found = await self._by_meaning(caller, query, limit)
        return found, await self.hits(caller, [(hit.score, hit.passage) for hit in found.hits])

    async def _by_meaning(self, caller: Caller, query: str, limit: int) -> SearchResult:
        try:
            return await self._search.search(
                caller,
                query[:EMBEDDED_CHARACTERS],
                limit=limit,
                mode=Mode.SEMANTIC,
                where=ItemFilter(not_entity_types=NOT_DISKS),
            )
        except EmbeddingFailed as error:
            raise SearchFailed(error.message) from error

    async def find(self, caller: Caller, query: str, limit: int) -> list[DiskLine]:
        """Return the caller's own disks whose sections are most like the query."""
        found = await self._by_meaning(caller, query, SECTIONS_OF_A_DISK * limit)
        best: dict[str, float] = {}
        for hit in found.hits:
            best.setdefault(hit.passage.item_id, hit.score)
        items = await self._store.items.get_many(caller.scope, [*best][:limit])
        lines = await self._own_lines(caller, [items[each] for each in best if each in items])
        return [replace(line, similarity=best[item.id]) for item, line in lines]

    async def hits(self, caller: Caller, found: Sequence[tuple[float, Passage]]) -> list[DiskHit]:
        """Turn passages of the caller's library into disk hits. The caller is authorized
        already."""
        views, gone = await self._views(
            caller, [passage.item_id for _, passage in found if passage.visibility == PUBLISHED]
        )
        return [
            disk_hit(score, passage, views.get(passage.item_id))
            for score, passage in found
            if passage.item_id not in gone
        ]

    @verb(READ, "read_disk", target="disk_id", primary=True)
    async def get(self, caller: Caller, disk_id: str) -> Disk:
        ref = ItemRef.parse(disk_id)
        try:
            return await self._owned(caller, ref)
        except NotFound:
            if not caller.whole_library:  # such tokens do not see other libraries either
                raise
            return await self._published(
                caller, await self._store.disks.find(ref, caller.library_id)
            )

    @verb(READ, "read_disks", primary=True)
    async def batch(self, caller: Caller, disk_ids: Sequence[str]) -> tuple[list[Disk], list[str]]:
        """Return the caller's own disks, and the ids that were not found."""
        disks: list[Disk] = []
        missing: list[str] = []
        for disk_id in dict.fromkeys(disk_ids):
            try:
                disks.append(await self._owned(caller, ItemRef.parse(disk_id)))
            except NotFound:
                missing.append(disk_id)
        return disks, missing

    @verb(READ, "list_disks", target="scope", primary=True)
    async def page(
        self,
        caller: Caller,
        scope: DiskScope,
        where: DiskFilter,
        *,
        limit: int = 20,
        offset: int = 0,
    ) -> tuple[list[DiskLine], int]:
        """Return a page of disks, newest first by the date they were added or saved, and the
        total."""
        owns = scope is not DiskScope.SAVED
        saves = scope in (DiskScope.ALL, DiskScope.SAVED) and caller.whole_library
        # Two lists are merged, so each is read up to the end of the page.
        start, size = (0, offset + limit) if owns and saves else (offset, limit)
        own, own_total = (
            await self._own_page(caller, scope, where, size, start) if owns else ([], 0)
        )
        saved, saved_total = (
            await self._saved_page(caller, where, size, start) if saves else ([], 0)
        )
        lines = sorted(
            [*own, *saved], key=lambda line: line.saved_at or line.created_at, reverse=True
        )
        return lines[offset - start : offset - start + limit], own_total + saved_total

    # -- publishing

    @verb(READ, "preview_disk", target="disk_id", primary=True)
    async def preview(self, caller: Caller, disk_id: str) -> Disk:
        """Show the view that others would see."""
        item = await self._own_item(caller, ItemRef.parse(disk_id))
        owner_id, owner_name = await self._store.disks.owner(item.library_id)
        return Disk(
            item.public_id,
            PUBLISHED,
            "public",
            owner_id,
            owner_name_shown(owner_name),
            None,
            item.created_at,
            await self._publisher.preview(caller, _finished(item)),
        )

    @verb(READ, primary=True)
    async def own_summary(self, caller: Caller, item: Item) -> str:
        """Return the owner's words for others: of the published view, or of an imported item."""
        if item.visibility == PUBLISHED:
            found = await self._store.disks.of_items(caller.library_id, [item.id])
            return found[item.id].own_summary if item.id in found else ""
        imported = item.metadata.get(PUBLIC_SUMMARY)
        return imported[:LONGEST_SUMMARY] if isinstance(imported, str) else ""

    @verb(WRITE, "publish_disk", target="disk_id", needs=FULL_WRITE)
    async def publish(
        self,
        caller: Caller,
        disk_id: str,
        audience: Audience = Audience.ANYONE,
        summary: str | None = None,
    ) -> Published:
        """Publish a disk, or update its view.

        `summary`: the owner's words for others. None keeps the current ones, an empty text removes
        them.
        """
        return await self._publisher.publish(
            caller,
            _finished(await self._own_item(caller, ItemRef.parse(disk_id))),
            audience,
            None if summary is None else summary.strip(),
        )

    @verb(DELETE, "unpublish_disk", target="disk_id", needs=FULL_WRITE)
    async def unpublish(self, caller: Caller, disk_id: str) -> Item:
        item = await self._own_item(caller, ItemRef.parse(disk_id))
        await self._store.disks.unpublish(caller.scope, item.id)
        return item

    async def public(self, public_id: str, caller: Caller | None) -> tuple[Published, bool]:
        """Return a published disk by its link, and whether it belongs to the caller's library."""
        if caller is not None:
            await self._access.admit(caller, Needs(READ, "read_disk"), public_id)
        published = await self._store.disks.find(
            ItemRef(public_id=public_id), caller.library_id if caller else None
        )
        if published.audience is not Audience.ANYONE and caller is None:
            raise NotFound(NO_DISK)
        return await self._publisher.current(
            published
        ), caller is not None and caller.library_id == published.library_id

    # -- saving

    @verb(WRITE, "save_disk", target="disk_id", needs=FULL_WRITE)
    async def save(self, caller: Caller, disk_id: str) -> Published:
        published = await self._store.disks.find(ItemRef.parse(disk_id), caller.library_id)
        if published.library_id == caller.library_id:
            raise Invalid(
                "This disk is in your own library. You can only save disks of other libraries."
            )
        return await self._store.disks.save(caller.library_id, caller.person_id, published)

    @verb(DELETE, "unsave_disk", target="disk_id", needs=FULL_WRITE)
    async def unsave(self, caller: Caller, disk_id: str) -> None:
        await self._store.disks.unsave(caller.library_id, ItemRef.parse(disk_id))

    # -- how

    async def _own_item(self, caller: Caller, ref: ItemRef) -> Item:
        try:
            item = await self._store.items.get(caller.scope, ref)
        except NotFound:
            raise NotFound(NO_DISK) from None
        if item.entity_type in NOT_DISKS:
            raise NotFound(NO_DISK)
        return item

    async def _owned(self, caller: Caller, ref: ItemRef) -> Disk:
        item = await self._own_item(caller, ref)
        owner_id, owner_name = await self._store.disks.owner(item.library_id)
        views, gone = await self._views(caller, [item.id] if item.visibility == PUBLISHED else [])
        if gone:
            raise NotFound(NO_DISK)
        published = views.get(item.id)
        return Disk(
            item.public_id,
            PUBLISHED if published else PRIVATE,
            "owned",
            owner_id,
            owner_name,
            None,
            item.created_at,
            published.view if published else await self._open(item),
            await self._related(caller, item.id, item.public_id),
        )

    async def _open(self, item: Item) -> OpenDisk:
        return OpenDisk(
            item.title,
            item.summary,
            item.category,
            item.tags,
            item.url,
            bool(item.metadata.get("ai_generated")),
            item.word_count,
            tuple(
                OpenSection(s.position + 1, s.word_count, s.key_points, s.text)
                for s in await self._store.sections.of_item(item)
            ),
            await self._store.items.text(item),
        )

    async def _published(self, caller: Caller, published: Published) -> Disk:
        """Show a published view, of any library. A token's scope applies to its own library too."""
        published = await self._publisher.current(published)
        vector = await self._store.disks.view_vector(published, self._embedder.stamp)
        return Disk(
            published.public_id,
            PUBLISHED,
            "saved" if published.saved_at else "public",
            published.owner_id,
            owner_name_shown(published.owner_name),
            published.saved_at,
            published.created_at,
            published.view,
            await self._related(
                caller, _view_profile(published.public_id, "", vector), published.public_id
            )
            if vector
            else (),
        )

    async def _views(
        self, caller: Caller, item_ids: Sequence[str]
    ) -> tuple[dict[str, Published], set[str]]:
        """Return the current views of published items, and the ids of items deleted meanwhile."""
        found = (
            await self._store.disks.of_items(caller.library_id, sorted(set(item_ids)))
            if item_ids
            else {}
        )
        views = {published.item_id: published for published in await self._current(found.values())}
        return views, found.keys() - views.keys()

    async def _current(self, found: Iterable[Published]) -> list[Published]:
        """Bring views up to date, leaving out disks that were deleted meanwhile."""
        current = []
        for published in found:
            with suppress(NotFound):
                current.append(await self._publisher.current(published))
        return current

    async def _own_page(
        self, caller: Caller, scope: DiskScope, where: DiskFilter, limit: int, offset: int
    ) -> tuple[list[DiskLine], int]:
        # Wanted types instead of unwanted ones: the index then counts in ranges.
        wanted = ItemFilter(
            archived=False,
            entity_types=DISKS,
            category=where.category,
            tag=where.tag,
            text=where.text,
            visibility=scope.value if scope in (DiskScope.PRIVATE, DiskScope.PUBLISHED) else None,
        )
        items, total = await self._store.items.list_page(
            caller.scope, wanted, limit=limit, offset=offset
        )
        return [line for _, line in await self._own_lines(caller, items)], total

    async def _own_lines(
        self, caller: Caller, items: Sequence[Item]
    ) -> list[tuple[Item, DiskLine]]:
        owner = await self._store.disks.owner(caller.library_id)
        views, gone = await self._views(
            caller, [item.id for item in items if item.visibility == PUBLISHED]
        )
        return [
            (item, own_line(item, owner, views.get(item.id)))
            for item in items
            if item.id not in gone
        ]

    async def _saved_page(
        self, caller: Caller, where: DiskFilter, limit: int, offset: int
    ) -> tuple[list[DiskLine], int]:
        await self._current(await self._store.disks.list_stale(caller.library_id))
        found, total = await self._store.disks.list_saved(
            caller.library_id, where, limit=limit, offset=offset
        )
        return [saved_line(published) for published in await self._current(found)], total

    async def _related(
        self, caller: Caller, disk: Profile | str, public_id: str
    ) -> tuple[Related, ...]:
        """Find the most closely related disks that the caller sees: own items, and saved disks by
        their published views. Wrong and superseded items are left out."""
        saved = (
            await self._store.disks.saved_vectors(
                caller.library_id, self._embedder.stamp, SAVED_COMPARED
            )
            if caller.whole_library
            else []
        )
        others = [_view_profile(*one) for one in saved if one[0] != public_id]
        near = (
            await self._neighbours.of_item(caller.scope, disk, others)
            if isinstance(disk, str)
            else await self._neighbours.around(caller.scope, disk, others)
        )
        if near is None:
            return ()
        return tuple(
            Related(near.items[place].public_id, near.items[place].title, near.weight(place))
            for place in near.best(
                0,
                [
                    place
                    for place, one in enumerate(near.items)
                    if one.entity_type in DISKS and one.public_id != public_id
                ],
                RELATED,
            )
        )


def _finished(item: Item) -> Item:
    if item.ingest_status is not None:
        raise Invalid("The item has not been read yet. Publish it when its `status` is ready.")
    if item.transcription_status not in (None, "done"):
        raise Invalid(
            "The recording is still being transcribed. Publish it when `transcription_status` is "
            "done."
        )
    return item


def _view_profile(public_id: str, title: str, packed: bytes) -> Profile:
    """Return the profile of a published view, of which only one vector is known."""
    vector = unpacked(packed)
    return Profile(
        public_id, public_id, title, EntityType.DOCUMENT, vector, vector, np.empty(0, np.uint32)
    )
