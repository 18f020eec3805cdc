"""What keeps pages up to date: states of items as labels, and the stream of events."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

import orjson
from starlette.responses import Response, StreamingResponse

from commonplace.core.events.events import EventView, JobProgress
from commonplace.errors import Unauthorized
from commonplace.interfaces.web.request import WebRequest, get
from commonplace.model import (
    EMBED,
    INGEST,
    TRANSCRIBE,
    TRANSFORM,
    Caller,
    Item,
    Job,
    JobState,
)

RETRY, KEEP_ALIVE = b"retry: 1000\n\n", b": keep-alive\n\n"  # milliseconds
DOING = {  # what is told first, first
    INGEST: "Reading",
    TRANSCRIBE: "Transcribing",
    TRANSFORM: "Summarising",
    EMBED: "Indexing",
}
QUEUED = {INGEST: "Queued", TRANSCRIBE: "Waiting to transcribe"}


@dataclass(frozen=True, slots=True)
class State:
    label: str = ""  # nothing when it is simply there
    share: float | None = None
    wrong: bool = False
    open: bool = False  # something will still happen


def states(items: Mapping[str, Item], jobs: Sequence[Job]) -> dict[str, State]:
    return {
        name: _state(item, [job for job in jobs if job.item_id == item.id])
        for name, item in items.items()
    }


def _state(item: Item, jobs: Sequence[Job]) -> State:
    for job in jobs:
        if job.state is JobState.FAILED:
            return State(f"Failed: {job.error}" if job.error else "Failed", wrong=True)
    for kind, doing in DOING.items():
        for job in jobs:
            if job.kind == kind:
                if job.state is JobState.RUNNING:
                    share = round(job.progress, 2) if kind == TRANSCRIBE else None
                    return State(doing, share, open=True)
                failed = f". Last attempt: {job.error}" if job.error and kind == INGEST else ""
                return State(QUEUED.get(kind, doing) + failed, open=True)
    return State("Archived" if item.archived else "" if item.in_kb else "Hidden from search")


async def now_of(request: WebRequest, item_ids: Sequence[str]) -> dict[str, State]:
    """Return the states of the items that still exist, by the ids that were passed."""
    library, overview = request.services.library, request.services.overview
    found = {item_id: await library.find(request.caller, item_id) for item_id in item_ids}
    there = {item_id: item for item_id, item in found.items() if item is not None}
    ids = [item.id for item in there.values()]
    return states(there, await overview.unfinished(request.caller, ids))


def server_sent(lines: AsyncIterator[bytes]) -> Response:
    return StreamingResponse(
        lines,
        media_type="text/event-stream",
        headers={"X-Accel-Buffering": "no", "Cache-Control": "no-store"},
    )


async def events(request: WebRequest) -> Response:
    """Stream the ids of items that something happens to; stream.js reads it for all tabs."""

    async def identify() -> Caller:
        visitor = await request.services.accounts.visitor(request.secret)
        if visitor is None:
            raise Unauthorized("The session has ended.")
        return visitor.caller

    after = request.http.headers.get("last-event-id") or request.query("after") or None
    return server_sent(
        _encoded(await request.services.events.watch(request.caller, identify, after))
    )


async def _encoded(batches: AsyncIterator[list[EventView]]) -> AsyncIterator[bytes]:
    yield RETRY
    async for batch in batches:
        told = [event.id for event in batch if not isinstance(event, JobProgress)]
        cursor = b"id: %s\n" % told[-1].encode() if told else b""
        ids = orjson.dumps(sorted({event.item_id for event in batch}))
        yield b"%sdata: %s\n\n" % (cursor, ids) if batch else KEEP_ALIVE


async def sidebar(request: WebRequest) -> Response:
    """The parts of every page that change by themselves, for pages without others."""
    return request.page("sidebar.html")


ROUTES = (get("/events", events), get("/sidebar", sidebar))
