"""Delayed deletion with undo: a stored job that waits, so that a closed browser or a restart does
not lose it. Undo removes the job."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from commonplace.core.items.epic_status import Epics
from commonplace.core.jobs.worker import run_each
from commonplace.core.people.authorization import (
    DELETE,
    FULL_WRITE,
    READ,
    WRITE,
    Needs,
    Service,
    verb,
)
from commonplace.model import REMOVE, Caller, ItemRef, Job, JobState, Scope, new_id, now
from commonplace.store import Store

GRACE = timedelta(seconds=15)
MOST = 1000


@dataclass(eq=False)
class DelayedDeletes(Service):
    async def schedule(self, caller: Caller, item_ids: Sequence[str]) -> list[Job]:
        """Schedule the deletion of all these items, or of none."""
        needs, items = Needs(DELETE, "delete", FULL_WRITE), []
        for item_id in item_ids:
            # one use for each; the job has no scope, so it is checked here
            await self._access.admit(caller, needs, item_id)
            items.append(await self._store.items.get(caller.scope, ItemRef.parse(item_id)))
        going = {job.item_id for job in await self._pending(caller)}
        jobs = [
            Job(new_id(), item.library_id, item.id, REMOVE, run_after=now() + GRACE)
            for item in items
            if item.id not in going
        ]
        await self._store.jobs.enqueue(jobs)
        return jobs

    @verb(WRITE, "undo_delete")
    async def undo(self, caller: Caller, item_ids: Sequence[str]) -> int:
        """Cancel pending deletions, and return how many were cancelled."""
        return await self._store.jobs.withdraw(caller.scope, item_ids, REMOVE)

    @verb(READ, "list")
    async def pending(self, caller: Caller) -> list[Job]:
        return await self._pending(caller)

    async def _pending(self, caller: Caller) -> list[Job]:
        return await self._store.jobs.list_jobs(
            caller.scope, states=[JobState.QUEUED], kinds=[REMOVE], limit=MOST
        )


@dataclass(eq=False)
class RemoveJobs:
    at_once = 50

    _store: Store
    _epics: Epics

    async def run(self, worker: str, jobs: Sequence[Job]) -> None:
        await run_each(self._store, worker, jobs, self._delete)

    async def _delete(self, job: Job) -> None:
        scope = Scope(job.library_id)
        await self._epics.delete(scope, await self._store.items.get(scope, ItemRef(id=job.item_id)))
