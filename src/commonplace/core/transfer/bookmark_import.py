"""Import exports of other programs. Known items are skipped, so that an import can be repeated."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from commonplace.core.items.bulk_import import BulkImport
from commonplace.core.items.drafts import Draft, Record
from commonplace.core.items.folders import FolderIds, Folders
from commonplace.core.items.library import Library
from commonplace.core.transfer import bookmark_formats
from commonplace.core.transfer.bookmark_formats import Saved
from commonplace.core.transfer.markdown_folder import ImportResult
from commonplace.errors import SOURCE_ERRORS
from commonplace.model import (
    Advance,
    Caller,
    EntityType,
    Item,
    Outcome,
    new_public_id,
    now,
)

AT_ONCE = 4  # URLs fetched at a time
NOTES = 100  # per transaction


async def import_file(
    library: Library,
    bulk_import: BulkImport,
    folders: Folders,
    caller: Caller,
    file: Path,
    advance: Advance,
) -> ImportResult:
    """Import a file. URLs are fetched like single adds; those that fail are reported at the end."""
    found = await asyncio.to_thread(bookmark_formats.read, file)
    ids = FolderIds(folders, caller)
    by_name = {
        name: await ids.find(name)
        for name in sorted({each.folder for each in found if each.folder})
    }
    importer = _Importer(library, bulk_import, folders, caller, by_name, advance, len(found))
    importer.failed += [(each.title, each.lost) for each in found if each.lost]
    await importer.notes([each for each in found if each.url is None and not each.lost])
    await importer.addresses([each for each in found if each.url is not None])
    return ImportResult(importer.outcomes, ids.created, tuple(importer.failed))


class _Importer:
    def __init__(
        self,
        library: Library,
        bulk_import: BulkImport,
        folders: Folders,
        caller: Caller,
        folder_ids: dict[str, str],
        advance: Advance,
        total: int,
    ) -> None:
        self._library, self._bulk_import = library, bulk_import
        self._caller = caller
        self._folders = folders
        self._folder_ids = folder_ids
        self._advance = advance
        self._total = total
        self.outcomes = dict.fromkeys(Outcome, 0)
        self.failed: list[tuple[str, str]] = []

    async def notes(self, found: Sequence[Saved]) -> None:
        numbers = _numbers(found)
        for start in range(0, len(found), NOTES):
            for outcome in await self._bulk_import.put(
                self._caller,
                [
                    self._record(each, numbers[start + n])
                    for n, each in enumerate(found[start : start + NOTES])
                ],
            ):
                self._count(outcome)

    async def addresses(self, found: Sequence[Saved]) -> None:
        waiting = iter(found)

        async def work() -> None:
            for each in waiting:
                await self._add(each)

        workers = [asyncio.create_task(work()) for _ in range(AT_ONCE)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def _add(self, each: Saved) -> None:
        try:
            added = await self._library.add(
                self._caller, Draft("url", url=each.url, tags=each.tags, created_at=each.at)
            )
            new = [folder for folder in self._filed_in(each) if folder not in added.item.folders]
            if new and self._caller.single_folder is None:
                await self._folders.file(self._caller, added.item.id, new)
        except SOURCE_ERRORS as error:
            self.failed.append((each.url or each.title, error.message))
            self._advance(self._done(), self._total)
            return
        self._count(
            Outcome.ADDED if added.created else Outcome.CHANGED if new else Outcome.UNCHANGED
        )

    def _filed_in(self, each: Saved) -> tuple[str, ...]:
        return (self._folder_ids[each.folder],) if each.folder else ()

    def _record(self, each: Saved, number: int) -> Record:
        # The same note of the same program is the same item, also after it has grown.
        library_id, at = self._caller.library_id, each.at or now()
        item_id = str(
            uuid5(
                NAMESPACE_URL,
                f"{library_id}:note:{each.title}:{each.at or each.text}{number or ''}",
            )
        )
        return Record(
            Item(
                id=item_id,
                library_id=library_id,
                public_id=new_public_id(),
                content_id="",
                entity_type=EntityType.DOCUMENT,
                kind="text",
                title=each.title[:500],
                tags=each.tags,
                created_at=at,
                updated_at=at,
                folders=self._filed_in(each),
            ),
            each.text,
            dated=each.at is not None,
        )

    def _count(self, outcome: Outcome) -> None:
        self.outcomes[outcome] += 1
        self._advance(self._done(), self._total)

    def _done(self) -> int:
        return sum(self.outcomes.values()) + len(self.failed)


def _numbers(found: Sequence[Saved]) -> list[int]:
    """Number the notes that share title and date but differ in text."""
    texts: dict[tuple[str, datetime | None], list[str]] = {}
    numbers = []
    for each in found:
        known = texts.setdefault((each.title, each.at), [])
        if each.text not in known:
            known.append(each.text)
        numbers.append(known.index(each.text) if each.at else 0)
    return numbers
