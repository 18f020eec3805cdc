"""Writes checkpoints in the background: once a minute, and when the store is closed."""

import asyncio
import logging
from contextlib import suppress

from commonplace.database import Database
from commonplace.search_index.checkpoint import Checkpoints
from commonplace.search_index.in_memory import InMemoryIndex
from commonplace.search_index.library_index import LibraryIndex

SECONDS, TIDY_SECONDS = 60.0, 3_600.0

log = logging.getLogger(__name__)


class CheckpointWriter:
    def __init__(self, db: Database, index: InMemoryIndex, checkpoints: Checkpoints) -> None:
        self._db, self._index, self._checkpoints = db, index, checkpoints
        self._stopping = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._running = asyncio.create_task(self._run())

    async def stop(self) -> None:
        self._stopping.set()
        if self._running:
            await self._running

    async def _run(self) -> None:
        tidied = -TIDY_SECONDS
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), SECONDS)
            stopping, now = self._stopping.is_set(), asyncio.get_running_loop().time()
            try:
                for library in self._index.libraries():
                    await self._keep(library, stopping)
                if not stopping and now - tidied >= TIDY_SECONDS:
                    await self._db.read(self._checkpoints.tidy)
                    tidied = now
            except Exception as error:
                # The next start is slower, nothing else: no call may fail because of this.
                log.warning("The search index could not be saved: %s", error)
            if stopping:
                return

    async def _keep(self, library: LibraryIndex, stopping: bool) -> None:
        if not self._checkpoints.wanted(library.count):
            return
        await self._db.read(library.snapshot, None)  # with the changes of other processes
        state = await asyncio.to_thread(library.checkpoint_state, stopping)
        draft = await asyncio.to_thread(self._checkpoints.write, state) if state else None
        if draft is None:
            return
        try:
            await self._db.write(self._checkpoints.register, draft)
            self._checkpoints.publish(draft)
        finally:
            self._checkpoints.drop(draft)
