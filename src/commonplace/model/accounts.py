"""Passkeys and browser sessions."""

from dataclasses import dataclass, field
from datetime import datetime

from commonplace.model.ids import now


@dataclass(frozen=True, slots=True)
class Passkey:
    id: str  # the credential's, base64url
    person_id: str
    name: str
    public_key: bytes
    uses: int = 0  # the authenticator's own counter; one that runs backwards was copied
    created_at: datetime = field(default_factory=now)
    used_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class WebSession:
    """A signed-in browser."""

    digest: str  # of the secret in its cookie
    person_id: str
    library_id: str
    expires_at: datetime
    about: str = ""  # the browser, as it calls itself
    view_as: str | None = None  # a token whose eyes the person looks through
    created_at: datetime = field(default_factory=now)

    @property
    def id(self) -> str:
        """The part of the digest that pages may show."""
        return self.digest[:16]
