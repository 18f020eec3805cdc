"""Progress of items: as labels in a list, and as a stream of events."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import orjson
from starlette.responses import Response, StreamingResponse

from commonplace.interfaces.web.request import WebRequest
from commonplace.model import EMBED, INGEST, REMOVE, TRANSCRIBE, TRANSFORM, Item, Job, JobState

EVERY, LONGEST = 0.7, 3600.0
DOING = {
    INGEST: "reading",
    TRANSCRIBE: "being written down",
    EMBED: "being indexed",
    TRANSFORM: "being summarised",
}


@dataclass(frozen=True, slots=True)
class State:
    label: str = ""  # nothing when it is simply there
    share: float | None = None
    wrong: bool = False
    open: bool = False  # something will still happen


def states(items: Sequence[Item], jobs: Sequence[Job]) -> dict[str, State]:
    of: dict[str, list[Job]] = {item.id: [] for item in items}
    for job in jobs:
        of[job.item_id].append(job)
    return {item.id: _state(item, of[item.id]) for item in items}


def _state(item: Item, jobs: Sequence[Job]) -> State:
    for job in jobs:
        if job.state is JobState.FAILED:
            return State(f"failed: {job.error}" if job.error else "failed", wrong=True)
    for job in jobs:
        if job.kind == REMOVE:
            return State("will be deleted", open=True)
    for kind in (INGEST, TRANSCRIBE, TRANSFORM, EMBED):
        for job in jobs:
            if job.kind == kind:
                running = job.state is JobState.RUNNING
                waiting = {
                    INGEST: f"queued; last try: {job.error}" if job.error else "queued",
                    TRANSCRIBE: "waiting to be written down",
                }
                label = DOING[kind] if running else waiting.get(kind, DOING[kind])
                return State(
                    label,
                    round(job.progress, 2) if running and kind == TRANSCRIBE else None,
                    open=True,
                )
    return State("archived" if item.archived else "" if item.in_kb else "not searched")


async def now_of(request: WebRequest, item_ids: Sequence[str]) -> dict[str, State]:
    """Return the states of the items that still exist, by the ids that were passed."""
    found = {
        item_id: await request.services.library.find(request.caller, item_id)
        for item_id in item_ids
    }
    there = {item.id: item for item in found.values() if item is not None}
    now = states(
        list(there.values()),
        await request.services.overview.unfinished(request.caller, list(there)),
    )
    return {
        item_id: now[item.id] for item_id, item in found.items() if item is not None
    }  # by the ids that were asked for


def events(lines: AsyncIterator[dict[str, Any]]) -> Response:
    async def encoded() -> AsyncIterator[bytes]:
        async for line in lines:
            yield b"data: " + orjson.dumps(line) + b"\n\n"

    return StreamingResponse(
        encoded(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
    )


async def watch(
    request: WebRequest, item_ids: Sequence[str], row: Callable[[str], Awaitable[str]]
) -> AsyncIterator[dict[str, Any]]:
    """Yield each change of these items' states, until nothing is left to happen."""
    known: dict[str, State] = {}
    waiting, passed = list(item_ids), 0.0
    while waiting and passed < LONGEST:
        now = await now_of(request, waiting)
        for item_id in list(waiting):
            state = now.get(item_id)
            if state is None or not state.open:
                waiting.remove(item_id)
                yield {"id": item_id, "done": True, "row": await row(item_id) if state else ""}
            elif state != known.get(item_id):
                yield {"id": item_id, **asdict(state)}
        known = now
        if waiting:
            await asyncio.sleep(EVERY)
            passed += EVERY
