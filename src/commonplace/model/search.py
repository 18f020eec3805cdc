"""Questions and answers."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from commonplace.model.ids import Json
from commonplace.model.items import Origin


class Mode(StrEnum):
    SEMANTIC = "semantic"
    KEYWORD = "keyword"
    HYBRID = "hybrid"


@dataclass(frozen=True, slots=True)
class Words:
    """A keyword query, engine-neutral: alternatives, any of which may match; each a phrase of one or more words."""

    phrases: tuple[tuple[str, ...], ...]


class Scored(NamedTuple):
    section_id: int
    score: float


class Passage(NamedTuple):
    """A section loaded for an answer, with what its item says about it. A tuple: every search makes a dozen."""

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
    metadata: Json
    created_at: datetime
    origin: str = Origin.YOU
    added_by: str | None = None  # the name of the token, for those who see the whole library


@dataclass(frozen=True, slots=True)
class Hit:
    rank: int
    score: float
    passage: Passage


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A search's answer. `degraded` says in words why it is less than was asked for."""

    query: str
    mode: Mode
    hits: tuple[Hit, ...]
    degraded: str | None = None
