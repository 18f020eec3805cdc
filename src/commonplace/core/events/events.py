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
from commonplace.model import JOB_PROGRESS, TRANSCRIBE, Caller, EventPage, JobState, now
from commonplace.store import Store

log = logging.getLogger(__name__)
AT_ONCE = 100  # events
POLL_SECONDS = 1.0
HEARTBEAT_SECONDS = 15.0
STREAMS_OF_ONE, STREAMS = 5, 200  # of one caller, and of a process
SHOWN_JOBS = 20


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

    async def _run(self) -> None:
        seen: dict[str, tuple[int, bool]] = {}
        while self._waiting:
            await asyncio.sleep(POLL_SECONDS)
            try:
                latest = await self._store.events.latest([*self._waiting])
            except CommonplaceError as error:
                log.warning("Events could not be read; trying again: %s", error.message)
                continue
            for library_id, state in latest.items():
                if state[1] or state != seen.get(library_id):  # or a transcription runs
                    for news in self._waiting.get(library_id, ()):
                        news.set()
            seen = latest
        self._task = None


@dataclass(eq=False)
class Events(Service):
    _poller: Poller
    _streams: Counter[str] = field(default_factory=Counter)

    @verb(READ)
    async def list_events(
        self, caller: Caller, after: str | None = None, limit: int = AT_ONCE
    ) -> EventList:
        """Return events after a cursor, oldest first; without one, from the oldest kept."""
        begin = await self._position(caller, after) if after else 0
        page = await self._store.events.list_after(caller.scope, begin, limit)
        return EventList(views(page), new_cursor(page.key, page.after))

    @verb(READ, "stream_events")
    async def stream(
        self, caller: Caller, identify: Callable[[], Awaitable[Caller]], after: str | None
    ) -> AsyncIterator[EventView | None]:
        """Return a stream of events after a cursor; without one, from now on. None: keep alive.

        `identify` is asked before anything is sent; the stream ends when the caller may no longer
        read, or sees another library or scope.
        """
        self._require_room(caller)
        position = await self._position(caller, after) if after else None
        page = await self._store.events.list_after(caller.scope, position, AT_ONCE)
        return self._follow(caller, identify, page)

    async def _position(self, caller: Caller, cursor: str) -> int:
        return read_cursor(await self._store.events.key(caller.library_id), cursor)

    async def _follow(
        self, caller: Caller, identify: Callable[[], Awaitable[Caller]], page: EventPage
    ) -> AsyncIterator[EventView | None]:
        told: dict[str, float] = {}
        self._require_room(caller)
        self._streams[caller.queue] += 1
        news = self._poller.join(caller.library_id)
        try:
            yield None
            while True:
                for event in views(page):
                    yield event
                if len(page.events) < AT_ONCE:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(HEARTBEAT_SECONDS):
                            await news.wait()
                if (await identify()).scope != caller.scope:
                    return
                if not news.is_set():
                    yield None
                news.clear()
                page = await self._store.events.list_after(caller.scope, page.after, AT_ONCE)
                for event in await self._progress(caller, told):
                    yield event
        except CommonplaceError:  # the token has ended, or the database is away: clients come again
            return
        finally:
            self._poller.leave(caller.library_id, news)
            self._streams[caller.queue] -= 1
            self._streams += Counter()  # forgets who has none

    async def _progress(self, caller: Caller, told: dict[str, float]) -> list[EventView]:
        """Return the progress of transcriptions that was not told yet."""
        jobs = await self._store.jobs.list_jobs(
            caller.scope, states=[JobState.RUNNING], kinds=[TRANSCRIBE], limit=SHOWN_JOBS
        )
        fresh = [job for job in jobs if told.get(job.id, 0.0) != job.progress]
        told.clear()
        told.update({job.id: job.progress for job in jobs})
        return [
            JobProgress(job.id, JOB_PROGRESS, now(), job.item_id or "", None, job.progress)
            for job in fresh
        ]

    def _require_room(self, caller: Caller) -> None:
        if self._streams[caller.queue] >= STREAMS_OF_ONE or self._streams.total() >= STREAMS:
            raise RateLimited(
                int(HEARTBEAT_SECONDS),
                f"Too many streams are open: {STREAMS_OF_ONE} for each token, {STREAMS} in all. "
                "Close one, or read GET /api/v1/events without `Accept: text/event-stream`.",
                limit="streams",
            )
