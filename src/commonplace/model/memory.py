"""What notes may teach: proposals out of a text, and those that wait for somebody to say yes or no."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from commonplace.model.ids import now


@dataclass(frozen=True, slots=True)
class Quote:
    """A stretch of the notes, word for word: `text` is what lies between the two characters."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """A memory that a text seems to hold."""

    kind: str  # an entity type
    title: str
    content: str
    confidence: float  # 0..1
    reason: str  # what in the text speaks for it
    quotes: tuple[Quote, ...]


class CandidateState(StrEnum):
    PENDING = "pending"
    ACCEPTED = "accepted"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A proposal in the review queue."""

    id: str
    library_id: str
    source_id: str  # the item that holds the notes; the candidate goes when it goes
    owner: str  # who queued it: a token's id, else the person's
    proposal: Proposal
    project_id: str | None = None
    state: CandidateState = CandidateState.PENDING
    item_id: str | None = None  # what it became; the candidate goes when it goes
    created_at: datetime = field(default_factory=now)
    decided_at: datetime | None = None
