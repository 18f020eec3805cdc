"""Progress of items: as labels in a list, and as a stream of events."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import orjson
from starlette.responses import Response, StreamingResponse

from commonplace.interfaces.web.request import WebRequest
from commonplace.model import EMBED, INGEST, REMOVE, TRANSCRIBE, TRANSFORM, Item, Job, JobState

EVERY, LONGEST = 0.7, 3600.0
DOING = {  # what is told first, first
    REMOVE: "will be deleted",
    INGEST: "reading",
    TRANSCRIBE: "being written down",
    TRANSFORM: "being summarised",
    EMBED: "being indexed",
}
QUEUED = {INGEST: "queued", TRANSCRIBE: "waiting to be written down"}


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
            return State(f"failed: {job.error}" if job.error else "failed", wrong=True)
    for kind, doing in DOING.items():
        for job in jobs:
            if job.kind == kind:
                if job.state is JobState.RUNNING:
                    share = round(job.progress, 2) if kind == TRANSCRIBE else None
                    return State(doing, share, open=True)
                failed = f"; last try: {job.error}" if job.error and kind == INGEST else ""
                return State(QUEUED.get(kind, doing) + failed, open=True)
    return State("archived" if item.archived else "" if item.in_kb else "not searched")


async def now_of(request: WebRequest, item_ids: Sequence[str]) -> dict[str, State]:
    """Return the states of the items that still exist, by the ids that were passed."""
    library, overview = request.services.library, request.services.overview
    found = {item_id: await library.find(request.caller, item_id) for item_id in item_ids}
    there = {item_id: item for item_id, item in found.items() if item is not None}
    ids = [item.id for item in there.values()]
    return states(there, await overview.unfinished(request.caller, ids))


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
    known, waiting = dict[str, State](), list(item_ids)
    for _ in range(int(LONGEST / EVERY)):
        now = await now_of(request, waiting)
        for item_id in list(waiting):
            state = now.get(item_id)
            if state is None or not state.open:
                waiting.remove(item_id)
                yield {"id": item_id, "done": True, "row": await row(item_id) if state else ""}
            elif state != known.get(item_id):
                yield {"id": item_id, **asdict(state)}
        if not waiting:
            return
        known = now
        await asyncio.sleep(EVERY)
