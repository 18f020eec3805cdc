"""Who asks, and what they may see."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from commonplace.model.ids import now
from commonplace.model.items import Origin


class Capability(StrEnum):
    READ = "read"
    WRITE = "write"


class Role(StrEnum):
    """What a member of a library may do: viewers read, members write, admins and owners also say who belongs to it."""

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
    """What a caller may see. Every query takes one; there is no other way to read items."""

    library_id: str
    folders: frozenset[str] | None = None  # None: the whole library
    kb_only: bool = False


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: a token, a JWT, or a person at the command line (no token, no limits)."""

    library_id: str
    person_id: str
    name: str
    capabilities: frozenset[Capability] = frozenset({Capability.READ})
    folders: frozenset[str] | None = None
    kb_only: bool = False
    token_id: str | None = None
    limit_key: str | None = None  # what allowances are counted by; None: not counted
    role: Role = Role.MEMBER  # of the person, in this library
    agent: bool = False  # a program with a token, or over MCP; otherwise a person at the web app or the command line

    def origin(self, kind: str) -> Origin:
        """Where an item of this kind comes from when this caller adds it."""
        return {"url": Origin.WEB, "file": Origin.UPLOAD}.get(kind) or (
            Origin.AGENT if self.agent else Origin.YOU
        )

    @property
    def scope(self) -> Scope:
        return Scope(self.library_id, self.folders, self.kb_only)

    @property
    def queue(self) -> str:
        """Whose turn it takes where callers wait for the same thing."""
        return self.limit_key or f"person:{self.person_id}"

    @property
    def whole_library(self) -> bool:
        return self.folders is None

    @property
    def single_folder(self) -> str | None:
        """The folder that new items are filed in, when there is exactly one it can be."""
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
class Token:
    id: str
    library_id: str
    person_id: str
    name: str
    capabilities: frozenset[Capability]
    folders: frozenset[str] | None
    kb_only: bool
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None
    role: Role | None = field(
        default=None, compare=False
    )  # its person's, as of now; None: not a member (any more)


@dataclass(frozen=True, slots=True)
class Member:
    library_id: str
    person_id: str
    name: str
    email: str
    role: Role


@dataclass(frozen=True, slots=True)
class Membership:
    """A library, as one of its members sees it in a list of theirs."""

    library_id: str
    name: str
    role: Role


@dataclass(frozen=True, slots=True)
class Invitation:
    """Into a library, for whoever holds its secret; with an address, only for the person who has that."""

    id: str
    library_id: str
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
