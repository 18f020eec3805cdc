"""A tool call that is one request and one JSON answer, without what the SDK does for all the others.

For clients of the revisions before the newest, which are most, the SDK opens a session of streams and tasks for each request; for
those of the newest it goes twice through the whole answer to write it. Whatever is not an ordinary tool call is left to it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
import orjson
from mcp.server import Server
from mcp.server.connection import Connection
from mcp.server.runner import modern_error_data, serve_one
from mcp.server.streamable_http import check_accept_headers
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    InboundModernRoute,
    classify_inbound_request,
    find_duplicated_routing_header,
)
from mcp.shared.message import MessageMetadata, ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import DEFAULT_NEGOTIATED_VERSION, RequestId
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from commonplace.faces.http import Json
from commonplace.model import Json as Body


async def plain_call(server: Server[Any], scope: Scope, body: bytes) -> Response | None:
    """None: not one of these."""
    request = Request(scope)
    if not check_accept_headers(request)[0]:
        return None
    try:
        message = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    match message:
        case {"jsonrpc": "2.0", "id": int() | str() as number, "method": "tools/call", "params": dict() as params} \
                if not isinstance(number, bool):
            connection = _connection(server, request, message)
            return await _answer(server, request, connection, number, params) if connection else None
    return None


def _connection(server: Server[Any], request: Request, message: Body) -> Connection | None:
    """What the request says of its client; None when it says it wrongly."""
    version = request.headers.get("mcp-protocol-version", DEFAULT_NEGOTIATED_VERSION)
    if version in HANDSHAKE_PROTOCOL_VERSIONS:
        return Connection.from_envelope(version, None, None)
    if version not in MODERN_PROTOCOL_VERSIONS or find_duplicated_routing_header(request.headers.items()):
        return None
    told = classify_inbound_request(message, headers=dict(request.headers))
    if not isinstance(told, InboundModernRoute) or _from_headers(server, message["params"].get("name")):
        return None
    return Connection.from_envelope(told.protocol_version, told.client_info, told.client_capabilities)


def _from_headers(server: Server[Any], name: Any) -> bool:
    """Whether the tool may want to see an argument in a header as well: a server without such tools says so."""
    return server.get_tool_input_schema is None or not isinstance(name, str) or server.get_tool_input_schema(name) is not None


async def _answer(server: Server[Any], request: Request, connection: Connection, number: RequestId,
                  params: dict[str, Any]) -> Response:
    exchange = _Exchange(TransportContext(kind="streamable-http", can_send_request=False, headers=request.headers), number,
                         ServerMessageMetadata(request_context=request))
    try:
        result = await serve_one(server, exchange, "tools/call", params, lifespan_state={}, connection=connection)
    except MCPError as error:  # handlers are guarded, so there is no other kind
        told = modern_error_data(error)
        status = ERROR_CODE_HTTP_STATUS.get(told.code, 200) if connection.protocol_version in MODERN_PROTOCOL_VERSIONS else 200
        return Json({"jsonrpc": "2.0", "id": number,
                     "error": told.model_dump(mode="json", by_alias=True, exclude_none=True)}, status)
    return Json({"jsonrpc": "2.0", "id": number, "result": result})


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
