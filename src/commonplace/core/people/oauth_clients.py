"""OAuth clients: who they are, how they register, and where codes may be sent."""

import asyncio
import hmac
import json
import re
import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from urllib.parse import SplitResult, urlsplit

from commonplace.core.people.authorization import digest, whole_seconds
from commonplace.errors import CommonplaceError, IngestFailed, Invalid, NotFound, RateLimited
from commonplace.model import ClientSource, Json, OAuthClient, is_loopback, now
from commonplace.ports import Fetcher, Limits
from commonplace.settings import Settings
from commonplace.store import Store

HOUR = 3600
PREFIX = "cl_"  # of ids
REGISTRATIONS, DOCUMENTS = 10, 20  # an hour, from one address
MOST_REDIRECTS, LONGEST_REDIRECT, LONGEST_NAME = 10, 2000, 100
DOCUMENT_BYTES, DOCUMENT_SECONDS = 64 * 1024, 5
CACHED, LONGEST_CACHED, FAILURE_CACHED = timedelta(hours=1), timedelta(days=1), timedelta(minutes=1)
MOST_CACHED = 500
# Schemes that are no program's own: what they name would run here, be opened by the system's tools
# (such as ms-msdt: and C:), or go elsewhere in clear.
_NO_PROGRAM = re.compile(
    "about|blob|chrome|data|file|filesystem|ftps?|https?|intent|jar|javascript|ldaps?|mailto|"
    "ms-.*|resource|search|search-ms|shell|tel|urn|vbscript|view-source|wss?|.",
)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")
_HOST = re.compile(r"[a-z0-9_-][a-z0-9._-]*|\[[0-9a-f:.]+\]")


@dataclass(eq=False)
class OAuthClients:
    _store: Store
    _limits: Limits
    _fetcher: Fetcher
    _settings: Settings
    # What each document said, or why it is no use, and until when to believe it.
    _documents: dict[str, tuple[datetime, OAuthClient | str]] = field(default_factory=dict)

    async def find(self, client_id: str, address: str) -> OAuthClient:
        """Return a client, whose document is fetched if its id is a URL. Raises NotFound, with the
        reason."""
        if is_document(client_id) and self._settings.oauth_client_documents:
            return await self._described(client_id, address)
        if found := await self._stored(client_id):
            return found
        raise NotFound(
            "This client is not known here. Remove the connection in it, and add it again."
        )

    async def authenticated(self, client_id: str, secret: str) -> OAuthClient | None:
        """Return a client that asks for tokens; None if it is unknown, or its secret is wrong.

        Documents are not fetched again: their clients have no secret, and what they ask with names
        the client it was given to.
        """
        if is_document(client_id):
            return OAuthClient(client_id, "", ClientSource.DOCUMENT, ())
        found = await self._stored(client_id)
        if found is None or found.secret_digest is None:
            return found
        return found if hmac.compare_digest(found.secret_digest, digest(secret)) else None

    async def register(
        self, name: str, redirect_uris: list[str], address: str, *, confidential: bool
    ) -> tuple[OAuthClient, str | None]:
        """Register a client that asks for it, and return it with its secret if it wants one."""
        check_redirects(redirect_uris, own_schemes=True)  # what is refused does not count
        await self.limit("registration", address, REGISTRATIONS, HOUR)
        return await self._add(name, redirect_uris, ClientSource.REGISTERED, confidential)

    async def create(self, name: str, redirect_uris: list[str]) -> tuple[OAuthClient, str]:
        """Create a client for somebody's console, which asks for an id and a secret."""
        client, secret = await self._add(name, redirect_uris, ClientSource.CREATED, True)
        assert secret is not None
        return client, secret

    async def all(self) -> list[OAuthClient]:
        return await self._store.oauth.clients()

    async def delete(self, client_id: str) -> None:
        """Delete a client and revoke what it was granted."""
        if not await self._store.oauth.delete_client(client_id):
            raise NotFound("There is no such client; `commonplace oauth client list` shows them.")

    async def limit(self, what: str, address: str, amount: int, seconds: int) -> None:
        """Count a request from an address. Raises RateLimited."""
        window = await self._limits.hit(f"oauth {what}:{address}", amount, seconds)
        if not window.allowed:
            wait, period = whole_seconds(window.reset), "hour" if seconds == HOUR else "minute"
            raise RateLimited(
                wait,
                f"{what.capitalize()} limit reached: {amount} per {period} for this address. "
                f"Retry in {wait} s.",
            )

    async def _stored(self, client_id: str) -> OAuthClient | None:
        is_id = client_id.startswith(PREFIX) and client_id.isascii() and client_id.isprintable()
        return await self._store.oauth.client(client_id) if is_id else None

    async def _add(
        self, name: str, redirect_uris: list[str], source: ClientSource, confidential: bool
    ) -> tuple[OAuthClient, str | None]:
        check_redirects(redirect_uris, own_schemes=True)
        secret = secrets.token_urlsafe(32) if confidential else None
        client = OAuthClient(
            PREFIX + secrets.token_urlsafe(16),
            shown_name(name) or "A client without a name",
            source,
            tuple(redirect_uris),
            digest(secret) if secret else None,
        )
        await self._store.oauth.add_client(client)
        return client, secret

    async def _described(self, url: str, address: str) -> OAuthClient:
        until, known = self._documents.get(url, (now(), ""))
        if until <= now():
            await self.limit("client document", address, DOCUMENTS, HOUR)
            try:
                body, kept = await self._fetch(url)
                known = read_document(url, body)
            except CommonplaceError as error:
                known, kept = error.message, FAILURE_CACHED
            if len(self._documents) >= MOST_CACHED:
                self._documents.pop(next(iter(self._documents)))
            self._documents[url] = now() + kept, known
        if isinstance(known, str):
            raise NotFound(
                f"Commonplace could not use {url}: {known} If this server cannot reach it, set "
                "COMMONPLACE_OAUTH_CLIENT_DOCUMENTS=off to let clients register instead."
            )
        return known

    async def _fetch(self, url: str) -> tuple[bytes, timedelta]:
        """Return a document, and how long to believe it."""
        try:
            async with (
                asyncio.timeout(DOCUMENT_SECONDS),
                self._fetcher.get(url, max_bytes=DOCUMENT_BYTES, redirects=False) as fetched,
            ):
                kind = fetched.media_type
                if kind != "application/json" and not kind.endswith("+json"):
                    raise IngestFailed("It is not application/json.")
                kept = min(max(timedelta(seconds=fetched.max_age), CACHED), LONGEST_CACHED)
                return await asyncio.to_thread(fetched.path.read_bytes), kept
        except TimeoutError:
            raise IngestFailed(f"It did not arrive within {DOCUMENT_SECONDS} s.") from None


def is_document(client_id: str) -> bool:
    """Whether a client's id is the URL of a document about it."""
    parts = _split(client_id)
    return (
        parts is not None
        and parts.scheme == "https"
        and parts.path not in ("", "/")
        and not {".", ".."} & {*parts.path.split("/")}
    )


def read_document(url: str, body: bytes) -> OAuthClient:
    """Return the client that a document describes. Raises Invalid."""
    try:
        found: Json = json.loads(body)
        named, uris = found["client_id"], found["redirect_uris"]
        method = found.get("token_endpoint_auth_method", "none")
        name = str(found.get("client_name", ""))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Invalid("It is no client metadata document.") from None
    if named != url:
        raise Invalid("Its `client_id` is not its address.")
    if method != "none":
        raise Invalid("It asks for an authentication that is not supported; it must be `none`.")
    if not isinstance(uris, list) or not all(isinstance(uri, str) for uri in uris):
        raise Invalid("Its `redirect_uris` are not a list of addresses.")
    check_redirects(uris, own_schemes=False)
    host = urlsplit(url).hostname or ""
    return OAuthClient(url, shown_name(name) or host, ClientSource.DOCUMENT, tuple(uris))


def shown_name(name: str) -> str:
    """Return a name without what could pretend: line breaks, invisible and reversing characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in name).split())[:LONGEST_NAME]


def check_redirects(uris: list[str], *, own_schemes: bool) -> None:
    """Refuse addresses that codes must not be sent to. `own_schemes`: programs may have their own,
    such as cursor://."""
    if not 0 < len(uris) <= MOST_REDIRECTS:
        raise Invalid(f"A client has 1 to {MOST_REDIRECTS} redirect URIs.")
    for uri in uris:
        parts = _split(uri)
        if parts is None or not (
            is_loopback(uri)
            or (parts.scheme == "https" and parts.hostname)
            or (own_schemes and not _NO_PROGRAM.fullmatch(parts.scheme))
        ):
            raise Invalid(
                f"The redirect URI {uri[:200]!r} is not allowed. Use https, or http on localhost, "
                "without user name and fragment."
            )


def _split(uri: str) -> SplitResult | None:
    """Return the parts of an address; None if anything about it is unusual."""
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError:
        return None
    usual = (
        len(uri) <= LONGEST_REDIRECT
        and uri.isascii()
        and uri.isprintable()
        and not {*' "<>\\^`{|}#'} & {*uri}
        and _SCHEME.fullmatch(uri.partition(":")[0])
        and (
            not parts.netloc or _HOST.fullmatch(parts.netloc.lower().removesuffix(f":{parts.port}"))
        )
    )
    return parts if usual else None


def origin_of(uri: str) -> str:
    """Return what a content security policy calls the place of a redirect URI."""
    parts = urlsplit(uri)
    if parts.scheme not in ("http", "https") or ":" in (parts.hostname or ""):
        return f"{parts.scheme}:"  # policies cannot name programs, nor IPv6 addresses
    return f"{parts.scheme}://{parts.netloc}"
