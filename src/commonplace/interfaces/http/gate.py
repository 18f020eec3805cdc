"""Checks of every HTTP request before its route (host, origin, token, rate, size), and errors."""

import logging
import re
from collections.abc import Iterable
from functools import partial
from ipaddress import IPv6Address, ip_network
from typing import Any
from urllib.parse import urlsplit

import orjson
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from commonplace import errors
from commonplace.core.people.authorization import (
    MCP_FACTOR,
    MCP_PATHS,
    Access,
    whole_seconds,
)
from commonplace.errors import CommonplaceError, Unauthorized
from commonplace.model import Caller
from commonplace.ports import Window
from commonplace.settings import Settings

log = logging.getLogger(__name__)

Headers = tuple[tuple[bytes, bytes], ...]
MAX_BODY = 8 * 1024 * 1024
MAX_ANONYMOUS_BODY = 64 * 1024  # of who has not proved who they are
METRICS = "/metrics"
PROBES = frozenset({"/healthz", "/readyz", METRICS})  # asked for by address, from inside a cluster
DOCS = {"/openapi.json", "/api/v1/openapi.json", "/api/openapi.json", "/docs", "/api/docs"}
OPEN = PROBES - {METRICS} | DOCS
# Whoever has no account yet comes without a token; the invitation is in the body.
INVITED = "/api/v1/invitations/accept"
SIGNED = re.compile(
    r"/api/v1/uploads/[^/]+/content"
)  # the address itself is the credential; what it brings is a file
HOOK = re.compile(
    r"/api/v1/webhooks/transcription/[^/]+"
)  # the secret that the service was given is
HEADERS: Headers = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)
WELL_KNOWN = "/.well-known/"
RESOURCE_METADATA = WELL_KNOWN + "oauth-protected-resource"
OAUTH_PATHS = ("/oauth/token", "/oauth/register", "/oauth/revoke")
# Pages of any origin may call what reads no cookies, but not with them.
CORS_HEADERS: Headers = (
    (b"access-control-allow-origin", b"*"),
    (
        b"access-control-expose-headers",
        b"ETag, Idempotent-Replayed, Link, Location, Mcp-Session-Id, RateLimit-Limit, "
        b"RateLimit-Remaining, RateLimit-Reset, Retry-After, WWW-Authenticate, X-Request-Id",
    ),
)
CALLED_HEADERS = (*HEADERS, (b"cache-control", b"no-store"), *CORS_HEADERS)  # of API and MCP
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
RATE_LIMITED = -32605  # of JSON-RPC
CHALLENGE = 'Bearer realm="commonplace"'
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")

STATUS: dict[type[CommonplaceError], int] = {
    errors.Invalid: 422,
    errors.InvalidJson: 400,
    errors.BadRequest: 400,
    errors.BatchTooLarge: 400,
    errors.SearchFailed: 500,
    errors.UnsupportedMediaType: 415,
    errors.PayloadTooLarge: 413,
    errors.PreconditionFailed: 412,
    errors.Unauthorized: 401,
    errors.QuotaExceeded: 402,
    errors.LibraryFull: 402,
    errors.CapabilityDenied: 403,
    errors.ForbiddenScope: 403,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.NameTaken: 409,
    # The request was fine, its source was not: sending it again may help, changing it will.
    errors.IngestFailed: 422,
    errors.RateLimited: 429,
    errors.EmbeddingFailed: 503,
    errors.TranscriptionFailed: 503,
    errors.TransformFailed: 503,
    errors.StorageFailed: 503,
}


class Json(JSONResponse):
    def render(self, content: Any) -> bytes:
        return orjson.dumps(content)


def problem(
    status: int, code: str, message: str, headers: dict[str, str] | None = None, /, **data: Any
) -> Response:
    """The one shape of every error."""
    return Json({"error": code, "message": message, **data}, status, headers)


def error_response(error: CommonplaceError, **more: Any) -> Response:
    headers: dict[str, str] = {}
    if isinstance(error, Unauthorized):
        headers["WWW-Authenticate"] = CHALLENGE
    elif isinstance(error, errors.CapabilityDenied):
        headers["WWW-Authenticate"] = f'{CHALLENGE}, error="insufficient_scope"'
    if "retry_after_sec" in error.data:
        headers["Retry-After"] = str(error.data["retry_after_sec"])
    return problem(
        STATUS.get(type(error), 500), error.code, error.message, headers, **error.data, **more
    )


def internal_error() -> Response:
    return problem(500, "internal_error", "The server failed; its log says why.")


def _before_tools(path: str, error: CommonplaceError) -> Response:
    """Map errors to the statuses that MCP clients know before a tool runs: 401, 429, 500."""
    if is_mcp(path) and STATUS.get(type(error), 500) >= 500:
        return problem(500, "internal_error", error.message)
    return error_response(error)


class Gate:
    """ASGI middleware in front of everything; only requests that pass its checks go on."""

    def __init__(self, app: ASGIApp, access: Access, settings: Settings) -> None:
        self._app = app
        self._access = access
        self._hosts = known_hosts(settings)
        self._issuer = settings.issuer
        self._per_minute = settings.rate_requests_per_minute
        self._open = OPEN | {METRICS} if settings.metrics_open else OPEN

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def send_hardened(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                given = message.get("headers", ())
                if message["status"] in (401, 403) and takes_token(scope["path"]):
                    given = [self._challenge(scope, *line) for line in given]
                message["headers"] = [
                    *_hardened(scope["path"], given),
                    *scope.get("state", {}).get("rate", ()),
                ]
            await send(message)

        try:
            refusal = await self._refuse(scope, headers_of(scope))
            await (refusal or self._app)(
                scope,
                receive if _is_signed(scope) else bounded(receive, largest_body(scope)),
                send_hardened,
            )
        except CommonplaceError as error:
            await _before_tools(scope["path"], error)(scope, receive, send_hardened)
        except HTTPException:  # that of `bounded`
            await too_large(largest_body(scope))(scope, receive, send_hardened)
        except Exception:
            log.exception("%s %s failed unexpectedly", scope["method"], scope["path"])
            if not started:
                await internal_error()(scope, receive, send_hardened)

    async def _refuse(self, scope: Scope, headers: dict[str, str]) -> ASGIApp | None:
        path = scope["path"]
        if path not in PROBES:
            host, origin = headers.get("host", ""), headers.get("origin")
            if host_name(host) not in self._hosts:
                return problem(
                    421,
                    "unknown_host",
                    f"This server does not answer for {_shown(host)}; "
                    "COMMONPLACE_ALLOWED_HOSTS lets more names in.",
                )
            if origin is not None and is_for_any_origin(path):
                if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
                    return _preflight(headers)
            elif (
                origin is not None
                and scope["method"] not in SAFE_METHODS
                and not self._is_ours(origin)
            ):
                return problem(
                    403,
                    "forbidden_origin",
                    f"Pages from {_shown(origin)} may not call this server; "
                    "COMMONPLACE_ALLOWED_HOSTS lets more names in.",
                )
        if _is_signed(scope):
            return None
        if (
            path not in self._open
            and takes_token(path)
            and not (scope["method"] == "POST" and HOOK.fullmatch(path))
        ):
            invited, mcp = path == INVITED and "authorization" not in headers, is_mcp(path)
            identify = partial(self._access.identify, _bearer(headers), mcp=mcp)
            caller = nobody(scope) if invited else await identify()
            if path == METRICS and (caller.folders is not None or caller.kb_only):
                raise Unauthorized("Metrics need a token for the whole library.")
            scope.setdefault("state", {}).update(caller=caller, identify=identify)
            window = await self._access.request(caller, mcp=mcp)
            if window is not None:
                limit = self._per_minute * (MCP_FACTOR if mcp else 1)
                scope["state"]["rate"] = _rate_headers(limit, window)
                if not window.allowed:
                    return TooManyRequests(limit, whole_seconds(window.reset), mcp=mcp)
        length = headers.get("content-length", "")
        most = largest_body(scope)
        return too_large(most) if length.isdecimal() and int(length[:20]) > most else None

    def _challenge(self, scope: Scope, name: bytes, value: bytes) -> tuple[bytes, bytes]:
        """Tell OAuth clients where to ask for access, in the header for it."""
        if name != b"www-authenticate":
            return name, value
        path = scope["path"].rstrip("/")
        resource = path if path in MCP_PATHS else "/mcp" if is_mcp(path) else ""
        more = f', resource_metadata="{self._issuer}{RESOURCE_METADATA}{resource}"'
        if b"error=" not in value and _bearer(headers_of(scope)):
            more = f', error="invalid_token"{more}'
        return name, value + f'{more}, scope="read write"'.encode("latin-1")

    def _is_ours(self, origin: str) -> bool:
        scheme, _, host = origin.partition("://")
        return scheme in ("http", "https") and host_name(host) in self._hosts


def is_for_any_origin(path: str) -> bool:
    """Whether pages of any origin may call a path: it reads no cookies."""
    return is_mcp(path) or path.startswith(("/api/", WELL_KNOWN)) or path in OAUTH_PATHS


def _preflight(headers: dict[str, str]) -> Response:
    """Allow what a browser asks before a call from another origin."""
    return Response(
        status_code=204,
        headers={
            "Access-Control-Allow-Methods": "GET, POST, PUT, PATCH, DELETE",
            "Access-Control-Allow-Headers": headers.get("access-control-request-headers", "*"),
            "Access-Control-Max-Age": "7200",
            "Vary": "Access-Control-Request-Headers",
        },
    )


def is_mcp(path: str) -> bool:
    return path == "/api/mcp" or path == "/mcp" or path.startswith("/mcp/")


def _rate_headers(limit: int, window: Window) -> list[tuple[bytes, bytes]]:
    figures = {"limit": limit, "remaining": window.remaining, "reset": whole_seconds(window.reset)}
    return [(b"ratelimit-" + name.encode(), b"%d" % value) for name, value in figures.items()]


class TooManyRequests:
    """The answer to a request over the limit; to MCP clients as a JSON-RPC error."""

    def __init__(self, limit: int, wait: int, *, mcp: bool) -> None:
        self._wait, self._mcp = wait, mcp
        self._message = (
            f"Request limit reached: {limit} per minute for this token. Retry in {wait} s, or "
            "raise COMMONPLACE_RATE_REQUESTS_PER_MINUTE."
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        wait, headers = self._wait, {"Retry-After": str(self._wait)}
        refusal = problem(429, "rate_limit_exceeded", self._message, headers, retry_after=wait)
        if self._mcp:
            data = {"error": "rate_limit_exceeded", "retry_after": wait, "retry_after_sec": wait}
            error = {"code": RATE_LIMITED, "message": self._message, "data": data}
            body = {"jsonrpc": "2.0", "id": await _request_id(receive), "error": error}
            refusal = Json(body, 429, headers)
        await refusal(scope, receive, send)


async def _request_id(receive: Receive) -> int | str | None:
    """Return the id of a JSON-RPC request, without reading more than its beginning."""
    body, more = bytearray(), True
    while more and len(body) < MAX_ANONYMOUS_BODY:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    try:
        found = orjson.loads(body)["id"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None
    return found if type(found) in (int, str) else None


def takes_token(path: str) -> bool:
    """Everything else is the web app's, which knows people by their cookies."""
    return path in ("/api", "/mcp", METRICS) or path.startswith(("/api/", "/mcp/"))


def _is_signed(scope: Scope) -> bool:
    return scope["method"] == "PUT" and SIGNED.fullmatch(scope["path"]) is not None


def nobody(scope: Scope) -> Caller:
    """Somebody without an account, counted by where they come from."""
    address = scope["client"][0] if scope.get("client") else ""
    return Caller("", "", "nobody", frozenset(), limit_key=f"from:{network_of(address)}")


def largest_body(scope: Scope) -> int:
    """Bytes that the request's body may have."""
    caller: Caller | None = scope.get("state", {}).get("caller")
    anonymous = not caller.person_id if caller else scope["path"] in OAUTH_PATHS
    return MAX_ANONYMOUS_BODY if anonymous else MAX_BODY


def too_large(most: int = MAX_BODY) -> Response:
    larger = (
        "; larger files are uploaded through /api/v1/uploads/*"
        if most == MAX_BODY
        else " without a token"
    )
    return problem(413, "payload_too_large", f"A request may have {most:,} bytes{larger}.")


def not_json() -> Response:
    return problem(
        415, "unsupported_media_type", "Send the body with `Content-Type: application/json`."
    )


def known_hosts(settings: Settings) -> frozenset[str]:
    """Return the names that Host and Origin may have, so that foreign pages are refused."""
    names = [
        *LOOPBACK,
        settings.host,
        urlsplit(settings.public_url).netloc,
        *settings.allowed_hosts.split(","),
    ]
    return frozenset(host_name(name.strip()) for name in names if name.strip())


def host_name(host: str) -> str:
    """A Host header without its port; an IPv6 address keeps its brackets."""
    name, _, port = host.rpartition(":")
    return (name if name and port.isdecimal() else host).lower()


def network_of(address: str) -> str:
    """Return the IPv4 address, or the /64 network of an IPv6 address: one subscriber's."""
    if ":" not in address:
        return address
    try:
        ip = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    # Proxies that listen on both write 1.2.3.4 as ::ffff:1.2.3.4: all of IPv4 would be one network.
    return str(ip.ipv4_mapped or ip_network((ip, 64), strict=False))


def _shown(header: str) -> str:
    return repr(header[:200])


def headers_of(scope: Scope) -> dict[str, str]:
    """By their names in lower case; the first where there are several."""
    return {
        name.decode("latin-1"): value.decode("latin-1")
        for name, value in reversed(scope["headers"])
    }


def _bearer(headers: dict[str, str]) -> str | None:
    scheme, _, credential = headers.get("authorization", "").partition(" ")
    return credential.strip() if scheme.lower() == "bearer" else None


def bounded(receive: Receive, most: int) -> Receive:
    """Refuse bodies that turn out to be longer; not all of them say their size beforehand."""
    seen = 0

    async def receive_bounded() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > most:
            raise HTTPException(413)
        return message

    return receive_bounded


def _hardened(path: str, headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Add the security headers that an answer does not set itself."""
    given = [*headers]
    said = {name for name, _ in given}
    own = HEADERS
    if path.startswith(("/api/", "/mcp")):
        own = CALLED_HEADERS
    elif is_for_any_origin(path):
        own = (*HEADERS, *CORS_HEADERS)
    return given + [line for line in own if line[0] not in said]
