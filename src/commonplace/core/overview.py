"""What is going on in a library, for people who look after it."""

from collections.abc import Sequence

from commonplace.core.access import READ, Access
from commonplace.core.transcription import Quota
from commonplace.model import Caller, Job, JobState
from commonplace.ports import Embedder, Store
from commonplace.settings import Settings

OPEN = (JobState.QUEUED, JobState.RUNNING)
UNFINISHED = (*OPEN, JobState.FAILED)


class Overview:
    def __init__(self, store: Store, access: Access, settings: Settings, embedder: Embedder, quota: Quota) -> None:
        self._store = store
        self._access = access
        self._settings = settings
        self._embedder = embedder
        self._quota = quota

    async def unfinished(self, caller: Caller, item_ids: Sequence[str]) -> list[Job]:
        """What is still to be done for these items, or failed."""
        await self._access.admit(caller, READ, "jobs")
        return await self._store.jobs.within(caller.scope, states=UNFINISHED, item_ids=item_ids,
                                             limit=10 * len(item_ids)) if item_ids else []
