"""The web app as one ASGI application: its routes, what surrounds each of them, and errors as pages."""

import logging
from collections.abc import Sequence
from functools import partial
from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import Message, Receive, Scope, Send

from commonplace.core.services import Services
from commonplace.errors import CommonplaceError, Invalid, Unauthorized
from commonplace.interfaces.http.gate import (
    MAX_ANONYMOUS_BODY,
    STATUS,
    bounded,
    error_response,
    problem,
)
from commonplace.interfaces.web.jinja import TYPES, Templates
from commonplace.interfaces.web.pages import (
    account,
    add,
    disks,
    folders,
    graph,
    health,
    library,
    people,
    published_disk,
    reader,
    review,
    search,
    sign_in,
    tasks,
    tokens,
)
from commonplace.interfaces.web.request import Visit
from commonplace.interfaces.web.route import Door

log = logging.getLogger(__name__)
PARTS: Sequence[Sequence[Door]] = (
    library.DOORS,
    folders.DOORS,
    add.DOORS,
    reader.DOORS,
    published_disk.DOORS,
    search.DOORS,
    tasks.DOORS,
    graph.DOORS,
    disks.DOORS,
    review.DOORS,
    tokens.DOORS,
    people.DOORS,
    health.DOORS,
    account.DOORS,
    sign_in.DOORS,
)
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    # Not no-referrer: with it, browsers send forms without saying where they come from.
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "private, no-cache",
}


class WebApp:
    """Everything that is neither API nor probe. The Gate is expected around it."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._templates = Templates()
        self.doors = [door for part in PARTS for door in part]
        routes = [
            Route(door.path, partial(self._answer, door), methods=[door.method])
            for door in self.doors
        ]
        static = Route("/static/{version}/{name}", self._static, methods=["GET"])
        icon = Route("/favicon.ico", self._icon, methods=["GET"])
        self._router = Router([static, icon, *routes], redirect_slashes=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_hardened(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message.setdefault("headers", []))
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self._router(scope, receive, send_hardened)
        except HTTPException as error:
            response = await self._nothing(Request(scope, receive), error)
            await response(scope, receive, send_hardened)

    async def _nothing(self, request: Request, error: HTTPException) -> Response:
        visit = await Visit.begin(request, self._services, self._templates)
        return visit.seal(_no_entry(visit) if visit.visitor is None else _refused(visit, error))

    async def _answer(self, door: Door, request: Request) -> Response:
        visit = await Visit.begin(request, self._services, self._templates)
        try:
            if visit.visitor is None and not door.open:
                return visit.seal(_no_entry(visit))
            if request.method not in ("GET", "HEAD"):
                if visit.visitor is None:
                    visit.request = Request(
                        request.scope, bounded(request.receive, MAX_ANONYMOUS_BODY)
                    )
                await visit.checked_form()
            if await visit.sent_nul():
                raise Invalid(
                    "What was sent contains a NUL character; remove it."
                )  # Postgres keeps none
            return visit.seal(await door.handler(visit))
        except CommonplaceError as error:
            return visit.seal(_failed(visit, error))
        except HTTPException:
            raise
        except Exception:
            log.exception("%s %s failed unexpectedly", request.method, request.url.path)
            message = "The server failed; its log says why."
            if not visit.wants_page:
                return problem(500, "internal_error", message)
            return visit.seal(
                visit.page("error.html", 500, title="Something broke", message=message)
            )
        finally:
            await visit.request.close()  # the files that a form brought

    async def _icon(self, request: Request) -> Response:
        """Asked for beside what is no page of ours, such as a PDF."""
        return Response(
            self._templates.static["mark.svg"],
            media_type=TYPES[".svg"],
            headers={"Cache-Control": "public, max-age=86400"},
        )

    async def _static(self, request: Request) -> Response:
        """Packed where the browser can unpack it. Pages are not: their length would tell of what is in them."""
        name, packs = (
            request.path_params["name"],
            "gzip" in request.headers.get("accept-encoding", ""),
        )
        body = (self._templates.packed if packs else self._templates.static).get(name)
        if body is None:
            return await self._nothing(request, HTTPException(404))
        kept = (
            "public, max-age=31536000, immutable"
            if request.path_params["version"] == self._templates.version
            else "no-cache"
        )
        ending = name[name.rindex(".") :]
        return Response(
            body,
            media_type=TYPES[ending],
            headers={
                "Cache-Control": kept,
                "Vary": "Accept-Encoding",
                **({"Content-Encoding": "gzip"} if packs else {}),
            },
        )


def _no_entry(visit: Visit) -> Response:
    """To the sign-in page, and from there to where they wanted to go."""
    if visit.request.method in ("GET", "HEAD") and visit.wants_page:
        url = visit.request.url
        wanted = url.path + (f"?{url.query}" if url.query else "")
        return visit.go("/sign-in" if wanted == "/" else f"/sign-in?next={quote(wanted)}")
    return error_response(
        Unauthorized(
            "Sign in first; programs send `Authorization: Bearer sk_...` to /api and /mcp."
        )
    )


def _failed(visit: Visit, error: CommonplaceError) -> Response:
    if not visit.wants_page:
        return error_response(error)
    if visit.request.method == "POST" and visit.visitor is not None and visit.came_from:
        return visit.go(visit.back, error.message, wrong=True)
    status = STATUS.get(type(error), 500)
    titles = {401: "Not signed in", 403: "Not allowed", 404: "Not found", 429: "Slow down"}
    page = visit.page(
        "error.html", status, title=titles.get(status, "That did not work"), message=error.message
    )
    if "retry_after_sec" in error.data:
        page.headers["Retry-After"] = str(error.data["retry_after_sec"])
    return page


def _refused(visit: Visit, error: HTTPException) -> Response:
    message = (
        "There is nothing at this address." if error.status_code == 404 else f"{error.detail}."
    )
    if not visit.wants_page:
        return problem(
            error.status_code,
            "not_found" if error.status_code == 404 else "invalid_request",
            message,
        )
    title = "Not found" if error.status_code == 404 else "That did not work"
    return visit.page("error.html", error.status_code, title=title, message=message)
