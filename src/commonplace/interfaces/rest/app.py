"""The REST application: routes, errors in one shape, OpenAPI document and page."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import ASGIApp, Receive, Scope, Send

from commonplace.core.services import Services
from commonplace.errors import CommonplaceError
from commonplace.interfaces.http.gate import (
    error_response,
    internal_error,
    largest_body,
    problem,
    takes_token,
    too_large,
)
from commonplace.interfaces.http.metrics import Meters
from commonplace.interfaces.http.oauth import oauth_routes
from commonplace.interfaces.rest import files, probes, transcription_webhook, uploads
from commonplace.interfaces.rest.openapi import docs_routes
from commonplace.interfaces.rest.routes import action_routes

log = logging.getLogger(__name__)
EMBEDDER_SECONDS = 30.0  # until an embedder that did not work is asked again


def rest_app(
    services: Services,
    meters: Meters,
    running: AbstractAsyncContextManager[None],
    pages: ASGIApp,
) -> Starlette:
    """Build the REST API. `running` is open while it serves; `pages` serves the web app's paths."""
    app = Starlette(
        routes=[
            *action_routes(),
            *uploads.ROUTES,
            *files.ROUTES,
            *transcription_webhook.ROUTES,
            *probes.ROUTES,
            *docs_routes(),
            *oauth_routes(services),
        ],
        lifespan=lambda app: _lifespan(app, services, running),
        exception_handlers={
            CommonplaceError: _handle_error,
            HTTPException: _handle_http,
            Exception: _handle_unexpected,
        },
    )
    app.state.services, app.state.meters, app.state.embedder = services, meters, "loading"
    app.router.redirect_slashes = False
    app.router.default = _Pages(pages)
    app.state.pages = pages
    return app


class _Pages:
    """Serve paths of the web app; unknown paths of the API are 404."""

    def __init__(self, pages: ASGIApp) -> None:
        self._pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if takes_token(scope["path"]):
            raise HTTPException(404)
        await self._pages(scope, receive, send)


@asynccontextmanager
async def _lifespan(
    app: Starlette, services: Services, running: AbstractAsyncContextManager[None]
) -> AsyncIterator[None]:
    async with running:
        warming = asyncio.create_task(_warm_up(app, services))
        yield
        warming.cancel()
        await asyncio.wait([warming])


async def _warm_up(app: Starlette, services: Services) -> None:
    """Load the model before somebody waits for it, and the library."""
    while app.state.embedder != "loaded":
        try:
            await services.embedder.query("ready")
            app.state.embedder = "loaded"
            await services.search.warm()
        except CommonplaceError as error:
            if app.state.embedder != "failed" and not services.models.missing:
                log.warning("The embedder does not work yet: %s", error.message)
            app.state.embedder = "failed"
            await asyncio.sleep(EMBEDDER_SECONDS)


# -- errors


async def _handle_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, CommonplaceError)
    return error_response(error)


async def _handle_unexpected(request: Request, error: Exception) -> Response:
    return internal_error()  # the gate logs it


async def _handle_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    match error.status_code:
        case 404:
            return problem(
                404,
                "not_found",
                "There is nothing at this path; /openapi.json names the paths there are.",
            )
        case 405:
            allowed = ", ".join(_allowed_methods(request))
            return problem(
                405, "method_not_allowed", f"This path takes {allowed}.", {"Allow": allowed}
            )
        case 413:
            return too_large(largest_body(request.scope))
        case status:
            return problem(status, "invalid_request", f"{error.detail}.")


def _allowed_methods(request: Request) -> list[str]:
    """Return the methods of all routes at this path; the router names only the first one's."""
    at_path = [
        route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE
    ]
    named = [
        route for route in at_path if route.path == request.scope["path"]
    ]  # `/disks/batch` is no disk's id
    at_path = named or at_path
    return sorted({method for route in at_path for method in route.methods or ()} - {"HEAD"})
