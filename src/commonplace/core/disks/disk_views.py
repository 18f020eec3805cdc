"""Disks as one caller sees them: in full, as a line of a list, as a search hit."""

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from commonplace.model import PRIVATE, PUBLISHED, Item, OpenDisk, Passage, Published, RedactedDisk
from commonplace.text.secret_masking import mask_secrets


@dataclass(frozen=True, slots=True)
class Related:
    public_id: str
    title: str
    similarity: float


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk in full."""

    public_id: str
    visibility: str
    relationship: str  # owned, saved, public
    owner_id: str
    owner_name: str
    saved_at: datetime | None
    created_at: datetime
    view: OpenDisk | RedactedDisk
    related: tuple[Related, ...] = ()


@dataclass(frozen=True, slots=True)
class DiskLine:
    """A line of a list of disks."""

    public_id: str
    title: str
    summary: str
    category: str
    visibility: str
    relationship: str
    owner_id: str
    owner_name: str
    word_count: int
    tags: tuple[str, ...]
    saved_at: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class DiskHit:
    public_id: str
    title: str
    section_index: int
    similarity: float
    key_points: tuple[str, ...]
    redacted: bool
    text: str  # of the section; a snippet when redacted
    origin: str
    added_by: str | None


def disk_hit(score: float, passage: Passage, published: Published | None) -> DiskHit:
    if published is None:
        return DiskHit(
            passage.public_id,
            passage.title,
            passage.position + 1,
            score,
            passage.key_points,
            False,
            passage.text,
            passage.origin,
            passage.added_by,
        )
    section = next((s for s in published.view.sections if s.index == passage.position + 1), None)
    return DiskHit(
        passage.public_id,
        published.view.title,
        passage.position + 1,
        score,
        section.key_points if section else (),
        True,
        section.snippet if section else "",
        passage.origin,
        passage.added_by,
    )


def own_line(item: Item, owner: tuple[str, str], published: Published | None) -> DiskLine:
    shown = published.view if published else item
    return DiskLine(
        item.public_id,
        shown.title,
        shown.summary,
        shown.category,
        PUBLISHED if published else PRIVATE,
        "owned",
        *owner,
        item.word_count,
        shown.tags,
        None,
        item.created_at,
    )


def saved_line(published: Published) -> DiskLine:
    view = published.view
    return DiskLine(
        published.public_id,
        view.title,
        view.summary,
        view.category,
        PUBLISHED,
        "saved",
        published.owner_id,
        owner_name_shown(published.owner_name),
        view.word_count,
        view.tags,
        published.saved_at,
        published.created_at,
    )


@lru_cache(maxsize=1_000)
def owner_name_shown(name: str) -> str:
    """Mask secrets in an owner's name. Cached: lists repeat the same few names."""
    return mask_secrets(name)
