"""Events: what happened to the items of a library. Ids and types, never texts."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from commonplace.model.ids import Stored, now


class EventType(StrEnum):
    ADDED = "item.added"
    READY = "item.ready"
    FAILED = "item.failed"
    CHANGED = "item.changed"
    DELETED = "item.deleted"
    RESTORED = "item.restored"
    TASK = "task.changed"
    CANDIDATE = "memory.candidate"
    PUBLISHED = "disk.published"


JOB_PROGRESS = "job.progress"  # in streams only


@dataclass(frozen=True, slots=True)
class LibraryEvent:
    seq: int  # its number in the library, which callers get encrypted
    type: EventType
    at: datetime
    item_id: str
    actor: str | None  # a token's id, else a person's; None: the server, or out of scope


@dataclass(frozen=True, slots=True)
class EventPage:
    events: list[LibraryEvent]
    after: int  # where to continue
    key: str  # encrypts the numbers


@dataclass(frozen=True, slots=True)
class Webhook(Stored):
    """An address that events are sent to, as far as whoever created it sees them."""

    person_id: str
    token_id: str | None
    url: str
    events: tuple[str, ...]
    secret_digest: str
    created_at: datetime = field(default_factory=now)
    delivered_at: datetime | None = None  # the last time that an event was taken
    disabled_at: datetime | None = None
    error: str | None = None  # of the last attempt
