"""People, tokens, callers, and the scope of what they may see."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from commonplace.model.ids import Stored, now
from commonplace.model.items import Origin
from commonplace.model.undo import Step


class Capability(StrEnum):
    READ = "read"
    WRITE = "write"


class Role(StrEnum):
    """Viewers read, members also write, admins and owners also manage members."""

    OWNER = "owner"
    ADMIN = "admin"
    MEMBER = "member"
    VIEWER = "viewer"

    @property
    def can_write(self) -> bool:
        return self is not Role.VIEWER

    @property
    def manages_members(self) -> bool:
        return self in (Role.OWNER, Role.ADMIN)


@dataclass(frozen=True, slots=True)
class Scope:
    """The items that a caller may see. Every query of items takes one."""

    library_id: str
    folders: frozenset[str] | None = None  # None: the whole library
    kb_only: bool = False
    actor: str | None = field(default=None, compare=False)  # who asks: a token's id or a person's
    step: Step | None = field(default=None, compare=False)  # records what can be undone

    @property
    def library(self) -> "Scope":
        """The whole library, for what follows from the change that is made."""
        return Scope(self.library_id, step=self.step)

    @property
    def whole_library(self) -> bool:
        return self.folders is None and not self.kb_only


MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Usage:
    """What a library holds, its trash included; or may hold, where 0 is no limit."""

    items: int = 0
    sections: int = 0
    size: int = 0  # bytes of its texts and uploaded files


@dataclass(frozen=True, slots=True)
class LibraryRow:
    """A library as whoever runs the server sees it."""

    id: str
    name: str
    email: str  # of its owner
    members: int
    created_at: datetime
    usage: Usage
    open_jobs: int
    failed_jobs: int


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller: a token, a JWT, or a person at the command line (no token, no limits)."""

    library_id: str
    person_id: str
    name: str
    capabilities: frozenset[Capability] = frozenset({Capability.READ})
    folders: frozenset[str] | None = None
    kb_only: bool = False
    token_id: str | None = None
    limit_key: str | None = None  # the key of rate limits; None: no limits
    role: Role = Role.MEMBER  # of the person, in this library
    agent: bool = False  # a program with a token or over MCP; else a person
    step: Step | None = field(default=None, compare=False)  # see Scope

    def origin(self, kind: str) -> Origin:
        """Return the origin of an item of this kind that the caller adds."""
        return {"url": Origin.WEB, "file": Origin.UPLOAD}.get(kind) or (
            Origin.AGENT if self.agent else Origin.YOU
        )

    @property
    def can_write(self) -> bool:
        return Capability.WRITE in self.capabilities

    @property
    def scope(self) -> Scope:
        return Scope(
            self.library_id,
            self.folders,
            self.kb_only,
            self.token_id or self.person_id or None,
            self.step,
        )

    @property
    def queue(self) -> str:
        """The key by which waiting callers take turns."""
        return self.limit_key or f"person:{self.person_id}"

    @property
    def whole_library(self) -> bool:
        """Whether the caller sees all of the library, not only some folders or the KB."""
        return self.folders is None and not self.kb_only

    @property
    def single_folder(self) -> str | None:
        """The folder of new items, if the caller sees exactly one."""
        return (
            next(iter(self.folders))
            if self.folders is not None and len(self.folders) == 1
            else None
        )


@dataclass(frozen=True, slots=True)
class Person:
    id: str
    name: str
    email: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Token(Stored):
    person_id: str
    name: str
    capabilities: frozenset[Capability]
    folders: frozenset[str] | None
    kb_only: bool
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None
    kind: str = "token"  # or oauth: the grant of a client, which has these:
    client_id: str | None = None
    redirect_host: str | None = None
    resource: str | None = None  # the URL that its access tokens are good for
    # Its person's, as of now; None: not a member.
    role: Role | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Member:
    library_id: str
    person_id: str
    name: str
    email: str
    role: Role


@dataclass(frozen=True, slots=True)
class Membership:
    """A library in the list of one of its members."""

    library_id: str
    name: str
    role: Role


@dataclass(frozen=True, slots=True)
class Invitation(Stored):
    """An invitation to a library for the holder of its secret, or only for one email."""

    role: Role
    email: str | None
    invited_by: str
    created_at: datetime
    expires_at: datetime
    accepted_at: datetime | None = None
    accepted_by: str | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """A line of a token's activity log."""

    library_id: str
    token_id: str
    action: str
    target: str | None
    ok: bool
    at: datetime = field(default_factory=now)


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
    sealed: str | None = field(default=None, repr=False)  # a new secret, encrypted
    sealed_until: datetime | None = None
    created_at: datetime = field(default_factory=now)

    @property
    def id(self) -> str:
        """The part of the digest that pages may show."""
        return self.digest[:16]
