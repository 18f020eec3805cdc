"""Disks: items as their owner reads them, and as others may read them."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from commonplace.model.ids import Json
from commonplace.model.items import EntityType, ItemFilter

NOT_DISKS = (EntityType.TASK, EntityType.EPIC, EntityType.PROJECT, EntityType.SESSION)
# What the library lists and counts unless somebody asks for more.
TO_READ = ItemFilter(archived=False, notes=False, not_entity_types=NOT_DISKS)
DISKS = tuple(kind for kind in EntityType if kind not in NOT_DISKS)
PRIVATE, PUBLISHED = "private", "published"
NO_DISK = "Disk not found"


class DiskScope(StrEnum):
    ALL = "all"
    OWNED = "owned"
    SAVED = "saved"
    PRIVATE = "private"
    PUBLISHED = "published"


class Audience(StrEnum):
    """Who may read a published disk: everybody with its address, or people with an account here."""

    ANYONE = "anyone"
    MEMBERS = "members"


@dataclass(frozen=True, slots=True)
class SectionHead:
    index: int  # from 1
    word_count: int
    key_points: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OutlinedSection(SectionHead):
    """A section for others. It has no field for the text."""

    snippet: str


@dataclass(frozen=True, slots=True)
class DiskSummary:
    """The fields that everybody who sees a disk may read. None is for the source's text."""

    title: str
    summary: str
    category: str
    tags: tuple[str, ...]
    source_url: str | None
    ai_generated: bool
    word_count: int


@dataclass(frozen=True, slots=True)
class RedactedDisk(DiskSummary):
    """A disk for others, and for its owner while it is published. Has no field for the text."""

    sections: tuple[OutlinedSection, ...] = ()

    @classmethod
    def of(cls, view: Json) -> "RedactedDisk":
        sections = tuple(
            OutlinedSection(**(section | {"key_points": tuple(section["key_points"])}))
            for section in view["sections"]
        )
        return cls(**(view | {"tags": tuple(view["tags"]), "sections": sections}))


@dataclass(frozen=True, slots=True)
class OpenSection(SectionHead):
    text: str


@dataclass(frozen=True, slots=True)
class OpenDisk(DiskSummary):
    """A private disk, as its owner reads it."""

    sections: tuple[OpenSection, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Published:
    """A published item. `stale`: the item has changed, and the view must be derived again."""

    library_id: str
    item_id: str
    public_id: str
    entity_type: str
    owner_id: str
    owner_name: str
    audience: Audience
    view: RedactedDisk
    stale: bool
    change: int  # counts the item's changes; a derived view belongs to one
    created_at: datetime
    published_at: datetime
    own_summary: str = ""  # the owner's own words for others
    saved_at: datetime | None = None  # by the library that asks


@dataclass(frozen=True, slots=True)
class DiskFilter:
    """A filter on disks; fields that are not set do not matter."""

    category: str | None = None
    tag: str | None = None
    text: str | None = None  # part of title or tags
