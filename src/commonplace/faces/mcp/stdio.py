"""MCP over standard input and output, for one caller."""

from collections.abc import Awaitable, Callable

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError

from commonplace.faces.http import Services
from commonplace.faces.mcp.errors import lone_surrogates
from commonplace.faces.mcp.server import ALL_TOOLS, door_server
from commonplace.model import Caller

Line = SessionMessage | Exception


async def serve_stdio(services: Services, caller: Callable[[], Awaitable[Caller]]) -> None:
    """Answer until standard input ends. Whatever else the process prints goes to standard error meanwhile.

    `caller` is asked anew for each request: such a server runs for weeks, and a token may be revoked at any moment.
    """
    server = door_server(ALL_TOOLS, services, lambda _: caller())
    async with stdio_server() as (read, write), anyio.create_task_group() as tasks:
        legible_in, legible_out = anyio.create_memory_object_stream[Line]()
        tasks.start_soon(_sort_out, read, legible_in, write)
        await server.run(legible_out, write, server.create_initialization_options())


async def _sort_out(read: ObjectReceiveStream[Line], legible: ObjectSendStream[Line],
                    write: ObjectSendStream[SessionMessage]) -> None:
    """Answer lines that are no messages: the SDK would pass them over, and the client would wait forever."""
    async with legible:
        async for item in read:
            if isinstance(item, Exception):
                await write.send(SessionMessage(_refusal(item)))
            else:
                await legible.send(item)


def _refusal(unread: Exception) -> JSONRPCError:
    line = unread.errors()[0]["input"] if isinstance(unread, ValidationError) else None
    garbled = lone_surrogates(line) if isinstance(line, str) else None
    unknown = ErrorData(code=PARSE_ERROR, message="The line is no JSON-RPC message.", data={"error": "invalid_request"})
    return garbled or JSONRPCError(jsonrpc="2.0", id=None, error=unknown)
