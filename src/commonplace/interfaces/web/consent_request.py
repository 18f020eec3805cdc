"""A request for consent, checked by the MCP SDK."""

import re
from typing import Any

from mcp.server.auth.handlers.authorize import AuthorizationHandler
from mcp.server.auth.provider import AuthorizationParams, AuthorizeError
from mcp.shared.auth import OAuthClientInformationFull
from starlette.responses import RedirectResponse, Response

from commonplace.core.people.oauth import Asked
from commonplace.errors import CommonplaceError
from commonplace.interfaces.http.oauth_handlers import Client, redirect_with
from commonplace.interfaces.web.request import WebRequest

CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")  # of S256
SENT = (
    *("client_id", "redirect_uri", "response_type", "scope", "state", "resource"),
    *("code_challenge", "code_challenge_method"),
)


class ConsentRequest:
    """What the SDK's check of a request needs, and what it found."""

    def __init__(self, request: WebRequest) -> None:
        self._oauth, self._issuer = request.services.oauth, request.services.settings.issuer
        self._address = request.address
        self._http = request.http
        is_post = request.http.method == "POST"
        fields: Any = request.sent if is_post else request.http.query_params
        self.sent = {name: str(fields[name]) for name in SENT if name in fields}
        self.asked: Asked | None = None
        self.error: CommonplaceError | None = None

    async def check(self) -> Response:
        """Set `asked`, or return the refusal."""
        handler: Any = AuthorizationHandler
        refusal: Response = await handler(self).handle(self._http)
        return refusal

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
