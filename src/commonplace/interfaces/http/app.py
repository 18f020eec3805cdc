"""The HTTP application: the gate in front, MCP endpoints by path, REST and web pages behind."""

from collections.abc import Mapping
from typing import Any, cast

from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from commonplace.core.services import Services
from commonplace.interfaces.http.gate import Gate
from commonplace.interfaces.http.metrics import Metered, Meters


class HttpApp:
    """An ASGI application with the lifespan of `api`, which serves all paths but endpoints.

    MCP endpoints are in front of the router, which would try all its routes for each call.
    """

    def __init__(
        self, services: Services, meters: Meters, api: Starlette, endpoints: Mapping[str, ASGIApp]
    ) -> None:
        self.api, self.endpoints = api, endpoints
        gate = Metered(Gate(self._route, services.access, services.settings), meters)
        # Its types are those of another ASGI library.
        self._app: Any = ProxyHeadersMiddleware(
            cast(Any, gate), trusted_hosts=services.settings.proxies
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":  # before a proxy's headers name somebody else
            scope.setdefault("state", {})["peer"] = scope.get("client")
        await self._app(scope, receive, send)

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "").removesuffix("/")
        endpoint = self.endpoints.get(path) if scope["type"] == "http" else None
        if endpoint is not None:
            scope.update(endpoint=endpoint, path_params={})
        await (endpoint or self.api)(scope, receive, send)
