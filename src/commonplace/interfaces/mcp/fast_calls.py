"""Tool calls that are one request and one JSON answer, without the SDK's session machinery.

For older protocol versions the SDK opens a session of streams and tasks for each request; for the
newest it serializes an answer twice. Here the SDK only classifies the request and, once per
version, provides the envelope of an answer. Everything but an ordinary tool call is left to it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache

import orjson
from mcp.server.runner import modern_error_data
from mcp.server.streamable_http import check_accept_headers
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS, InboundModernRoute, classify_inbound_request
from mcp_types import DEFAULT_NEGOTIATED_VERSION, CallToolResult, RequestId
from mcp_types.methods import serialize_server_result, validate_client_request
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive

from commonplace.interfaces.http.gate import Json
from commonplace.interfaces.mcp.errors import invalid_params_error, with_json_rpc_errors
from commonplace.interfaces.mcp.server import IDENTITY
from commonplace.interfaces.mcp.tools import ToolAnswer
from commonplace.model import Caller, Json as Body

METHOD = "tools/call"
_AS_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
_LONG_NUMBER = (
    b"0" * 20
)  # of more than 64 bits: orjson would take another one for it without a word

WATCH_AFTER = 0.05  # seconds; most calls are over by then, and nobody has to watch the client
CLIENT_LEFT = 499  # a status for metrics only: nobody reads the answer

Call = Callable[..., Awaitable[ToolAnswer]]


class FastCalls:
    def __init__(self, call: Call) -> None:
        """`call` runs a tool by name; none of its arguments may be required in headers too."""
        self._call = with_json_rpc_errors(call)
        self._envelopes = {
            version: _empty_answer(version)
            for version in (*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS)
        }

    async def answer(
        self,
        caller: Caller,
        headers: Mapping[str, str],
        body: bytes,
        receive: Receive,
        *,
        errors_as_results: bool = False,
    ) -> Response | None:
        """Return the answer, or None when the SDK has to serve the request."""
        if not _accepts_json(headers.get("accept", "")) or _LONG_NUMBER in body.translate(
            _AS_ZEROS
        ):
            return None
        try:
            message = orjson.loads(body)
        except orjson.JSONDecodeError:
            return None
        match message:
            case {
                "jsonrpc": "2.0",
                "id": int() | str() as number,
                "method": "tools/call",
                "params": dict() as params,
            } if not isinstance(number, bool):
                version = _version(headers, message)
                if version is None:
                    return None
                work = self._answer(caller, version, number, params, errors_as_results)
                modern = version in MODERN_PROTOCOL_VERSIONS
                return await (_while_connected(receive, work) if modern else work)
        return None

    async def _answer(
        self,
        caller: Caller,
        version: str,
        number: RequestId,
        params: Body,
        errors_as_results: bool,
    ) -> Response:
        try:
            validate_client_request(METHOD, version, params)
            answer = await self._call(
                caller,
                params["name"],
                params.get("arguments"),
                errors_as_results=errors_as_results,
            )
        except (
            MCPError,
            ValidationError,
        ) as error:  # calls are guarded, so what is not valid is the request
            told = modern_error_data(
                invalid_params_error(METHOD, error) if isinstance(error, ValidationError) else error
            )
            status = (
                ERROR_CODE_HTTP_STATUS.get(told.code, 200)
                if version in MODERN_PROTOCOL_VERSIONS
                else 200
            )
            return Json(
                {
                    "jsonrpc": "2.0",
                    "id": number,
                    "error": told.model_dump(mode="json", by_alias=True, exclude_none=True),
                },
                status,
            )
        around = self._envelopes[version]
        result = {**around, "content": [{"type": "text", "text": answer.text}]}
        if answer.is_error:
            result["isError"] = True
        if "structuredContent" in around:
            result["structuredContent"] = answer.structured
        return Json({"jsonrpc": "2.0", "id": number, "result": result})


def _empty_answer(version: str) -> Body:
    """Return an empty answer in the form of this protocol version."""
    nothing = CallToolResult(content=[], structured_content={}).model_dump(
        by_alias=True, mode="json", exclude_none=True
    )
    answer = serialize_server_result(METHOD, version, nothing)
    return answer | ({"_meta": IDENTITY} if version in MODERN_PROTOCOL_VERSIONS else {})


async def _while_connected(receive: Receive, work: Awaitable[Response]) -> Response:
    """Cancel the work when the client leaves, as the newest protocol wants it."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    watchers: list[asyncio.Task[None]] = []
    left = False

    async def watch() -> None:
        nonlocal left
        while (await receive())["type"] != "http.disconnect":
            pass
        left = True
        task.cancel("the client left")

    timer = loop.call_later(WATCH_AFTER, lambda: watchers.append(loop.create_task(watch())))
    try:
        return await work
    except asyncio.CancelledError:
        if not left or task.uncancel():  # the server is stopping
            raise
        return Response(status_code=CLIENT_LEFT)
    finally:
        timer.cancel()
        for watcher in watchers:
            watcher.cancel()


@lru_cache(maxsize=256)
def _accepts_json(accept: str) -> bool:
    return check_accept_headers(
        Request({"type": "http", "headers": [(b"accept", accept.encode("latin-1"))]})
    )[0]


def _version(headers: Mapping[str, str], message: Body) -> str | None:
    """Return the protocol version of the request, or None when it is not valid."""
    version = headers.get("mcp-protocol-version", DEFAULT_NEGOTIATED_VERSION)
    if version in HANDSHAKE_PROTOCOL_VERSIONS:
        return version
    told = classify_inbound_request(message, headers=headers)
    return told.protocol_version if isinstance(told, InboundModernRoute) else None
