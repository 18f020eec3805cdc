"""Clients that ask for access with OAuth, what they ask for, and the secrets they get."""

import re
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from urllib.parse import urlsplit

from commonplace.model.ids import now

OAUTH = "oauth"  # the kind of a token that is a client's grant
# As browsers read it, too: what else an address may hold, such as a user name, they take apart
# in other ways.
_LOOPBACK = re.compile(r"http://(localhost|127\.0\.0\.1|\[::1\])(?::[0-9]{1,5})?((?:[/?][^#]*)?)")


class ClientSource(StrEnum):
    DOCUMENT = "document"  # its id is the URL of a document that describes it
    REGISTERED = "registered"  # it registered itself
    CREATED = "created"  # by the operator


class SecretKind(StrEnum):
    CODE = "code"
    ACCESS = "access"
    REFRESH = "refresh"


@dataclass(frozen=True, slots=True)
class OAuthClient:
    id: str
    name: str
    source: ClientSource
    redirect_uris: tuple[str, ...]
    secret_digest: str | None = None  # None: a public client
    created_at: datetime = field(default_factory=now)
    used_at: datetime | None = None

    @property
    def host(self) -> str:
        """The host that vouches for the client; "" if none does."""
        return (urlsplit(self.id).hostname or "") if self.source is ClientSource.DOCUMENT else ""

    def allows(self, redirect_uri: str) -> bool:
        """Whether codes may be sent there. Programs on the person's computer choose their port
        (RFC 8252); everything else must be the same."""
        return redirect_uri in self.redirect_uris or (
            is_loopback(redirect_uri)
            and _without_port(redirect_uri) in map(_without_port, self.redirect_uris)
        )


@dataclass(frozen=True, slots=True)
class OAuthSecret:
    """A code, access token or refresh token of a grant."""

    digest: str
    library_id: str
    token_id: str  # the grant
    kind: SecretKind
    scopes: str
    expires_at: datetime
    used_at: datetime | None = None
    salt: str | None = None
    redirect_uri: str | None = None
    challenge: str | None = None


def is_loopback(uri: str) -> bool:
    """Whether an http address is on the computer of whoever opens it."""
    return _LOOPBACK.fullmatch(uri) is not None


def _without_port(uri: str) -> tuple[str, str] | None:
    found = _LOOPBACK.fullmatch(uri)
    return (found[1], found[2] or "/") if found else None
