"""A tool call that is one request and one JSON answer, without the streams and tasks of a session that ends with it.

The newest revision of the protocol is served so by the SDK itself; for clients of the revisions before it, which are most,
the SDK opens a session for each request, at twice the cost. Whatever is not an ordinary tool call is left to it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
import orjson
from mcp.server import Server
from mcp.server.connection import Connection
from mcp.server.runner import serve_one
from mcp.server.streamable_http import check_accept_headers
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.message import MessageMetadata, ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import DEFAULT_NEGOTIATED_VERSION, RequestId
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from commonplace.faces.http import Json


async def plain_call(server: Server[Any], scope: Scope, body: bytes) -> Response | None:
    """None: not one of these."""
    request = Request(scope)
    version = request.headers.get("mcp-protocol-version", DEFAULT_NEGOTIATED_VERSION)
    if version not in HANDSHAKE_PROTOCOL_VERSIONS or not check_accept_headers(request)[0] \
            or request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return None
    try:
        message = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    match message:
        case {"jsonrpc": "2.0", "id": int() | str() as number, "method": "tools/call", "params": dict() as params} \
                if not isinstance(number, bool):
            return Json(await _answer(server, request, version, number, params))
    return None


async def _answer(server: Server[Any], request: Request, version: str, number: RequestId,
                  params: dict[str, Any]) -> dict[str, Any]:
    exchange = _Exchange(TransportContext(kind="streamable-http", can_send_request=False, headers=request.headers), number,
                         ServerMessageMetadata(request_context=request))
    try:
        result = await serve_one(server, exchange, "tools/call", params, lifespan_state={},
                                 connection=Connection.from_envelope(version, None, None))
    except MCPError as error:  # handlers are guarded, so there is no other kind
        return {"jsonrpc": "2.0", "id": number, "error": error.error.model_dump(mode="json", by_alias=True, exclude_unset=True)}
    return {"jsonrpc": "2.0", "id": number, "result": result}


@dataclass
class _Exchange:
    """What the SDK asks of a transport; nobody listens to anything but the answer."""

    transport: TransportContext
    request_id: RequestId
    message_metadata: MessageMetadata
    can_send_request: bool = False
    progress_token: None = None
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)

    async def send_raw_request(self, method: str, params: Mapping[str, Any] | None,
                               opts: CallOptions | None = None) -> dict[str, Any]:
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        return

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        return
