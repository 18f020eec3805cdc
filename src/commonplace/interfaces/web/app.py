"""The web app as one ASGI application: routes, response headers, error pages."""

import asyncio
import json
import logging
from collections.abc import Sequence
from functools import partial
from urllib.parse import quote, unquote

from starlette import routing
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Match
from starlette.types import Message, Receive, Scope, Send

from commonplace.core.services import Services
from commonplace.errors import CommonplaceError, Invalid, Unauthorized
from commonplace.interfaces.http.gate import (
    MAX_ANONYMOUS_BODY,
    WELL_KNOWN,
    bounded,
    error_response,
    internal_error,
    problem,
)
from commonplace.interfaces.web import live
from commonplace.interfaces.web.headers import HEADERS, OPENER
from commonplace.interfaces.web.jinja import TYPES, Templates
from commonplace.interfaces.web.pages import (
    account,
    add,
    consent,
    crawls,
    disks,
    editor,
    graph,
    health,
    imports,
    library,
    people,
    reader,
    recent,
    review,
    search,
    sign_in,
    tags,
    tasks,
    tokens,
    trash,
)
from commonplace.interfaces.web.refill import refill
from commonplace.interfaces.web.request import Elsewhere, Route, WebRequest

log = logging.getLogger(__name__)
PARTS: Sequence[Sequence[Route]] = (
    live.ROUTES,
    library.ROUTES,
    trash.ROUTES,
    recent.ROUTES,
    add.ROUTES,
    imports.ROUTES,
    reader.ROUTES,
    editor.ROUTES,
    tags.ROUTES,
    crawls.ROUTES,
    search.ROUTES,
    tasks.ROUTES,
    graph.ROUTES,
    disks.ROUTES,
    review.ROUTES,
    tokens.ROUTES,
    people.ROUTES,
    health.ROUTES,
    account.ROUTES,
    sign_in.ROUTES,
    consent.ROUTES,
)
KEPT = (OPENER, "Clear-Site-Data")  # of a redirect that a script follows
TITLES = {401: "Not signed in", 403: "Not allowed", 404: "Not found", 429: "Too many requests"}


class WebApp:
    """Serves everything but API and probes, behind the gate."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._templates = Templates()
        self.routes = [route for part in PARTS for route in part]
        self._router = routing.Router(
            [
                routing.Route("/static/{version}/{name}", self._static, methods=["GET"]),
                routing.Route("/favicon.ico", self._icon, methods=["GET"]),
                *(
                    routing.Route(route.path, partial(self._answer, route), methods=[route.method])
                    for route in self.routes
                ),
            ],
            redirect_slashes=False,
        )

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
            response = await self._answer_missing(Request(scope, receive), error)
            await response(scope, receive, send_hardened)

    async def _answer_missing(self, http: Request, error: HTTPException) -> Response:
        """Answer what no route serves: an error for those who are known, else the sign-in page."""
        answer = problem(error.status_code, "invalid_request", f"{error.detail}.")
        if error.status_code == 404:
            answer = problem(404, "not_found", "This page does not exist.")
        if http.url.path.startswith(WELL_KNOWN):  # by programs, which do not expect a sign-in page
            return answer
        request = await WebRequest.begin(http, self._services, self._templates)
        if request.visitor is not None:
            return request.set_cookies(_error_page(request, answer))
        scheme, _, credential = http.headers.get("authorization", "").partition(" ")
        if error.status_code == 404 and scheme.lower() == "bearer":
            await self._services.access.identify(credential.strip())
            return answer
        return request.set_cookies(_ask_to_sign_in(request))

    async def _answer(self, route: Route, http: Request) -> Response:
        request = await WebRequest.begin(http, self._services, self._templates)
        try:
            await request.read_frame()
            response = await _respond(route, request)
        except Elsewhere as address:
            response = request.redirect(str(address))
        except CommonplaceError as error:
            response = await self._refuse(request, error)
            await request.end_step(error.message)  # what was done before
        except HTTPException:
            raise
        except Exception:
            log.exception("%s %s failed unexpectedly", http.method, http.url.path)
            response = _error_page(request, internal_error(), "Something went wrong")
        finally:
            await request.http.close()  # the files that a form brought
        await request.keep_note()
        if request.by_script and "location" in response.headers:
            kept = {name: response.headers[name] for name in KEPT if name in response.headers}
            response = JSONResponse({"next": response.headers["location"]}, headers=kept)
        return request.set_cookies(response)

    async def _refuse(self, request: WebRequest, error: CommonplaceError) -> Response:
        """Answer a form with its page again, as it was sent; a script with the field as well."""
        http = request.http
        answer = error_response(error, **({"field": error.field} if request.by_script else {}))
        if request.by_script or http.method != "POST" or not request.wants_page:
            return _error_page(request, answer)
        address = request.referrer or http.url.path
        action = f"{http.url.path}?{http.url.query}".removesuffix("?")
        page = await self._page_at(http, address) if request.is_own else None
        if page is not None:
            said = (request.sent, error.message, error.field)
            html = await asyncio.to_thread(refill, page.body, address, action, *said)
            if html:
                page.body, page.status_code = html, answer.status_code
                page.headers["content-length"] = str(len(html))
                return page
        if request.visitor and request.referrer:
            return request.redirect(request.back, error.message, wrong=True)
        return _error_page(request, answer)

    async def _page_at(self, http: Request, address: str) -> Response | None:
        """Return the page at an address of ours as this browser gets it; None if it has none."""
        path, _, query = address.partition("?")
        scope = {**http.scope, "method": "GET", "path": unquote(path), "path_params": {}}
        scope["query_string"] = query.encode()
        for route in self._router.routes:
            match, found = route.matches(scope)
            if match is Match.FULL and isinstance(route, routing.Route):
                page: Response = await route.endpoint(Request({**scope, **found}))
                return page if (type(page), page.status_code) == (HTMLResponse, 200) else None
        return None

    async def _icon(self, http: Request) -> Response:
        """Serve the icon that browsers request beside files such as a PDF."""
        return Response(
            self._templates.static["mark.svg"],
            media_type=TYPES[".svg"],
            headers={"Cache-Control": "public, max-age=86400"},
        )

    async def _static(self, http: Request) -> Response:
        """Serve a static file, compressed if possible. Pages are not: their length could leak
        content."""
        name, packs = http.path_params["name"], "gzip" in http.headers.get("accept-encoding", "")
        body = (self._templates.packed if packs else self._templates.static).get(name)
        if body is None:
            return await self._answer_missing(http, HTTPException(404))
        kept = (
            "public, max-age=31536000, immutable"
            if http.path_params["version"] == self._templates.version
            else "no-cache"
        )
        return Response(
            body,
            media_type=TYPES[name[name.rindex(".") :]],
            headers={
                "Cache-Control": kept,
                "Vary": "Accept-Encoding",
                **({"Content-Encoding": "gzip"} if packs else {}),
            },
        )


async def _respond(route: Route, request: WebRequest) -> Response:
    http = request.http
    if request.visitor is None and not route.open:
        return _ask_to_sign_in(request)
    if http.method not in ("GET", "HEAD"):
        if request.visitor is None:
            request.http = Request(http.scope, bounded(http.receive, MAX_ANONYMOUS_BODY))
        await request.check_form()
    if request.has_nul():  # Postgres keeps none
        raise Invalid("The request contains a NUL character. Remove it and try again.")
    return await route.handler(request)


def _ask_to_sign_in(request: WebRequest) -> Response:
    """Redirect to the sign-in page, and from there back."""
    if request.http.method in ("GET", "HEAD") and request.wants_page:
        url = request.http.url
        wanted = url.path + (f"?{url.query}" if url.query else "")
        return request.redirect("/sign-in" if wanted == "/" else f"/sign-in?next={quote(wanted)}")
    if request.wants_page:  # the browser still has the form
        return _error_page(
            request,
            error_response(
                Unauthorized(
                    "You are signed out, and nothing was saved yet. Sign in in another tab, then "
                    + ("send this again." if request.by_script else "reload this page."),
                    sign_in="/sign-in",
                )
            ),
        )
    return error_response(
        Unauthorized(
            "Sign in first; programs send `Authorization: Bearer sk_...` to /api and /mcp."
        )
    )


def _error_page(
    request: WebRequest, answer: Response, title: str = "Something went wrong"
) -> Response:
    """Return an error as a page for people, and as it is for scripts."""
    if request.by_script or not request.wants_page:
        return answer
    said = json.loads(bytes(answer.body))
    page = request.page(
        "error.html",
        answer.status_code,
        title=TITLES.get(answer.status_code, title),
        message=said["message"],
        sign_in=said.get("sign_in"),
    )
    if "retry-after" in answer.headers:
        page.headers["Retry-After"] = answer.headers["retry-after"]
    return page
