"""MCP over standard input and output, for one caller."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import (
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)
from pydantic import ValidationError

from commonplace.core.services import Services
from commonplace.interfaces.mcp.errors import refuse_lone_surrogates
from commonplace.interfaces.mcp.server import ALL_TOOLS, Toolset
from commonplace.model import Caller

Line = SessionMessage | Exception
PATIENCE = 60.0  # seconds after the input's end for what was asked before it


@dataclass
class PendingRequests:
    """Requests without an answer yet."""

    ids: set[RequestId | None] = field(default_factory=set)
    fewer: anyio.Event = field(default_factory=anyio.Event)

    def settle(self, request_id: RequestId | None) -> None:
        self.ids.discard(request_id)
        self.fewer.set()
        self.fewer = anyio.Event()

    async def all_settled(self) -> None:
        while self.ids:
            await self.fewer.wait()


async def serve_stdio(services: Services, caller: Callable[[], Awaitable[Caller]]) -> None:
    """Serve requests until standard input ends; other output goes to standard error meanwhile.

    `caller` is called for each request: such a server runs for weeks, and a token may be revoked.
    """

    async def agent(_: Any) -> Caller:
        return replace(await caller(), agent=True)

    server = Toolset(ALL_TOOLS, services).server(agent)
    async with stdio_server() as (read, write), anyio.create_task_group() as tasks:
        asked = PendingRequests()
        legible_in, legible_out = anyio.create_memory_object_stream[Line]()
        answers_in, answers_out = anyio.create_memory_object_stream[SessionMessage]()
        tasks.start_soon(_sort_out, read, legible_in, write, asked)
        tasks.start_soon(_pass_on, answers_out, write, asked)
        async with answers_in:
            await server.run(legible_out, answers_in, server.create_initialization_options())


async def _sort_out(
    read: ObjectReceiveStream[Line],
    legible: ObjectSendStream[Line],
    write: ObjectSendStream[SessionMessage],
    asked: PendingRequests,
) -> None:
    """Pass requests on, and answer lines that are no messages, which the SDK would ignore.

    At the end of its input the SDK drops unfinished requests, so this waits for them.
    """
    async with legible:
        async for item in read:
            if isinstance(item, Exception):
                await write.send(SessionMessage(_refusal(item)))
                continue
            match item.message:
                case JSONRPCRequest(id=request_id):
                    asked.ids.add(request_id)
                case JSONRPCNotification(method="notifications/cancelled", params=dict(params)):
                    asked.settle(params.get("requestId"))  # nobody answers it any more
            await legible.send(item)
        with anyio.move_on_after(PATIENCE):
            await asked.all_settled()


async def _pass_on(
    answers: ObjectReceiveStream[SessionMessage],
    write: ObjectSendStream[SessionMessage],
    asked: PendingRequests,
) -> None:
    async with answers, write:
        async for item in answers:
            await write.send(item)
            if isinstance(item.message, JSONRPCResponse | JSONRPCError):
                asked.settle(item.message.id)


def _refusal(unread: Exception) -> JSONRPCError:
    line = unread.errors()[0]["input"] if isinstance(unread, ValidationError) else None
    garbled = refuse_lone_surrogates(line) if isinstance(line, str) else None
    unknown = ErrorData(
        code=PARSE_ERROR,
        message="The line is no JSON-RPC message.",
        data={"error": "invalid_request"},
    )
    return garbled or JSONRPCError(jsonrpc="2.0", id=None, error=unknown)
