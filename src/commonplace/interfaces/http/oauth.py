"""OAuth for programs: metadata, tokens, registration, revocation. People consent in the web app."""

import asyncio
from functools import partial
from importlib import import_module

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from commonplace.core.people.authorization import MCP_PATHS
from commonplace.core.people.oauth import ALSO_KNOWN, SCOPES
from commonplace.core.services import Services
from commonplace.errors import RateLimited
from commonplace.interfaces.http.gate import RESOURCE_METADATA, WELL_KNOWN, Json

METHODS = ["none", "client_secret_post", "client_secret_basic"]
GRANT_TYPES = ["authorization_code", "refresh_token"]
CACHED = {"Cache-Control": "public, max-age=3600"}
NO_STORE = {"Cache-Control": "no-store"}
POSTS = ("token", "register", "revoke")


def oauth_routes(services: Services) -> list[Route]:
    """Return the routes of programs, all of which may be called from pages of any origin."""
    issuer = services.settings.issuer
    routes = [
        Route(RESOURCE_METADATA + path, partial(_resource_metadata, services, issuer + path))
        for path in ("", *MCP_PATHS)
    ]
    routes.append(
        Route(WELL_KNOWN + "oauth-authorization-server", partial(_server_metadata, services))
    )
    for name in POSTS:
        endpoint = partial(_answer, services, name)
        routes.append(Route(f"/oauth/{name}", endpoint, methods=["POST"]))
    return routes


# -- metadata


async def _resource_metadata(services: Services, resource: str, request: Request) -> Response:
    """RFC 9728, of one MCP endpoint or of the server."""
    issuer = services.settings.issuer
    found = {
        "resource": resource,
        "authorization_servers": [issuer],
        "scopes_supported": SCOPES,
        "bearer_methods_supported": ["header"],
        "resource_name": "Commonplace",
        "resource_documentation": f"{issuer}/docs",
    }
    return Json(found, headers=CACHED)


async def _server_metadata(services: Services, request: Request) -> Response:
    """RFC 8414."""
    issuer = services.settings.issuer
    found = {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/oauth/authorize",
        "token_endpoint": f"{issuer}/oauth/token",
        "registration_endpoint": f"{issuer}/oauth/register",
        "revocation_endpoint": f"{issuer}/oauth/revoke",
        "scopes_supported": [*SCOPES, ALSO_KNOWN],
        "response_types_supported": ["code"],
        "grant_types_supported": GRANT_TYPES,
        "token_endpoint_auth_methods_supported": METHODS,
        "revocation_endpoint_auth_methods_supported": METHODS,
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
    }
    if services.settings.oauth_client_documents:
        found["client_id_metadata_document_supported"] = True
    return Json(found, headers=CACHED)


# -- what programs post


async def _answer(services: Services, name: str, request: Request) -> Response:
    # The SDK is imported when it is used: it takes as long as the rest of the server.
    await asyncio.to_thread(import_module, "commonplace.interfaces.http.oauth_handlers")
    from commonplace.interfaces.http.oauth_handlers import HANDLERS

    try:
        response = await HANDLERS[name](services, request)
    except RateLimited as limited:
        wait = limited.data["retry_after_sec"]
        error = {"error": "temporarily_unavailable", "error_description": limited.message}
        return Json(error, 429, {"Retry-After": str(wait), **NO_STORE})
    response.headers.update(NO_STORE)
    if response.status_code == 401 and "authorization" in request.headers:
        response.headers["WWW-Authenticate"] = 'Basic realm="commonplace"'
    return response
