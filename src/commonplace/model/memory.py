"""The graph of a library's memory: relations, captures, and candidates that wait for a decision."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal, get_args

from commonplace.model.ids import Json, Stored, digest, now
from commonplace.model.items import Item

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


SUPERSEDED = (
    "superseded"  # statuses of a memory that is not what it was: something newer says otherwise,
)
WRONG = "wrong"  # or it never was true,
STALE = "stale"  # or nobody has looked whether it still is
# In hits only: its `valid_until` is over, or its `review_by`.
EXPIRED, REVIEW_DUE = "expired", "review_due"


class Kind(StrEnum):
    """Kinds of relations that mean something to us; others may be kept too."""

    RELATED_TO = "RELATED_TO"
    DEPENDS_ON = "DEPENDS_ON"  # a task, on what must be done before it
    BELONGS_TO = "BELONGS_TO"  # a task, epic or memory, to its project
    PART_OF = "PART_OF"  # a task, to its epic
    SUPERSEDES = "SUPERSEDES"  # the new, to the old
    CONTRADICTS = "CONTRADICTS"
    REQUIRES = "REQUIRES"
    SUPPORTS = "SUPPORTS"
    DERIVED_FROM = "DERIVED_FROM"  # what was learnt, to where it was learnt
    ANNOTATES = "ANNOTATES"  # a note, to what it is about


class ExploreMode(StrEnum):
    LIST = "list"
    RELATED = "related"
    TRAVERSE = "traverse"
    DEPENDENCIES = "dependencies"


@dataclass(frozen=True, slots=True)
class Relation:
    library_id: str
    from_id: str
    kind: str
    to_id: str
    weight: float = 1.0
    explicit: bool = True  # somebody said so; otherwise found by likeness
    created_at: datetime = field(default_factory=now)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An item that a walk came to, and the best relation that led there."""

    item: Item
    distance: int
    kind: str
    direction: str  # outgoing, incoming: as seen from `via`
    via: str  # the entity id of the item before it


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    center: Item
    reached: tuple[Neighbour, ...]
    relations: tuple[Relation, ...]  # between the items that are shown
    total: int
    cut: bool = False  # there is more than a walk follows


@dataclass(frozen=True, slots=True)
class Dependencies:
    """An item with all its dependencies, and those that match the filter."""

    center: Item
    items: tuple[Item, ...]  # the item itself among them
    relations: tuple[Relation, ...]
    asked: frozenset[str]
    cut: bool = False


@dataclass(frozen=True, slots=True)
class TaskWeights:
    """Points of an open task by itself, by which the store preselects from very many."""

    priorities: tuple[tuple[str, int], ...]
    otherwise: int  # with no or another priority
    due: tuple[tuple[str, int], ...]  # (before this ISO date, points), soonest first
    begun: tuple[str, ...]  # statuses, which are looked at beside those that are not


@dataclass(frozen=True, slots=True)
class Capture(Stored):
    """A text as it was captured, which never changes. The item made of it points here."""

    item_id: str
    title: str
    text: str
    owner: str  # who captured it: a token's id, else the person's
    idempotency_key: str | None = None
    source: Json = field(default_factory=dict)
    created_at: datetime = field(default_factory=now)
    answer: Json | None = None  # the first answer of `remember`, which a repeated call gets

    @property
    def hash(self) -> str:
        return digest(self.text)


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
class Candidate(Stored):
    """A proposal in the review queue."""

    source_id: str  # the item with the notes; it is deleted with that
    owner: str  # who queued it: a token's id, else the person's
    proposal: Proposal
    project_id: str | None = None
    state: CandidateState = CandidateState.PENDING
    item_id: str | None = None  # the memory it became; it is deleted with that
    created_at: datetime = field(default_factory=now)
    decided_at: datetime | None = None
