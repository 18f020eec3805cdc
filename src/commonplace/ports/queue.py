"""The rows of work that is left to do."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from commonplace.model import Item, Job, JobState, Json, Scope

COUNTED = 1_000  # open jobs; whether there are a few more says little, and counting 100,000 would slow each search down


class Jobs(Protocol):
    async def enqueue_embedding(self, stamp: str) -> int:
        """A job for every item that has sections without a vector of this stamp and no job waiting; how many."""
        ...

    async def lease(self, worker: str, kind: str, *, limit: int, seconds: int) -> list[Job]:
        """Jobs of the kind that nobody holds, held for `seconds`."""
        ...

    async def extend(self, worker: str, job_ids: Sequence[str], seconds: int) -> None: ...

    async def finish(self, worker: str, job_ids: Sequence[str]) -> None: ...

    async def fail(
        self,
        worker: str,
        job_id: str,
        error: str,
        retry_at: datetime | None,
        *,
        counted: bool = True,
    ) -> None:
        """Back to the queue at `retry_at`, or failed for good. `counted`: as one of the attempts that a job has."""
        ...

    async def note(self, worker: str, job_id: str, payload: Json) -> None:
        """What to know when it is tried again."""
        ...

    async def postpone(self, worker: str, job_id: str, until: datetime) -> None:
        """Back to the queue as if it had not been tried."""
        ...

    async def retry(self, scope: Scope, item_id: str) -> list[Job]:
        """Queue the item's failed jobs anew."""
        ...

    async def get(self, scope: Scope, job_id: str) -> Job: ...

    async def latest(self, item: Item, kind: str) -> Job | None: ...

    async def enqueue(self, jobs: Sequence[Job]) -> None: ...

    async def withdraw(self, scope: Scope, item_ids: Sequence[str], kind: str) -> int:
        """Take these items' jobs of a kind out of the queue, as long as nobody runs them; how many."""
        ...

    async def within(
        self,
        scope: Scope,
        *,
        states: Sequence[JobState],
        kinds: Sequence[str] = (),
        item_ids: Sequence[str] = (),
        limit: int,
    ) -> list[Job]:
        """Of what the scope sees, newest first; no kinds or items named: of all."""
        ...

    async def enqueue_missing(self) -> int:
        """Queue embedding for items with sections that have no vector at all, and no job that is open or has failed; how many."""
        ...

    async def waiting(self, kind: str, scope: Scope | None = None) -> tuple[int, str | None]:
        """How many items of the scope, or of all libraries, have an open job of this kind, and why one did not succeed yet.
        More than COUNTED are not counted any further."""
        ...

    async def is_open(self, scope: Scope, kind: str) -> bool:
        """Whether a job of this kind is waiting or running for something in scope."""
        ...

    async def counts(self) -> dict[str, int]: ...

    async def worked_on(self, since: datetime) -> bool:
        """Whether anybody has taken up or finished a job since then."""
        ...

    async def came(self, kind: str, since: datetime) -> bool:
        """Whether jobs of this kind were queued since then that nobody has taken up."""
        ...

    async def underway(self) -> float:
        """How many jobs' worth of the running ones is done."""
        ...

    async def prune(self, before: datetime) -> None:
        """Forget jobs done before then."""
        ...
