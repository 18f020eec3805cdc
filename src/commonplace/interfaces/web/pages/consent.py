"""Consent: a signed-in person gives an OAuth client access to a library, or does not."""

import json
from typing import Any
from urllib.parse import quote, urlencode

from mcp.server.auth.handlers.authorize import AuthorizationHandler
from mcp.server.auth.provider import AuthorizationParams, AuthorizeError
from mcp.shared.auth import OAuthClientInformationFull
from starlette.responses import RedirectResponse, Response

from commonplace.core.people.accounts import caller_in
from commonplace.core.people.oauth import Asked, Consent
from commonplace.core.people.oauth_clients import origin_of
from commonplace.errors import CommonplaceError, ForbiddenScope, Invalid
from commonplace.interfaces.http.gate import STATUS
from commonplace.interfaces.http.oauth import Client, Provider, redirect_with
from commonplace.interfaces.web.headers import AUTHORIZE, allow_form_target, allow_opener
from commonplace.interfaces.web.request import WebRequest, get, post, whole_number
from commonplace.model import folder_list, is_loopback

LIFETIMES = {1: "1 day", 30: "30 days", 90: "90 days", 365: "1 year"}
CHALLENGE_LENGTHS = range(43, 129)
SENT = (
    *("client_id", "redirect_uri", "response_type", "scope", "state", "resource"),
    *("code_challenge", "code_challenge_method"),
)


class _Request(Provider):
    """What the SDK's check of a request needs, and what it found."""

    def __init__(self, request: WebRequest) -> None:
        super().__init__(request.services, address=request.address)
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
            raise AuthorizeError("invalid_target", "The resource is not one of this server.")
        if len(params.code_challenge) not in CHALLENGE_LENGTHS:
            raise AuthorizeError("invalid_request", "The code challenge must be one of S256.")
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


async def show(request: WebRequest) -> Response:
    return allow_opener(await _show(request), AUTHORIZE)


async def _show(request: WebRequest) -> Response:
    wanted = _Request(request)
    refusal = await AuthorizationHandler(wanted).handle(request.http)
    if wanted.asked is None:
        return _refuse(request, wanted, refusal)
    if request.query("prompt") == "none":
        return wanted.back(error="login_required")
    if request.visitor is None:
        address = f"{AUTHORIZE}?{request.http.url.query}"
        return request.redirect(f"/sign-in?next={quote(address)}")
    return await _page(request, wanted, wanted.asked, request.query("library"))


async def decide(request: WebRequest) -> Response:
    return allow_opener(await _decide(request), AUTHORIZE)


async def _decide(request: WebRequest) -> Response:
    wanted = _Request(request)
    refusal = await AuthorizationHandler(wanted).handle(request.http)
    if wanted.asked is None:
        return _refuse(request, wanted, refusal)
    if request.text("answer") != "connect":
        request.services.oauth.deny()
        return wanted.back(error="access_denied")
    library = request.text("library")
    folders = tuple(request.form_list("folder")) if request.text("sees") == "folders" else None
    consent = Consent(
        library,
        request.text("write") == "1",
        folders,
        request.text("kb_only") == "1",
        whole_number(request.text("days")) or 0,
    )
    try:
        code = await request.services.oauth.grant(request.user, wanted.asked, consent)
    except Invalid as error:
        return await _page(request, wanted, wanted.asked, library, error)
    return wanted.back(code=code)


def _refuse(request: WebRequest, wanted: _Request, refusal: Response) -> Response:
    """Answer the client where it is known, and else the person."""
    if refusal.status_code == 302:
        return wanted.with_issuer(refusal)
    error = wanted.error
    message = error.message if error else json.loads(bytes(refusal.body))["error_description"]
    status = STATUS.get(type(error), 400) if error else 400
    return request.page(
        "error.html", 400 if status == 404 else status, title="Cannot connect", message=message
    )


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
        folders=folder_list(await request.services.folders.list_folders(caller)),
        may_write=caller.can_write and "write" in asked.scopes,
        here=is_loopback(asked.redirect_uri) or asked.redirect_host.endswith(":"),
        lifetimes=LIFETIMES,
    )
    return allow_form_target(page, origin_of(asked.redirect_uri))


ROUTES = (get(AUTHORIZE, show, open=True), post(AUTHORIZE, decide, open=True))
