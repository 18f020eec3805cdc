"""Imports of files that are sent in the browser: kept, and read by a job that writes the report."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path, PurePath

from commonplace.core.jobs.worker import run_each
from commonplace.core.people.authorization import FULL_WRITE, READ, WRITE, Access, Service, verb
from commonplace.core.transfer.markdown_folder import ImportResult
from commonplace.core.transfer.program_import import ProgramImport
from commonplace.errors import IngestFailed, Invalid, NotFound, PayloadTooLarge
from commonplace.model import IMPORT, Caller, Job, Json, Upload, new_id, now
from commonplace.ports import Blobs, Wake
from commonplace.settings import Settings
from commonplace.store import Store

_KEPT = timedelta(days=7)  # for files that wait
_SHOWN = 20  # imports on the page
_NAMED = 200  # lines of a report
_TELL_SECONDS = 1.0  # between two reports of progress


@dataclass(eq=False)
class Imports(Service):
    _blobs: Blobs
    _wake: Wake
    _settings: Settings

    @verb(WRITE, "import", needs=FULL_WRITE)
    async def submit(self, caller: Caller, file: Path, name: str, dry_run: bool) -> Job:
        """Keep an export file, and queue its import. Nothing is lost once this returns."""
        size = (await asyncio.to_thread(file.stat)).st_size
        if not size:
            raise Invalid("The file is empty.")
        if size > self._settings.upload_max_mb * 1_000_000:
            raise PayloadTooLarge(
                f"The file has {size:,} bytes; this server accepts up to "
                f"{self._settings.upload_max_mb:,} MB."
            )
        name = PurePath(name.replace("\\", "/")).name[-200:] or "file"
        upload = Upload(
            new_id(),
            caller.library_id,
            caller.queue,
            name,
            "application/octet-stream",
            size,
            now() + _KEPT,
        )
        await self._store.uploads.create(upload)
        await self._blobs.put(upload.key, file)
        payload = {"upload": upload.id, "person": caller.person_id, "name": name, "dry": dry_run}
        job = Job(new_id(), caller.library_id, None, IMPORT, payload=payload)
        await self._store.jobs.enqueue([job])
        await self._wake.signal()
        return job

    @verb(READ, "imports")
    async def recent(self, caller: Caller) -> Sequence[Job]:
        """Return the caller's own imports of the last days, newest first."""
        if not caller.whole_library:
            return ()
        jobs = await self._store.jobs.of_library(caller.library_id, IMPORT, _SHOWN)
        return [job for job in jobs if job.payload.get("person") == caller.person_id]


@dataclass(eq=False)
class ImportJobs:
    """Runs jobs of kind `import`. Running one twice is harmless: an import can be repeated."""

    at_once = 1

    _store: Store
    _access: Access
    _blobs: Blobs
    _imports: ProgramImport

    async def run(self, worker: str, jobs: Sequence[Job]) -> None:
        await run_each(
            self._store, worker, jobs, lambda job: self._import(worker, job), known_errors=1
        )

    async def _import(self, worker: str, job: Job) -> None:
        asked = job.payload
        caller = await self._access.deputy(job.library_id, asked["person"], None)
        try:
            upload = await self._store.uploads.get(asked["upload"])
        except NotFound:
            raise IngestFailed("The file no longer exists. Send it again.") from None
        share = 0.0

        def advance(done: int, total: int) -> None:
            nonlocal share
            share = min(done / total, 1.0) if total else 0.0

        async def tell() -> None:
            while True:
                await asyncio.sleep(_TELL_SECONDS)
                await self._store.jobs.set_progress(worker, job, share)

        telling = asyncio.create_task(tell())
        try:
            async with self._blobs.file(upload.key) as file:
                result = await self._imports.run(
                    caller, file, advance, name=asked["name"], dry_run=asked["dry"]
                )
        finally:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)
        await self._store.jobs.set_payload(worker, job, asked | {"report": _report(result)})
        with suppress(NotFound):
            await self._blobs.delete(upload.key)
            await self._store.uploads.delete([upload])


def _report(result: ImportResult) -> Json:
    told = asdict(result)
    return {
        name: list(value[:_NAMED]) if isinstance(value, tuple) else value
        for name, value in told.items()
    }
