"""Transcription by jobs. However many people add a recording, it is fetched and transcribed
once."""

import asyncio
import hmac
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from commonplace.core.ingest.pipeline import OF_THE_TEXT, IngestPipeline
from commonplace.core.ingest.sources import metadata_of
from commonplace.core.jobs.worker import (
    LEASE_SECONDS,
    error_message,
    is_transient,
    renewing_lease,
    retry_at,
    run_each,
)
from commonplace.errors import IngestFailed, Invalid, NotFound, QuotaExceeded, Unauthorized
from commonplace.model import (
    MEGABYTE,
    Annotation,
    Begun,
    Caller,
    Chapter,
    Content,
    Item,
    ItemRef,
    Job,
    Json,
    Scope,
    now,
    segments,
)
from commonplace.ports import Blobs, Fetcher, Transcriber, Videos, Wake
from commonplace.settings import Settings
from commonplace.store import Store
from commonplace.store.optimistic import retry_on_conflict
from commonplace.text.speech import TRANSCRIPT, introduced, join_speech

ATTEMPTS = 5
WAIT_SECONDS = 30  # between checks whether another job has transcribed the recording
PROGRESS_SECONDS = 1.0  # between two progress reports


@dataclass(eq=False)
class Quota:
    """Minutes of transcription per person and month."""

    _store: Store
    _settings: Settings

    async def check(self, library_id: str, person_id: str, seconds: float) -> None:
        """Raise QuotaExceeded if too little is left for this many seconds. 0: the duration is
        unknown."""
        if not self._settings.transcription_minutes:
            return
        left = self._settings.transcription_minutes * 60 - await self._store.quotas.used_seconds(
            library_id, person_id, _month()
        )
        if left <= 0 or left < seconds:
            raise self._exceeded()

    async def used(self, caller: Caller) -> tuple[float, int]:
        """Return the minutes used this month, and the limit; 0: no limit."""
        return await self._store.quotas.used_seconds(
            caller.library_id, caller.person_id, _month()
        ) / 60, self._settings.transcription_minutes

    async def reserve(self, job: Job, seconds: float) -> None:
        if not await self._store.quotas.reserve(
            job, job.payload["person"], _month(), seconds, self._settings.transcription_minutes * 60
        ):
            raise self._exceeded()

    def _exceeded(self) -> QuotaExceeded:
        return QuotaExceeded(
            f"This month's {self._settings.transcription_minutes} minutes of transcription "
            f"({self._settings.tier}) are used up, or too few are left for this recording.",
            resource="transcription_minutes",
            tier=self._settings.tier,
            cap_per_month=self._settings.transcription_minutes,
        )


@dataclass(eq=False)
class Recordings:
    """Opens a job's recording: from a URL, a video or an uploaded file."""

    _fetcher: Fetcher
    _videos: Videos
    _blobs: Blobs
    _settings: Settings
    _measure: Callable[[Path], tuple[float, tuple[Chapter, ...]]]

    @asynccontextmanager
    async def open(self, payload: Json) -> AsyncIterator[Path]:
        max_bytes = self._settings.media_max_mb * MEGABYTE
        if "blob" in payload:
            try:
                async with self._blobs.file(payload["blob"]) as file:
                    yield file
            except NotFound:
                raise IngestFailed(
                    "The recording's file no longer exists. Upload it again."
                ) from None
        elif "video" in payload:
            async with self._videos.open(payload["video"], max_bytes=max_bytes) as file:
                yield file
        else:
            async with self._fetcher.get(payload["url"], max_bytes=max_bytes) as fetched:
                yield fetched.path

    async def measure(self, recording: Path) -> tuple[float, tuple[Chapter, ...]]:
        """Return its seconds, and the chapters that the file lists."""
        return await asyncio.to_thread(self._measure, recording)

    async def discard(self, payload: Json) -> None:
        await self._blobs.delete(payload["blob"])


@dataclass(eq=False)
class TranscribeJobs:
    """Runs jobs of kind `transcribe`."""

    at_once = 1

    _store: Store
    _transcriber: Transcriber
    _recordings: Recordings
    _pipeline: IngestPipeline
    _quota: Quota
    _wake: Wake
    _stamp: str
    _keep_originals: bool

    async def run(self, worker: str, jobs: Sequence[Job]) -> None:
        await run_each(self._store, worker, jobs, partial(self._run, worker))

    async def _run(self, worker: str, job: Job) -> None:
        item = await self._store.items.get(Scope(job.library_id), ItemRef(id=job.item_id))
        content = await self._store.contents.get(item.library_id, item.content_id)
        try:
            if not content.text:
                if not await self._store.contents.claim(item, job.id, _later(LEASE_SECONDS)):
                    await self._store.jobs.postpone(worker, job, _later(WAIT_SECONDS))
                    return
                await self._transcribe(worker, job, item, content)
                content = await self._store.contents.get(item.library_id, item.content_id)
            await retry_on_conflict(partial(self._complete, job, content), guarded=False)
        except NotFound:
            raise
        except Exception as error:
            await self._failed(worker, job, item, error)
            return
        await self._store.jobs.finish(worker, [job])
        if "blob" in job.payload and not self._keep_originals:
            await self._recordings.discard(job.payload)
            await self._store.uploads.forget_files([job.payload["blob"].rpartition("/")[2]])

    async def _transcribe(self, worker: str, job: Job, item: Item, content: Content) -> None:
        tell, begun = self._progress_reporter(item), self._begun(worker, job)
        source = content.about.get("recording") or {}
        chapters = tuple(Chapter(*chapter) for chapter in source.get("chapters", ()))

        async def renew() -> None:
            await self._store.contents.claim(item, job.id, _later(LEASE_SECONDS))

        async with renewing_lease(renew):
            try:
                # A previous worker may have sent the recording and reserved its minutes.
                if begun.state and self._transcriber.is_remote:
                    transcript = await self._transcriber.transcribe(None, tell, begun)
                else:
                    async with self._recordings.open(job.payload) as recording:
                        seconds, listed = await self._recordings.measure(recording)
                        chapters = chapters or listed
                        await self._quota.reserve(job, seconds)
                        transcript = await self._transcriber.transcribe(recording, tell, begun)
            except BaseException:
                await self._store.quotas.set_seconds(job, 0)
                raise
        await self._store.quotas.set_seconds(job, transcript.seconds)
        text, marks = introduced(
            source.get("intro", ""),
            *join_speech(transcript.utterances, TRANSCRIPT, chapters or transcript.chapters),
        )
        about = content.about | {"seconds": round(transcript.seconds, 2)}
        if transcript.language is not None:
            about["language"] = transcript.language
        await self._store.contents.set_text(item, text, segments(marks), about)

    def _begun(self, worker: str, job: Job) -> Begun:
        async def remember(state: Json | None) -> None:
            known = {
                name: value for name, value in job.payload.items() if name not in ("begun", "by")
            }
            await self._store.jobs.set_payload(
                worker,
                job,
                known | ({"begun": state, "by": self._transcriber.name} if state else {}),
            )

        mine = job.payload.get("by") == self._transcriber.name
        return Begun(job.payload.get("begun") if mine else None, remember, self._wake.wait)

    async def _complete(self, job: Job, content: Content) -> None:
        """Store the item's passages and status in one transaction. Reads the item again, since it
        may have changed during the transcription."""
        item = await self._store.items.get(Scope(job.library_id), ItemRef(id=job.item_id))
        known = (
            await self._store.sections.of_content(item.library_id, content, item.title, self._stamp)
            if item.in_kb
            else []
        )
        made = await self._pipeline.prepare(
            item,
            content.text,
            content.marks,
            known=known,
            auto_transform=bool(item.metadata.get("auto_transform")),
        )
        changes = {name: getattr(made.item, name) for name in OF_THE_TEXT}
        await self._store.items.update(
            Scope(item.library_id),
            item.id,
            changes
            | {
                "transcription_status": "done",
                "metadata": made.item.metadata | metadata_of(content),
            },
            expected_revision=item.revision,
            sections=made.sections,
            stamp=self._stamp,
            jobs=made.jobs,
        )

    async def _failed(self, worker: str, job: Job, item: Item, error: Exception) -> None:
        """Record a failure. A bad recording fails for everybody, an empty quota for one person;
        anything else is retried."""
        reason, again = error_message(job, error), retry_at(job, error, ATTEMPTS)
        if isinstance(error, QuotaExceeded):
            await self._store.jobs.fail(worker, job, reason, None)
            await self._store.contents.release(item, job.id)
        elif again is None or (isinstance(error, IngestFailed) and not error.transient):
            await self._store.contents.fail(item, reason)
        else:
            # Keep the claim until then, so that waiting jobs do not try in its place.
            await self._store.contents.claim(item, job.id, again + timedelta(seconds=WAIT_SECONDS))
            await self._store.items.set_derived(
                [Annotation(item, {"transcription_status": "queued"})]
            )
            await self._store.jobs.fail(worker, job, reason, again, counted=not is_transient(error))

    def _progress_reporter(self, item: Item) -> Callable[[float], Awaitable[None]]:
        told = 0.0

        async def tell(share: float) -> None:
            nonlocal told
            if time.monotonic() - told >= PROGRESS_SECONDS:
                told = time.monotonic()
                await self._store.contents.set_progress(item, min(share, 1.0))

        return tell


def _later(seconds: float) -> datetime:
    return now() + timedelta(seconds=seconds)


def _month() -> str:
    return f"{now():%Y-%m}"


@dataclass(eq=False)
class TranscriptionWebhooks:
    """Webhooks of transcription services: a reason to poll them at once, and nothing more."""

    _wake: Wake
    _settings: Settings

    async def receive(
        self, provider: str, secret: str, body: Callable[[], Awaitable[bytes]]
    ) -> None:
        """Wake the jobs that wait for transcripts. The message's content is not trusted."""
        known, given = self._settings.webhook_secret.encode(), secret.encode("utf-8", "replace")
        if (
            not known
            or provider != self._settings.transcriber
            or not hmac.compare_digest(known, given)
        ):
            raise Unauthorized("Only the configured transcription service may call this.")
        # the body is read only after the sender is checked
        if finished_job(await body()) is not None:
            await self._wake.signal()


def finished_job(body: bytes) -> str | None:
    """Return the id of a finished or failed job; None for other messages."""
    try:
        news = json.loads(body)
        if "transcript_id" in news:  # AssemblyAI
            return str(news["transcript_id"]) if news["status"] in ("completed", "error") else None
        done = news["event"] in ("transcription.success", "transcription.error")  # Gladia
        return str((news.get("payload") or news)["id"]) if done else None
    except (ValueError, TypeError, KeyError):
        raise Invalid("This is not a message of a known transcription service.") from None
