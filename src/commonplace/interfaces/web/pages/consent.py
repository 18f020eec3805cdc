"""Consent: a signed-in person gives an OAuth client access to a library, or does not."""

import json
import re
from typing import Any
from urllib.parse import quote, urlencode

from mcp.server.auth.handlers.authorize import AuthorizationHandler
from mcp.server.auth.provider import AuthorizationParams, AuthorizeError
from mcp.shared.auth import OAuthClientInformationFull
from starlette.responses import RedirectResponse, Response

from commonplace.core.people.accounts import caller_in
from commonplace.core.people.oauth import Asked, Consent
from commonplace.core.people.oauth_clients import origin_of
from commonplace.errors import CommonplaceError, ForbiddenScope, Invalid, NotFound
from commonplace.interfaces.http.oauth import Client, redirect_with
from commonplace.interfaces.web.headers import AUTHORIZE, allow_form_target, allow_opener
from commonplace.interfaces.web.pages.tokens import expiries
from commonplace.interfaces.web.request import WebRequest, get, post, whole_number
from commonplace.model import TO_READ, folder_list, is_loopback

LIFETIMES = {"1": "1 day", "30": "30 days", "90": "90 days", "365": "1 year"}
CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")  # of S256
SENT = (
    *("client_id", "redirect_uri", "response_type", "scope", "state", "resource"),
    *("code_challenge", "code_challenge_method"),
)


class _Request:
    """What the SDK's check of a request needs, and what it found."""

    def __init__(self, request: WebRequest) -> None:
        self._oauth, self._issuer = request.services.oauth, request.services.settings.issuer
        self._address = request.address
        is_post = request.http.method == "POST"
        fields: Any = request.sent if is_post else request.http.query_params
        self.sent = {name: str(fields[name]) for name in SENT if name in fields}
        self.asked: Asked | None = None
        self.error: CommonplaceError | None = None

    async def get_client(self, client_id: str) -> Client | None:
        try:
            known = await self._oauth.clients.find(client_id, self._address)
        except CommonplaceError as error:
            self.error = error
            return None
        return Client(client_id=client_id, known=known, sent=self.sent.get("redirect_uri"))

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        assert isinstance(client, Client)
        resource = self._oauth.find_resource(params.resource)
        if resource is None:
            raise AuthorizeError("invalid_target", "The resource does not belong to this server.")
        # Left out, the method would be `plain`.
        if self.sent.get("code_challenge_method") != "S256":
            raise AuthorizeError("invalid_request", "The code_challenge_method must be S256.")
        if not CHALLENGE.fullmatch(params.code_challenge):
            raise AuthorizeError("invalid_request", "The code_challenge must be one of S256.")
        uri = client.sent or client.known.redirect_uris[0]
        scopes, challenge = tuple(params.scopes or ()), params.code_challenge
        explicit = params.redirect_uri_provided_explicitly
        self.asked = Asked(client.known, uri, scopes, challenge, resource, explicit)
        return uri

    def back(self, **values: str) -> Response:
        """Send the browser back to the client with our answer."""
        assert self.asked is not None
        state, uri = self.sent.get("state"), self.asked.redirect_uri
        url = redirect_with(uri, self._issuer, **values, state=state)
        headers = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
        return RedirectResponse(url, 303, headers)

    def with_issuer(self, refusal: Response) -> Response:
        """Add who we are to an error that goes to the client."""
        location = redirect_with(refusal.headers["location"], self._issuer)
        return RedirectResponse(location, 302, {"Cache-Control": "no-store"})


async def authorize(request: WebRequest) -> Response:
    """Show the page, or take its answer."""
    wanted = _Request(request)
    handler: Any = AuthorizationHandler
    refusal = await handler(wanted).handle(request.http)
    if wanted.asked is None:
        answer = _refuse(request, wanted, refusal)
    elif request.http.method == "POST":
        answer = await _decide(request, wanted, wanted.asked)
    else:
        answer = await _show(request, wanted, wanted.asked)
    return allow_opener(answer, AUTHORIZE)


async def _show(request: WebRequest, wanted: _Request, asked: Asked) -> Response:
    if request.query("prompt") == "none":
        return wanted.back(error="login_required")
    if request.visitor is None:
        address = f"{AUTHORIZE}?{request.http.url.query}"
        return request.redirect(f"/sign-in?next={quote(address)}")
    return await _page(request, wanted, asked, request.query("library"))


async def _decide(request: WebRequest, wanted: _Request, asked: Asked) -> Response:
    if request.text("answer") != "connect":
        request.services.oauth.deny()
        return wanted.back(error="access_denied")
    library = request.text("library")
    consent = Consent(
        library,
        request.text("write") == "1",
        None if request.text("sees") == "all" else tuple(request.form_list("folder")),
        request.text("kb_only") == "1",
        whole_number(request.text("days")) or 0,
    )
    try:
        code = await request.services.oauth.grant(request.user, asked, consent)
    except Invalid as error:
        return await _page(request, wanted, asked, library, error)
    return wanted.back(code=code)


def _refuse(request: WebRequest, wanted: _Request, refusal: Response) -> Response:
    """Answer the client where it is known, and else the person."""
    if refusal.status_code == 302:
        return wanted.with_issuer(refusal)
    if wanted.error is None:
        message = json.loads(bytes(refusal.body))["error_description"]
    elif isinstance(wanted.error, NotFound):
        message = wanted.error.message
    else:
        raise wanted.error
    return request.page("error.html", 400, title="Cannot connect", message=message)


async def _page(
    request: WebRequest,
    wanted: _Request,
    asked: Asked,
    library_id: str,
    error: CommonplaceError | None = None,
) -> Response:
    if request.user.viewing is not None:
        raise ForbiddenScope('Leave "View as" first.')
    caller = caller_in(request.user, library_id or request.user.library.library_id)
    libraries = [
        (library.name, f"{AUTHORIZE}?{urlencode(wanted.sent | {'library': library.library_id})}")
        for library in request.user.libraries
        if library.library_id != caller.library_id
    ]
    page = request.form_page(
        "consent.html",
        error,
        asked=asked,
        sent=wanted.sent,
        library=next(
            each for each in request.user.libraries if each.library_id == caller.library_id
        ),
        libraries=libraries,
        folders=folder_list(await request.services.folders.list_folders(caller, TO_READ)),
        may_write=caller.can_write and "write" in asked.scopes,
        here=is_loopback(asked.redirect_uri) or asked.redirect_host.endswith(":"),
        lifetimes=expiries(LIFETIMES),
    )
    return allow_form_target(page, origin_of(asked.redirect_uri))


ROUTES = (get(AUTHORIZE, authorize, open=True), post(AUTHORIZE, authorize, open=True))
