"""Disks as one caller sees them: in full, as a line of a list, as a search hit."""

from dataclasses import dataclass, replace
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
class DiskHead:
    """Whose a disk is, as one caller sees it."""

    public_id: str
    visibility: str
    relationship: str  # owned, saved, public
    owner_id: str
    owner_name: str
    saved_at: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Disk(DiskHead):
    """A disk in full."""

    view: OpenDisk | RedactedDisk
    related: tuple[Related, ...] = ()


@dataclass(frozen=True, slots=True)
class DiskLine(DiskHead):
    """A line of a list of disks."""

    title: str
    summary: str
    category: str
    word_count: int
    tags: tuple[str, ...]
    similarity: float | None = None  # to what was searched for


@dataclass(frozen=True, slots=True)
class DiskHit:
    item_id: str
    public_id: str
    title: str
    section_index: int
    similarity: float
    key_points: tuple[str, ...]
    redacted: bool
    text: str  # of the section; a snippet when redacted
    origin: str
    added_by: str | None
    url: str | None
    created_at: datetime
    published_at: datetime | None  # by its source
    status: str | None
    superseded_by: str | None


def disk_hit(score: float, passage: Passage, published: Published | None) -> DiskHit:
    hit = DiskHit(
        passage.item_id,
        passage.public_id,
        passage.title,
        passage.position + 1,
        score,
        passage.key_points,
        False,
        passage.text,
        passage.origin,
        passage.added_by,
        passage.url,
        passage.created_at,
        passage.published_at,
        passage.own_status,
        passage.superseded_by,
    )
    if published is None:
        return hit
    view = published.view
    section = next((s for s in view.sections if s.index == hit.section_index), None)
    return replace(
        hit,
        title=view.title,
        key_points=section.key_points if section else (),
        redacted=True,
        text=section.snippet if section else "",
        url=view.source_url,
    )


def own_line(item: Item, owner: tuple[str, str], published: Published | None) -> DiskLine:
    shown = published.view if published else item
    return DiskLine(
        item.public_id,
        PUBLISHED if published else PRIVATE,
        "owned",
        *owner,
        None,
        item.created_at,
        shown.title,
        shown.summary,
        shown.category,
        item.word_count,
        shown.tags,
    )


def saved_line(published: Published) -> DiskLine:
    view = published.view
    return DiskLine(
        published.public_id,
        PUBLISHED,
        "saved",
        published.owner_id,
        owner_name_shown(published.owner_name),
        published.saved_at,
        published.created_at,
        view.title,
        view.summary,
        view.category,
        view.word_count,
        view.tags,
    )


@lru_cache(maxsize=1_000)
def owner_name_shown(name: str) -> str:
    """Mask secrets in an owner's name. Cached: lists repeat the same few names."""
    return mask_secrets(name)
