"""The health and activity of a library, for the people who run it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from commonplace.core.ingest.transcription import Quota
from commonplace.core.people.authorization import FULL_SCOPE, FULL_WRITE, READ, Service, verb
from commonplace.core.search.search import incomplete
from commonplace.model import (
    ACTIVE,
    EMBED,
    NOT_DISKS,
    TO_READ,
    Caller,
    Folder,
    FolderImpact,
    ItemFilter,
    Job,
    JobState,
    Json,
    Usage,
    Webhook,
    now,
)
from commonplace.ports import Embedder
from commonplace.settings import Settings
from commonplace.store.statistics import Totals

OPEN = (JobState.QUEUED, JobState.RUNNING)
UNFINISHED = (*OPEN, JobState.FAILED)
DAYS = 60
LISTED = 50


@dataclass(frozen=True, slots=True)
class ItemCounts:
    """How many items a caller sees. Their sum is the total."""

    by_type: dict[str, int]  # without notes and what is archived
    notes: int
    archived: int

    @property
    def work(self) -> int:
        return sum(self.by_type.get(kind, 0) for kind in NOT_DISKS)

    @property
    def to_read(self) -> int:
        """What lists, folders and the map count as items."""
        return sum(self.by_type.values()) - self.work


@dataclass(frozen=True, slots=True)
class Report:
    totals: Totals
    items: ItemCounts
    indexed: tuple[int, int]  # sections with a vector of the current embedder, and in total
    stale: bool  # whether vectors of another embedder exist
    incomplete: str | None  # a sentence on items without vectors
    embedder: str
    engine: Json
    bytes: int  # of the whole database
    originals: int  # bytes of the files and pages that the library's items were made of
    keeps_originals: bool
    open: tuple[tuple[Job, str], ...]  # jobs with the titles of their items
    failed: tuple[tuple[Job, str], ...]
    usage: tuple[Usage, Usage]  # of the library, and its quota
    minutes: tuple[float, int]  # of transcription this month, and the limit; 0: none
    added: dict[str, int]  # items to read, by day, without gaps
    calls: dict[str, int]
    folders: tuple[Folder, ...]  # the fullest first
    webhooks: tuple[Webhook, ...]  # whose last attempt failed


@dataclass(eq=False)
class Overview(Service):
    _settings: Settings
    _embedder: Embedder
    _quota: Quota

    @verb(READ, "jobs")
    async def unfinished(self, caller: Caller, item_ids: Sequence[str]) -> list[Job]:
        """Return open and failed jobs of these items."""
        return (
            await self._store.jobs.list_jobs(
                caller.scope, states=UNFINISHED, item_ids=item_ids, limit=10 * len(item_ids)
            )
            if item_ids
            else []
        )

    @verb(READ, "stats")
    async def totals(self, caller: Caller) -> Totals:
        return await self._store.figures.totals(caller.scope)

    @verb(READ, "health")
    async def incomplete(self, caller: Caller) -> str | None:
        """Say how many items wait for vectors; None if none do."""
        return incomplete(*await self._store.jobs.count_open(EMBED, caller.scope))

    @verb(READ, needs=FULL_SCOPE)
    async def report(self, caller: Caller) -> Report:
        await self._access.flush()
        store, scope, since = self._store, caller.scope, now() - timedelta(days=DAYS - 1)
        waiting, failed = [
            await self._named(
                caller, await store.jobs.list_jobs(scope, states=states, limit=LISTED)
            )
            for states in (OPEN, (JobState.FAILED,))
        ]
        folders = sorted(
            await store.folders.list_folders(scope, TO_READ), key=lambda folder: -folder.item_count
        )
        return Report(
            await store.figures.totals(scope),
            ItemCounts(
                await store.figures.count_types(scope, replace(ACTIVE, notes=False)),
                *[
                    sum((await store.figures.count_types(scope, where)).values())
                    for where in (replace(ACTIVE, notes=True), ItemFilter(archived=True))
                ],
            ),
            await store.sections.coverage(scope, self._embedder.stamp),
            await store.sections.has_other_stamp(self._embedder.stamp, scope),
            incomplete(*await store.jobs.count_open(EMBED, scope)),
            self._embedder.stamp,
            await store.describe(),
            await store.figures.size(),
            await store.uploads.kept_bytes(caller.library_id)
            + await store.source_files.kept_bytes(caller.library_id),
            self._settings.keep_originals,
            waiting,
            failed,
            await store.figures.usage(caller.library_id),
            await self._quota.used(caller),
            _filled(await store.figures.added_by_day(scope, since, TO_READ)),
            _filled(await store.figures.calls_by_day(caller.library_id, since)),
            tuple(folders),
            tuple(
                each for each in await store.webhooks.of_library(caller.library_id) if each.error
            ),
        )

    @verb(READ, "folder", target="folder_id", needs=FULL_WRITE)
    async def folder_impact(self, caller: Caller, folder_id: str) -> FolderImpact:
        """Summarize the effects of deleting a folder."""
        return await self._store.folders.folder_impact(caller.scope, folder_id)

    async def _named(self, caller: Caller, jobs: Sequence[Job]) -> tuple[tuple[Job, str], ...]:
        """Pair jobs with the titles of their items, skipping deleted ones."""
        items = await self._store.items.get_many(
            caller.scope, {job.item_id for job in jobs if job.item_id}
        )
        return tuple((job, items[job.item_id].title) for job in jobs if job.item_id in items)


def _filled(counts: dict[str, int]) -> dict[str, int]:
    """Fill in zeros for days without a value."""
    days = [(now() - timedelta(days=ago)).date().isoformat() for ago in range(DAYS - 1, -1, -1)]
    return {day: counts.get(day, 0) for day in days}
