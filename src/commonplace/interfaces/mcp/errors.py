"""Errors as JSON-RPC errors: the one place that chooses codes."""

import json
import logging
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import orjson
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, ErrorData, JSONRPCError
from pydantic import ValidationError

from commonplace.errors import CommonplaceError, Invalid, LibraryFull, QuotaExceeded, RateLimited
from commonplace.interfaces.http.gate import RATE_LIMITED

QUOTA_EXCEEDED = 402

logger = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")

_CODES: dict[type[CommonplaceError], int] = {
    Invalid: INVALID_PARAMS,
    RateLimited: RATE_LIMITED,
    QuotaExceeded: QUOTA_EXCEEDED,
    LibraryFull: QUOTA_EXCEEDED,
}


def to_mcp_error(error: Exception) -> MCPError:
    """Return the JSON-RPC error of an exception; unexpected ones are logged."""
    if isinstance(error, MCPError):
        return error
    if not isinstance(error, CommonplaceError):
        logger.error("An MCP request failed unexpectedly", exc_info=error)
        error = CommonplaceError("The server failed; its log says why.")
    code = _CODES.get(type(error), INTERNAL_ERROR)
    data = {"error": error.code, **error.data}
    if code == QUOTA_EXCEEDED:
        data["message"] = error.message
    return MCPError(code, error.message, data)


def with_json_rpc_errors(handler: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
    """Wrap a handler: its errors become JSON-RPC errors."""

    @wraps(handler)
    async def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return await handler(*args, **kwargs)
        except Exception as error:
            raise to_mcp_error(error) from error

    return call


async def explain_params(ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
    """Middleware that names params of the wrong shape.

    Handlers map their own errors, so a ValidationError here is about the request.
    """
    try:
        return await call_next(ctx)
    except MCPError as error:
        if (error.code, error.data) != (INVALID_PARAMS, ""):
            raise
        early = (
            f"{ctx.method}: send `initialize` first, or say the protocol's version in "
            "`params._meta`."
        )
        raise to_mcp_error(Invalid(early)) from error
    except ValidationError as error:
        raise invalid_params_error(ctx.method, error) from error


def invalid_params_error(method: str, error: ValidationError) -> MCPError:
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return to_mcp_error(Invalid(f"{method}: `{where}`: {first['msg']}."))


def refuse_non_message(body: bytes) -> JSONRPCError | None:
    """Return the error for JSON that is no JSON-RPC message; the SDK's is unclear."""
    try:
        message = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None  # not JSON at all: the transport says so
    match message:
        case {"jsonrpc": "2.0"} if (
            isinstance(message.get("params", {}), dict)
            and type(message.get("id", 0)) in (int, str)
            and (
                isinstance(message.get("method"), str) or "result" in message or "error" in message
            )
        ):
            return None
    return JSONRPCError(
        jsonrpc="2.0",
        id=None,
        error=ErrorData(
            code=INVALID_REQUEST,
            data={"error": "invalid_request"},
            message=(
                'Send one JSON-RPC message: an object with "jsonrpc": "2.0", `method`, `params` '
                "(an object) and `id` (text or a "
                "whole number); lists of messages are not taken."
            ),
        ),
    )


def refuse_lone_surrogates(message: bytes | str) -> JSONRPCError | None:
    """Return the error for half a surrogate pair, which the SDK answers only sometimes."""
    marks: tuple[Any, Any] = (b"\\ud", b"\\uD") if isinstance(message, bytes) else ("\\ud", "\\uD")
    if not any(mark in message for mark in marks):
        return None
    try:
        request = json.loads(message)
        json.dumps(request, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        request_id = request.get("id") if isinstance(request, dict) else None
        refusal = to_mcp_error(
            Invalid("The request is not valid Unicode (a lone surrogate); send well-formed text.")
        )
        return JSONRPCError(jsonrpc="2.0", id=request_id, error=refusal.error)
    except (ValueError, RecursionError):
        return None  # not JSON at all: the transport says so
    return None
