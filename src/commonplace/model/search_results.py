"""Search: modes, queries, scored sections, passages, hits."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from commonplace.model.ids import Json
from commonplace.model.items import EntityType, Origin, publication_date


class Mode(StrEnum):
    SEMANTIC = "semantic"
    KEYWORD = "keyword"
    HYBRID = "hybrid"


@dataclass(frozen=True, slots=True)
class Words:
    """A keyword query: phrases of one or more words, any of which may match."""

    phrases: tuple[tuple[str, ...], ...]


class Scored(NamedTuple):
    section_id: int
    score: float


class Dated(NamedTuple):
    """A section with the dates of its item."""

    section_id: int
    title: str
    created_at: datetime
    published_at: datetime | None


class Passage(NamedTuple):
    """A section with fields of its item. A tuple, because every search makes a dozen."""

    section_id: int
    item_id: str
    public_id: str
    entity_type: str
    title: str
    url: str | None
    position: int
    heading: str
    text: str
    word_count: int
    key_points: tuple[str, ...]
    locator: Json
    status: str
    visibility: str
    category: str
    tags: tuple[str, ...]
    auto_tags: tuple[str, ...]
    metadata: Json
    created_at: datetime
    origin: str = Origin.YOU
    added_by: str | None = None  # the name of the token, for those who see the whole library
    valid_until: str | None = None
    review_by: str | None = None
    superseded_by: str | None = None  # the entity that replaced it; set by search

    @property
    def entity_id(self) -> str:
        return f"{self.entity_type}_{self.public_id}"

    @property
    def published_at(self) -> datetime | None:
        return publication_date(self.metadata)

    @property
    def own_status(self) -> str | None:
        """The status of what can have one: all but documents that nobody has corrected."""
        return None if self.entity_type == EntityType.DOCUMENT and not self.status else self.status


@dataclass(frozen=True, slots=True)
class Hit:
    rank: int
    score: float
    passage: Passage
    cosine: float | None = None  # with the query; None: unknown


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a search. `degraded` says why it is incomplete; `weak`: no hit is relevant."""

    query: str
    mode: Mode
    hits: tuple[Hit, ...]
    degraded: str | None = None
    weak: bool = True


class Citation(NamedTuple):
    """A passage that an answer rests on, and what it says."""

    number: int
    passage: Passage
    quote: str


class Sentence(NamedTuple):
    text: str
    citations: tuple[int, ...]  # numbers, at least one


@dataclass(frozen=True, slots=True)
class CitedAnswer:
    """An answer to a question. Without sentences there is none, only the closest passages."""

    sentences: tuple[Sentence, ...]
    citations: tuple[Citation, ...]
    closest: tuple[Citation, ...]
    thread_id: str
    degraded: str | None = None

    @property
    def answer(self) -> str | None:
        return " ".join(sentence.text for sentence in self.sentences) or None

    @property
    def weak(self) -> bool:
        return not self.sentences
