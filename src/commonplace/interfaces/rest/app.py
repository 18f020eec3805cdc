"""The REST application: routes, errors in one shape, OpenAPI document and page."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import ASGIApp, Receive, Scope, Send

import commonplace
from commonplace.core.services import Services
from commonplace.errors import CommonplaceError
from commonplace.interfaces.actions.validation_messages import error_sentence
from commonplace.interfaces.http.gate import (
    error_response,
    internal_error,
    largest_body,
    not_json,
    problem,
    takes_token,
    too_large,
)
from commonplace.interfaces.http.metrics import Meters
from commonplace.interfaces.rest import (
    corrections,
    disks,
    entities,
    feeds,
    folders,
    graph,
    items,
    members,
    memory,
    probes,
    tasks,
    tokens,
    transcription_webhook,
    uploads,
    versions,
)
from commonplace.interfaces.rest.openapi import docs_routes

log = logging.getLogger(__name__)
EMBEDDER_SECONDS = 30.0  # until an embedder that did not work is asked again
DESCRIPTION = (
    "Keep texts and pages in a library, file them in folders, and search them by meaning and by "
    "words. "
    "Every request carries `Authorization: Bearer sk_...`; `commonplace token create` makes a "
    "token."
)
NO_TELEMETRY: Any = dict.fromkeys(
    ["tracing", "metrics", "logs", "operation_spans", "auto_configure"], False
)


def rest_app(
    services: Services,
    meters: Meters,
    running: AbstractAsyncContextManager[None],
    pages: ASGIApp,
) -> FastAPI:
    """Build the REST API. `running` is open while it serves; `pages` serves the web app's paths."""
    app = FastAPI(
        title="Commonplace",
        version=commonplace.__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        telemetry=NO_TELEMETRY,
        lifespan=lambda app: _lifespan(app, services, running),
        exception_handlers={
            CommonplaceError: _handle_error,
            RequestValidationError: _handle_invalid,
            HTTPException: _handle_http,
            Exception: _handle_unexpected,
        },
    )
    app.state.services, app.state.meters, app.state.embedder = services, meters, "loading"
    parts = (
        items,
        versions,
        memory,
        disks,
        entities,
        corrections,
        uploads,
        transcription_webhook,
        feeds,
        folders,
        graph,
        tasks,
        tokens,
        members,
        probes,
    )
    own = [route for part in parts for route in part.router.routes]
    app.router.routes.extend([*own, *docs_routes()])
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
    app: FastAPI, services: Services, running: AbstractAsyncContextManager[None]
) -> AsyncIterator[None]:
    async with running:
        warming = asyncio.create_task(_warm_up(app, services))
        yield
        warming.cancel()
        await asyncio.wait([warming])


async def _warm_up(app: FastAPI, services: Services) -> None:
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


async def _handle_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    details = error.errors()
    if details[0]["type"] == "json_invalid":
        return problem(400, "invalid_json", f"The body is not JSON: {details[0]['ctx']['error']}.")
    if details[0]["type"] == "model_attributes_type" and "json" not in request.headers.get(
        "content-type", ""
    ):
        return not_json()
    message = " ".join(_sentence(detail) for detail in details[:10])
    return problem(422, "invalid_request", message.encode("utf-8", "replace").decode())


def _sentence(detail: dict[str, Any]) -> str:
    where, *path = detail["loc"]
    name = f"`{'.'.join(str(part) for part in path)}`" if path else f"The {where}"
    if detail["type"] == "value_error" and not path:
        name = ""
    return error_sentence(detail, name, "/openapi.json names the ones there are")


async def _handle_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    match error.status_code:
        case 400:  # what Python's JSON reader gives up on without saying where
            return problem(
                400,
                "invalid_json",
                "The body cannot be read as JSON: send UTF-8, not nested too deep, "
                "with numbers that are not too long.",
            )
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
    return sorted({method for route in at_path for method in route.methods or ()})
