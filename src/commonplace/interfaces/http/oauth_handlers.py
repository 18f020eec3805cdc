"""What programs post for OAuth: tokens, registration, revocation.

The handlers are the MCP SDK's, but for revocation. What they lack is here: an issuer without a
trailing slash, `none` as a method, addresses that are compared as they were sent, ports that
programs choose, hashed secrets, HTTP Basic, unknown scopes, and the check of `resource`.
"""

import base64
import json
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import unquote

from mcp.server.auth.handlers.register import RegistrationHandler
from mcp.server.auth.handlers.token import TokenHandler
from mcp.server.auth.middleware.client_auth import AuthenticationError, ClientAuthenticator
from mcp.server.auth.provider import (
    AuthorizationCode,
    RefreshToken,
    RegistrationError,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.settings import ClientRegistrationOptions
from mcp.shared.auth import InvalidRedirectUriError, OAuthClientInformationFull, OAuthToken
from pydantic import AnyUrl
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from commonplace.core.people.oauth import SCOPES, Issued
from commonplace.core.services import Services
from commonplace.errors import Invalid
from commonplace.interfaces.http.gate import Json, network_of
from commonplace.interfaces.http.oauth import GRANT_TYPES
from commonplace.model import Json as Values, OAuthClient, OAuthSecret, SecretKind, Token

TOKENS_A_MINUTE = 60  # from one address
Handler = Callable[[Services, Request], Awaitable[Response]]


async def _token(services: Services, request: Request) -> Response:
    await _limit(services, request)
    form = await _completed(request)
    grant_type = str(form.fields.get("grant_type", ""))
    known = grant_type in GRANT_TYPES
    if grant_type and not known:
        response = _error("unsupported_grant_type", "Use authorization_code or refresh_token.")
    else:
        grants: Any = Grants(services, form.fields)
        response = await TokenHandler(grants, Authenticator(services)).handle(form)
    if response.status_code != 200:
        services.oauth.tally[grant_type if known else "other", "refused"] += 1
    return response


async def _revoke(services: Services, request: Request) -> Response:
    """RFC 7009, whatever kind of token the client says it is."""
    await _limit(services, request)
    form = await _completed(request)
    try:
        client = await Authenticator(services).authenticate_request(form)
    except AuthenticationError as error:
        return _error("invalid_client", error.message, 401)
    if "token" not in form.fields:
        return _error("invalid_request", "Name the `token`.")
    await services.oauth.revoke(str(form.fields["token"]), client.client_id)
    return Response()


async def _register(services: Services, request: Request) -> Response:
    try:
        asked = json.loads(await request.body())
    except (ValueError, RecursionError):
        asked = None
    if not isinstance(asked, dict):
        return _error("invalid_client_metadata", "Send a JSON object.")
    # What is empty or null was left out.
    asked = {name: value for name, value in asked.items() if value not in (None, "")}
    registry: Any = Registry(services, asked, _address(request))
    completed = _Completed(request.scope, request.receive)
    completed.content = json.dumps(asked).encode()
    return await RegistrationHandler(registry, ClientRegistrationOptions(enabled=True)).handle(
        completed
    )


def _error(code: str, description: str, status: int = 400) -> Response:
    return Json({"error": code, "error_description": description}, status)


async def _limit(services: Services, request: Request) -> None:
    await services.oauth.clients.limit("token request", _address(request), TOKENS_A_MINUTE, 60)


def _address(request: Request) -> str:
    return network_of(request.client.host) if request.client else "unknown"


class _Completed(Request):
    """A request whose form or body has been read and completed."""

    fields: FormData
    content: bytes

    async def form(self, **_: Any) -> FormData:  # type: ignore[override]
        return self.fields

    async def body(self) -> bytes:
        return self.content


async def _completed(request: Request) -> _Completed:
    """Put the client's id and secret into the form wherever they were sent, and leave only scopes
    that we know."""
    async with request.form(max_files=0) as form_sent:
        sent = dict(form_sent.multi_items())
    scheme, _, encoded = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "basic":
        try:
            name, _, secret = base64.b64decode(encoded).decode().partition(":")
        except ValueError:  # no base64, or no text
            name, secret = "", ""
        sent.setdefault("client_id", unquote(name))
        sent["client_secret"] = unquote(secret)
    sent.setdefault("client_secret", "")
    if "scope" in sent:
        sent["scope"] = " ".join(known_scopes(str(sent["scope"])))
    form = _Completed(request.scope, request.receive)
    form.fields = FormData(sent)
    return form


def known_scopes(asked: str | None) -> list[str]:
    wanted = (asked or "").split()
    return [scope for scope in SCOPES if scope in wanted]


class Client(OAuthClientInformationFull):
    """A client as the SDK's handlers want it. `sent`: the redirect URI as it was sent, which the
    SDK would normalize."""

    known: OAuthClient
    sent: str | None = None

    def validate_redirect_uri(self, redirect_uri: AnyUrl | None) -> AnyUrl:
        only = self.known.redirect_uris[0] if len(self.known.redirect_uris) == 1 else None
        wanted = self.sent or only
        if wanted is None or not self.known.allows(wanted):
            raise InvalidRedirectUriError("The redirect URI is not one of the client's.")
        return AnyUrl(wanted)

    def validate_scope(self, requested_scope: str | None) -> list[str]:
        """Drop scopes that we do not know; who asks for none of ours asks for all."""
        return known_scopes(requested_scope) or [*SCOPES]


class Code(AuthorizationCode):
    row: OAuthSecret
    grant: Token


class Refresh(RefreshToken):
    row: OAuthSecret
    grant: Token


class Authenticator(ClientAuthenticator):
    """Checks secrets by their hashes."""

    def __init__(self, services: Services) -> None:
        self._clients = services.oauth.clients

    async def authenticate_request(self, request: Request) -> OAuthClientInformationFull:
        form = await request.form()
        client_id, secret = str(form.get("client_id", "")), str(form.get("client_secret", ""))
        known = await self._clients.authenticated(client_id, secret)
        if known is None:
            raise AuthenticationError("Unknown client, or wrong client secret.")
        return Client(client_id=client_id, known=known)


class Registry:
    """What the SDK's registration needs of the core. `asked`: what the client sent."""

    def __init__(self, services: Services, asked: Values, address: str) -> None:
        self._oauth, self._asked, self._address = services.oauth, asked, address

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        """Store a client and put what we made of it into `client_info`, which is the answer."""
        confidential = self._asked.get("token_endpoint_auth_method", "none") != "none"
        try:
            client, secret = await self._oauth.clients.register(
                client_info.client_name or "",
                self._asked["redirect_uris"],  # as sent: the SDK's are normalized
                self._address,
                confidential=confidential,
            )
        except Invalid as error:
            raise RegistrationError("invalid_redirect_uri", error.message) from None
        client_info.client_id, client_info.client_secret = client.id, secret
        client_info.scope = " ".join(known_scopes(client_info.scope) or SCOPES)
        client_info.grant_types = GRANT_TYPES
        if secret is None:
            client_info.token_endpoint_auth_method = "none"
            client_info.client_secret_expires_at = None


class Grants:
    """What the SDK's token endpoint needs of the core. `sent`: the request's form."""

    def __init__(self, services: Services, sent: FormData) -> None:
        self._oauth, self._sent = services.oauth, sent

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> Code | None:
        found = await self._oauth.find(SecretKind.CODE, authorization_code, client.client_id)
        if found is None:
            return None
        row, grant = found
        if row.redirect_uri != self._sent.get("redirect_uri"):
            return None
        return Code(
            code=authorization_code,
            scopes=row.scopes.split(),
            expires_at=row.expires_at.timestamp(),
            client_id=client.client_id,
            code_challenge=row.challenge or "",
            redirect_uri=AnyUrl(row.redirect_uri or "https://left.out"),
            redirect_uri_provided_explicitly=row.redirect_uri is not None,
            resource=grant.resource,
            row=row,
            grant=grant,
        )

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: Code
    ) -> OAuthToken:
        self._check_resource(authorization_code.grant)
        issued = await self._oauth.redeem(authorization_code.row, authorization_code.grant)
        return _answer_of(issued, "The code was used before; the connection is revoked.")

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> Refresh | None:
        found = await self._oauth.find(SecretKind.REFRESH, refresh_token, client.client_id)
        if found is None:
            return None
        row, grant = found
        return Refresh(
            token=refresh_token,
            client_id=client.client_id,
            scopes=row.scopes.split(),
            row=row,
            grant=grant,
        )

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: Refresh, scopes: list[str]
    ) -> OAuthToken:
        self._check_resource(refresh_token.grant)
        issued = await self._oauth.refresh(
            refresh_token.token,
            refresh_token.row,
            refresh_token.grant,
            " ".join(scope for scope in SCOPES if scope == "read" or scope in scopes),
        )
        return _answer_of(issued, "The token was used before; the connection is revoked.")

    def _check_resource(self, grant: Token) -> None:
        """The token must be asked for what the person was asked for."""
        resource = self._sent.get("resource")
        if resource and self._oauth.find_resource(str(resource)) != grant.resource:
            raise TokenError("invalid_target", "The resource is not the one of the grant.")


def _answer_of(issued: Issued | None, otherwise: str) -> OAuthToken:
    if issued is None:
        raise TokenError("invalid_grant", otherwise)
    return OAuthToken(
        access_token=issued.access,
        expires_in=issued.seconds,
        scope=issued.scopes,
        refresh_token=issued.refresh,
    )


def redirect_with(uri: str, issuer: str, **values: str | None) -> str:
    """Return a client's redirect URI with our answer in it."""
    return construct_redirect_uri(uri, **values, iss=issuer)


HANDLERS: dict[str, Handler] = {"token": _token, "register": _register, "revoke": _revoke}
