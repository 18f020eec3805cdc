"""Events as a stream, at the address that lists them."""

from collections.abc import AsyncIterator

import orjson
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from commonplace.core.events.events import EventView, JobProgress
from commonplace.core.services import Services
from commonplace.interfaces.actions.events import EVENT, ListEvents
from commonplace.interfaces.actions.fields import parse
from commonplace.interfaces.actions.shapes import Call

STREAM = "text/event-stream"
# Without the empty line that ends an event: some clients take it for one.
_KEEP_ALIVE = b": keep-alive\n"


async def stream_events(request: Request) -> Response:
    services: Services = request.app.state.services
    args = parse(ListEvents, dict(request.query_params), as_text=True)
    batches = await services.events.stream(
        request.state.caller,
        request.state.identify,
        request.headers.get("last-event-id") or args.after,
    )
    call = Call(args, services.settings)
    return StreamingResponse(
        _encoded(batches, call), media_type=STREAM, headers={"X-Accel-Buffering": "no"}
    )


async def _encoded(batches: AsyncIterator[list[EventView]], call: Call) -> AsyncIterator[bytes]:
    async for batch in batches:
        if not batch:
            yield _KEEP_ALIVE
        for event in batch:
            body = EVENT(event, call)
            if isinstance(event, JobProgress):
                name, body = b"", body | {"progress": event.progress}
            else:
                name = b"id: %s\n" % event.id.encode()
            yield b"%sevent: %s\ndata: %s\n\n" % (name, event.type.encode(), orjson.dumps(body))
