"""MCP over Streamable HTTP: the endpoints and their paths."""

from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, cast

from mcp.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Message, Receive, Scope, Send

from commonplace.core.services import Services
from commonplace.interfaces.http.gate import MAX_BODY, headers_of, not_json, problem
from commonplace.interfaces.mcp.errors import refuse_lone_surrogates, refuse_non_message
from commonplace.interfaces.mcp.fast_calls import FastCalls
from commonplace.interfaces.mcp.server import (
    ALL_TOOLS,
    ENDPOINTS,
    Context,
    Toolset,
    wants_results,
)
from commonplace.model import Caller


def mcp_endpoints(
    services: Services,
) -> tuple[dict[str, "Endpoint"], AbstractAsyncContextManager[None]]:
    """Return the endpoints by path, and the context to serve them in, behind the gate."""
    everything = _make_endpoint(Toolset(ALL_TOOLS, services))
    toolsets = {
        f"/mcp/{name}": _make_endpoint(Toolset(tools, services))
        for name, tools in ENDPOINTS.items()
    }
    endpoints = {"/mcp": everything, "/api/mcp": everything, **toolsets}
    return endpoints, _run_all([everything, *toolsets.values()])


def _make_endpoint(toolset: Toolset) -> "Endpoint":
    return Endpoint(toolset.server(_get_caller), toolset)


async def _get_caller(ctx: Context) -> Caller:
    request = cast(Request, ctx.request)
    return cast(Caller, request.state.caller)


@asynccontextmanager
async def _run_all(endpoints: "Iterable[Endpoint]") -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for endpoint in endpoints:
            await stack.enter_async_context(endpoint.run())
        yield


class Endpoint:
    """An ASGI application for one MCP server, stateless unless `stateful`.

    Answers are plain JSON, which costs less than a stream, unless the request asks for progress.
    Tool calls go straight to the toolset.
    """

    def __init__(
        self, server: Server[Any], toolset: Toolset | None = None, *, stateful: bool = False
    ) -> None:
        self._stateful, self._toolset = stateful, toolset
        self._calls = FastCalls(toolset.call) if toolset else None
        self._streaming = StreamableHTTPSessionManager(
            server, stateless=not stateful, max_request_body_size=MAX_BODY
        )
        self._plain = (
            self._streaming
            if stateful
            else StreamableHTTPSessionManager(
                server, stateless=True, json_response=True, max_request_body_size=MAX_BODY
            )
        )

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for manager in {self._streaming, self._plain}:
                await stack.enter_async_context(manager.run())
            if self._toolset:
                stack.push_async_callback(self._toolset.cancel_detached)
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST" and not self._stateful:
            message = "There are no sessions here to listen to or to end; send a POST."
            await problem(405, "method_not_allowed", message, {"Allow": "POST"})(
                scope, receive, send
            )
            return
        headers = headers_of(scope)
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            await not_json()(scope, receive, send)
            return
        body = await _read(receive)
        if (garbled := refuse_lone_surrogates(body)) is not None:
            await JSONResponse(garbled.model_dump(), status_code=400)(scope, receive, send)
            return
        tells = b'"progressToken"' in body
        if (
            self._calls and not tells and len(headers) == len(scope["headers"])
        ):  # none is said twice
            answer = await self._calls.answer(
                scope["state"]["caller"],
                headers,
                body,
                receive,
                errors_as_results=bool(scope["query_string"]) and wants_results(Request(scope)),
            )
            if answer is not None:
                await answer(scope, receive, send)
                return
        if (garbled := refuse_non_message(body)) is not None:
            await JSONResponse(garbled.model_dump(), status_code=400)(scope, receive, send)
            return
        manager = self._streaming if tells else self._plain
        await manager.handle_request(scope, _replay(body, receive), send)


async def _read(receive: Receive) -> bytes:
    """Return the whole body; the gate limits its size."""
    body, more = bytearray(), True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return bytes(body)


def _replay(body: bytes, receive: Receive) -> Receive:
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay
