"""The MCP endpoints, loaded by the first request to one: the SDK takes as long to import as the
rest of the server."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING

from starlette.types import ASGIApp, Receive, Scope, Send

from commonplace.core.people.authorization import MCP_PATHS
from commonplace.core.services import Services

if TYPE_CHECKING:
    from commonplace.interfaces.mcp.http import Endpoint


class McpEndpoints:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._wanted = asyncio.Event()
        self._loaded: asyncio.Future[Mapping[str, Endpoint]] | None = None

    def by_path(self) -> dict[str, ASGIApp]:
        """Return the endpoints, to be served behind the gate."""
        return {path: _Endpoint(self, path) for path in MCP_PATHS}

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Serve the endpoints, from the first request on."""
        self._loaded = asyncio.get_running_loop().create_future()
        running = asyncio.create_task(self._run(self._loaded))
        try:
            yield
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running

    async def load(self) -> "Mapping[str, Endpoint]":
        assert self._loaded is not None, "not running"
        if not self._loaded.done():
            self._wanted.set()
            await asyncio.wait([self._loaded])  # others wait too, so it is never cancelled
        return self._loaded.result()

    async def _run(self, loaded: "asyncio.Future[Mapping[str, Endpoint]]") -> None:
        """The SDK's task groups must be left by the task that entered them."""
        await self._wanted.wait()
        try:
            await asyncio.to_thread(import_module, "commonplace.interfaces.mcp.http")
            from commonplace.interfaces.mcp.http import mcp_endpoints

            endpoints, running = mcp_endpoints(self._services)
        except Exception as error:
            loaded.set_exception(error)  # each request raises it
            return
        async with running:
            loaded.set_result(endpoints)
            await asyncio.Event().wait()


class _Endpoint:
    def __init__(self, endpoints: McpEndpoints, path: str) -> None:
        self._endpoints, self._path = endpoints, path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = (await self._endpoints.load())[self._path]
        await endpoint(scope, receive, send)
