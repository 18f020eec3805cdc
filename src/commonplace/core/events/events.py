"""The events of a library, in pages and as a stream. Streams poll: poolers break LISTEN."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from commonplace.core.events.cursor import event_id, new_cursor, read_cursor
from commonplace.core.people.authorization import READ, Service, verb
from commonplace.errors import CommonplaceError, RateLimited
from commonplace.model import JOB_PROGRESS, TRANSCRIBE, Caller, EventPage, Job, JobState, now
from commonplace.store import Store

log = logging.getLogger(__name__)
AT_ONCE = 100  # events
POLL_SECONDS = 0.5
HEARTBEAT_SECONDS = 15.0
STREAMS_OF_ONE, STREAMS = 5, 200  # of one caller, and of a process
STREAMS_OF_PERSON = (
    20  # one for each browser, or for each visible tab of one without shared workers
)
SHOWN_JOBS = 20
OPEN = (JobState.QUEUED, JobState.RUNNING)


@dataclass(frozen=True, slots=True)
class EventView:
    """An event as callers see it."""

    id: str
    type: str
    at: datetime
    item_id: str
    actor: str | None


@dataclass(frozen=True, slots=True)
class JobProgress(EventView):
    progress: float  # 0 to 1


@dataclass(frozen=True, slots=True)
class EventList:
    events: list[EventView]
    next: str  # the cursor behind them


# Tells what was not told yet about jobs; the dict keeps what was.
TellJobs = Callable[[Caller, dict[str, Job]], Awaitable[list[EventView]]]


def views(page: EventPage) -> list[EventView]:
    return [
        EventView(event_id(page.key, each.seq), each.type, each.at, each.item_id, each.actor)
        for each in page.events
    ]


@dataclass(eq=False)
class Poller:
    """One query for all streams of this process, which are woken when there is something new."""

    _store: Store
    _waiting: dict[str, set[asyncio.Event]] = field(default_factory=dict)  # by library
    _task: asyncio.Task[None] | None = None

    def join(self, library_id: str) -> asyncio.Event:
        news = asyncio.Event()
        self._waiting.setdefault(library_id, set()).add(news)
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        return news

    def leave(self, library_id: str, news: asyncio.Event) -> None:
        self._waiting[library_id].discard(news)
        if not self._waiting[library_id]:
            del self._waiting[library_id]
        if not self._waiting and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        seen: dict[str, tuple[int, str]] = {}
        while True:
            await asyncio.sleep(POLL_SECONDS)
            try:
                latest = await self._store.events.latest([*self._waiting])
            except CommonplaceError as error:
                log.warning("Events could not be read; trying again: %s", error.message)
                continue
            for library_id, state in latest.items():
                if state != seen.get(library_id):
                    for news in self._waiting.get(library_id, ()):
                        news.set()
            seen = latest


@dataclass(eq=False)
class Events(Service):
    _poller: Poller
    _streams: Counter[str] = field(default_factory=Counter)

    @verb(READ, primary=True)
    async def list_events(
        self, caller: Caller, after: str | None = None, limit: int = AT_ONCE
    ) -> EventList:
        """Return events after a cursor, oldest first; without one, from the oldest kept."""
        begin = await self._position(caller, after) if after else 0
        page = await self._store.events.list_after(caller.scope, begin, limit)
        return EventList(views(page), new_cursor(page.key, page.after))

    @verb(READ, "stream_events", primary=True)
    async def stream(
        self, caller: Caller, identify: Callable[[], Awaitable[Caller]], after: str | None
    ) -> AsyncIterator[list[EventView]]:
        """Return a stream of events after a cursor; without one, from now on. []: keep alive.

        `identify` is asked before anything is sent; the stream ends when the caller may no longer
        read, or sees another library or scope.
        """
        return await self._open(caller, identify, after, STREAMS_OF_ONE, self._progress)

    @verb(READ, "stream_events", primary=True)
    async def watch(
        self, caller: Caller, identify: Callable[[], Awaitable[Caller]], after: str | None
    ) -> AsyncIterator[list[EventView]]:
        """Return a stream for the web app: as `stream`, and each change of a job of any kind."""
        return await self._open(caller, identify, after, STREAMS_OF_PERSON, self._jobs)

    async def cursor(self, caller: Caller) -> str:
        """Return the cursor behind what has happened. The caller is authorized already."""
        page = await self._store.events.list_after(caller.scope, None, 1)
        return new_cursor(page.key, page.after)

    async def _open(
        self,
        caller: Caller,
        identify: Callable[[], Awaitable[Caller]],
        after: str | None,
        most: int,
        jobs: TellJobs,
    ) -> AsyncIterator[list[EventView]]:
        self._require_room(caller, most)
        position = await self._position(caller, after) if after else None
        page = await self._store.events.list_after(caller.scope, position, AT_ONCE)
        return self._follow(caller, identify, page, most, jobs)

    async def _position(self, caller: Caller, cursor: str) -> int:
        return read_cursor(await self._store.events.key(caller.library_id), cursor)

    async def _follow(
        self,
        caller: Caller,
        identify: Callable[[], Awaitable[Caller]],
        page: EventPage,
        most: int,
        jobs: TellJobs,
    ) -> AsyncIterator[list[EventView]]:
        told: dict[str, Job] = {}
        self._require_room(caller, most)
        self._streams[caller.queue] += 1
        news = self._poller.join(caller.library_id)
        try:
            yield []
            while True:
                if page.events:
                    yield views(page)
                if len(page.events) < AT_ONCE:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(HEARTBEAT_SECONDS):
                            await news.wait()
                if (await identify()).scope != caller.scope:
                    return
                if not news.is_set():
                    yield []
                news.clear()
                page = await self._store.events.list_after(caller.scope, page.after, AT_ONCE)
                if changed := await jobs(caller, told):
                    yield changed
        except CommonplaceError:  # the token has ended, or the database is away: clients come again
            return
        finally:
            self._poller.leave(caller.library_id, news)
            self._streams[caller.queue] -= 1
            self._streams += Counter()  # forgets who has none

    async def _progress(self, caller: Caller, told: dict[str, Job]) -> list[EventView]:
        """Return the progress of transcriptions that was not told yet."""
        jobs = await self._store.jobs.list_jobs(
            caller.scope, states=[JobState.RUNNING], kinds=[TRANSCRIBE], limit=SHOWN_JOBS
        )
        before = {job.id: job.progress for job in told.values()}
        told.clear()
        told.update({job.id: job for job in jobs})
        return [_told(job) for job in jobs if before.get(job.id, 0.0) != job.progress]

    async def _jobs(self, caller: Caller, told: dict[str, Job]) -> list[EventView]:
        """Return open jobs that were not told yet as they are, and those that have ended."""
        jobs = await self._store.jobs.list_jobs(caller.scope, states=OPEN, limit=SHOWN_JOBS)
        before, present = told.copy(), {job.id: job for job in jobs}
        told.clear()
        told.update(present)
        return [
            _told(job)
            for job_id, job in (before | present).items()
            if _state(before.get(job_id)) != _state(present.get(job_id))
        ]

    def _require_room(self, caller: Caller, most: int) -> None:
        if self._streams[caller.queue] >= most or self._streams.total() >= STREAMS:
            raise RateLimited(
                int(HEARTBEAT_SECONDS),
                f"Too many streams are open: {most} for each token or person, {STREAMS} in all. "
                "Close one, or read GET /api/v1/events without `Accept: text/event-stream`.",
                limit="streams",
            )


def _told(job: Job) -> JobProgress:
    return JobProgress(job.id, JOB_PROGRESS, now(), job.item_id or "", None, job.progress)


def _state(job: Job | None) -> tuple[JobState, float, str | None] | None:
    return None if job is None else (job.state, job.progress, job.error)
