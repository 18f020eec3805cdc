"""Memories that notes suggest: proposals, and candidates that wait for a decision."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal, get_args

from commonplace.model.ids import now

Intent = Literal[
    "build", "plan", "debug", "decide", "research", "review", "learn", "ideate", "general"
]
INTENTS: tuple[Intent, ...] = get_args(Intent)
CONTEXT_SECTIONS = {  # of a context pack, and their headings
    "active_work": "Active work",
    "decisions": "Decisions",
    "constraints": "Constraints and facts",
    "procedures": "Procedures",
    "gotchas": "Gotchas",
    "plans": "Plans and ideas",
    "recent_memory": "Recent memory",
    "passages": "Relevant passages",
}


@dataclass(frozen=True, slots=True)
class Quote:
    """A quote of the notes: `text` is between the two characters."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """A memory that a text suggests."""

    kind: str  # an entity type
    title: str
    content: str
    confidence: float  # 0..1
    reason: str  # the evidence in the text
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
    source_id: str  # the item with the notes; it is deleted with that
    owner: str  # who queued it: a token's id, else the person's
    proposal: Proposal
    project_id: str | None = None
    state: CandidateState = CandidateState.PENDING
    item_id: str | None = None  # the memory it became; it is deleted with that
    created_at: datetime = field(default_factory=now)
    decided_at: datetime | None = None
