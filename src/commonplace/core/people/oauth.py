"""OAuth 2.1: grants that people give to clients, and the secrets that clients get for them."""

import asyncio
import hashlib
import hmac
import logging
import secrets
from base64 import urlsafe_b64encode
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from commonplace.core.people.accounts import Accounts, Visitor, caller_in
from commonplace.core.people.authorization import Service, digest
from commonplace.core.people.oauth_clients import OAuthClients
from commonplace.core.people.tokens import People
from commonplace.errors import ForbiddenScope, Invalid
from commonplace.model import (
    OAUTH,
    Capability,
    OAuthClient,
    OAuthSecret,
    SecretKind,
    Token,
    find_by_id,
    new_id,
    now,
)
from commonplace.settings import Settings

log = logging.getLogger(__name__)
SCOPES = ("read", "write")
ALSO_KNOWN = "offline_access"  # asked for by those who want refresh tokens, which all get
CODE_LIFETIME, UNUSED_LIFETIME = timedelta(seconds=60), timedelta(days=30)
LONGEST_DAYS = 365
TIDY_SECONDS = 900
PREFIXES = {SecretKind.CODE: "cc_", SecretKind.ACCESS: "co_", SecretKind.REFRESH: "cr_"}


@dataclass(frozen=True, slots=True)
class Asked:
    """What a client asks a person for."""

    client: OAuthClient
    redirect_uri: str
    scopes: tuple[str, ...]
    challenge: str
    resource: str
    explicit: bool = True  # the client named the redirect URI, and must name it again

    @property
    def redirect_host(self) -> str:
        """The host that receives the code; for a program's own scheme, that."""
        parts = urlsplit(self.redirect_uri)
        own = parts.scheme not in ("http", "https")
        return f"{parts.scheme}:" if own else parts.hostname or ""


@dataclass(frozen=True, slots=True)
class Consent:
    """What the person allows."""

    library_id: str
    write: bool = False
    folders: tuple[str, ...] | None = None  # None: the whole library
    kb_only: bool = False
    days: int = LONGEST_DAYS


@dataclass(frozen=True, slots=True)
class Issued:
    access: str
    refresh: str
    seconds: int
    scopes: str


@dataclass(eq=False)
class OAuth(Service):
    clients: OAuthClients
    _accounts: Accounts
    _people: People
    _settings: Settings
    # What happened, for metrics: (grant type, result).
    tally: Counter[tuple[str, str]] = field(default_factory=Counter)

    def find_resource(self, asked: str | None) -> str | None:
        """Return the resource that a request names, or the usual one; None if it is not ours."""
        known = {url.lower(): url for url in self._access.resources}
        wanted = asked or f"{self._settings.issuer}/mcp"
        scheme, mark, rest = wanted.removesuffix("/").partition("://")
        host, slash, path = rest.partition("/")
        return known.get(f"{scheme}{mark}{host}".lower() + slash + path)

    # -- consent

    async def grant(self, visitor: Visitor, asked: Asked, consent: Consent) -> str:
        """Give a client what a person allows, and return the code for it."""
        if visitor.viewing is not None:
            raise ForbiddenScope('Leave "View as" first.')
        if not await self.can_consent(visitor):
            raise ForbiddenScope("Set a password or passkey first: see `commonplace user link`.")
        if not 0 < consent.days <= LONGEST_DAYS:
            raise Invalid(f"A connection lasts 1 to {LONGEST_DAYS} days.")
        caller = caller_in(visitor, consent.library_id)
        if consent.write and not (caller.can_write and "write" in asked.scopes):
            raise ForbiddenScope("This client cannot be allowed to write here.")
        given = SCOPES if consent.write else SCOPES[:1]
        grant = Token(
            new_id(),
            caller.library_id,
            caller.person_id,
            asked.client.name,
            frozenset(map(Capability, given)),
            None
            if consent.folders is None
            else await self._people.folder_ids(caller, consent.folders),
            consent.kb_only,
            now(),
            now() + timedelta(days=consent.days),
            kind=OAUTH,
            client_id=asked.client.id,
            redirect_host=asked.redirect_host,
            resource=asked.resource,
        )
        secret, code = _new_secret(
            SecretKind.CODE,
            grant,
            " ".join(given),
            now() + CODE_LIFETIME,
            redirect_uri=asked.redirect_uri if asked.explicit else None,
            challenge=asked.challenge,
        )
        await self._store.oauth.grant(grant, code)
        self._note(grant, "oauth_granted", f"{asked.client.name} at {asked.redirect_host}")
        self.tally["consent", "granted"] += 1
        return secret

    async def can_consent(self, visitor: Visitor) -> bool:
        """Whether it is certain who they are: a published server may be reached by anybody."""
        settings = self._settings
        return bool(
            not settings.public_url
            or settings.auth_proxy_header
            or await self._accounts.can_sign_in(visitor.person.id)
        )

    def deny(self) -> None:
        self.tally["consent", "denied"] += 1

    async def grants(self, visitor: Visitor) -> list[Token]:
        """Return what the visitor allows clients, in all their libraries."""
        return await self._store.oauth.grants(visitor.person.id)

    async def end(self, visitor: Visitor, grant_id: str) -> None:
        """Revoke a grant of the visitor's."""
        grant = find_by_id(await self.grants(visitor), grant_id, "Client")
        await self._store.tokens.revoke(grant.library_id, grant.id)
        self._note(grant, "oauth_revoked")

    # -- tokens

    async def find(
        self, kind: SecretKind, secret: str, client_id: str
    ) -> tuple[OAuthSecret, Token] | None:
        """Return a secret of a client and its grant; None if it is not good any more. Codes and
        refresh tokens may have been used."""
        found = await self._store.oauth.secret(digest(secret))
        if found is None:
            return None
        known, grant = found
        good = (
            known.kind is kind
            and client_id == grant.client_id
            and known.expires_at > now()
            and grant.revoked_at is None
            and grant.role is not None
            and (grant.expires_at is None or grant.expires_at > now())
        )
        return found if good else None

    async def redeem(self, code: OAuthSecret, grant: Token) -> Issued | None:
        """Give tokens for a code. None: it had been used, so the grant is revoked."""
        access, access_row = self._new_access(grant, code.scopes)
        refresh, refresh_row = _new_secret(
            SecretKind.REFRESH, grant, code.scopes, _refresh_until(grant)
        )
        if not await self._store.oauth.redeem(code.digest, (access_row, refresh_row)):
            self._refuse("authorization_code", "code_reused", grant)
            return None
        self._note(grant, "oauth_token_issued")
        self.tally["authorization_code", "issued"] += 1
        return Issued(access, refresh, self._access_seconds, code.scopes)

    async def refresh(
        self, secret: str, refresh: OAuthSecret, grant: Token, scopes: str
    ) -> Issued | None:
        """Give new tokens for a refresh token. None: it was used long ago, so the grant is
        revoked."""
        access, access_row = self._new_access(grant, scopes)

        def successor(salt: str) -> OAuthSecret:
            return _secret_row(
                SecretKind.REFRESH,
                grant,
                _successor(secret, salt),
                refresh.scopes,
                _refresh_until(grant),
            )

        salt = await self._store.oauth.rotate(
            refresh.digest, access_row, secrets.token_urlsafe(32), successor
        )
        if salt is None:
            self._refuse("refresh_token", "refresh_reuse", grant)
            return None
        self._note(grant, "oauth_refreshed")
        self.tally["refresh_token", "issued"] += 1
        return Issued(access, _successor(secret, salt), self._access_seconds, scopes)

    async def revoke(self, secret: str, client_id: str) -> None:
        """End an access token of a client, or with a refresh token the whole grant."""
        if found := await self.find(SecretKind.ACCESS, secret, client_id):
            await self._store.oauth.forget(found[0].digest)
        elif found := await self.find(SecretKind.REFRESH, secret, client_id):
            await self._store.tokens.revoke(found[1].library_id, found[1].id)
        if found:
            self._note(found[1], "oauth_revoked")

    # -- upkeep

    async def keep_tidy(self) -> None:
        while True:
            try:
                await self._store.oauth.tidy()
                await self._store.accounts.forget_sealed()
            except Exception:  # must outlive a lost database
                log.exception("Expired OAuth secrets could not be deleted; retrying later")
            await asyncio.sleep(TIDY_SECONDS)

    @property
    def _access_seconds(self) -> int:
        return max(1, round(self._settings.oauth_access_minutes * 60))

    def _new_access(self, grant: Token, scopes: str) -> tuple[str, OAuthSecret]:
        until = now() + timedelta(seconds=self._access_seconds)
        return _new_secret(SecretKind.ACCESS, grant, scopes, until)

    def _refuse(self, grant_type: str, reason: str, grant: Token) -> None:
        self._note(grant, f"oauth_{reason}", ok=False)
        self.tally[grant_type, "reused"] += 1
        log.warning("%s of the client %s: its grant is revoked", reason, grant.client_id)

    def _note(
        self, grant: Token, action: str, target: str | None = None, *, ok: bool = True
    ) -> None:
        self._access.note(grant.library_id, grant.id, action, target, ok=ok)


def _refresh_until(grant: Token) -> datetime:
    until = now() + UNUSED_LIFETIME
    return min(until, grant.expires_at) if grant.expires_at else until


def _new_secret(
    kind: SecretKind, grant: Token, scopes: str, until: datetime, **more: str | None
) -> tuple[str, OAuthSecret]:
    secret = PREFIXES[kind] + secrets.token_urlsafe(32)
    return secret, _secret_row(kind, grant, secret, scopes, until, **more)


def _secret_row(
    kind: SecretKind, grant: Token, secret: str, scopes: str, until: datetime, **more: str | None
) -> OAuthSecret:
    return OAuthSecret(
        digest(secret), grant.library_id, grant.id, kind, scopes, until, None, None, **more
    )


def _successor(secret: str, salt: str) -> str:
    """Derive the next refresh token, so that it need not be kept to be given twice."""
    made = hmac.new(salt.encode(), secret.encode("utf-8", "surrogatepass"), hashlib.sha256)
    return PREFIXES[SecretKind.REFRESH] + urlsafe_b64encode(made.digest()).decode().rstrip("=")
