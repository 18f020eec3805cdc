"""Inputs and answers about disks."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NotRequired

from pydantic import BeforeValidator, Field
from typing_extensions import TypedDict

from commonplace.core.disks.disk_views import Disk as DiskView, DiskHit, DiskLine
from commonplace.interfaces.actions.items import NOT_BLANK, Input, Moment, not_blank, whole_number
from commonplace.model import NO_DISK, OpenDisk, OpenSection, OutlinedSection, Published

Visibility = Literal["private", "published"]
ScopeName = Literal["all", "owned", "saved", "private", "published"]
Category = Annotated[str | None, Field(max_length=200, description="Exact category name")]
Tag = Annotated[str | None, Field(max_length=200, description="Exact tag name")]
Limit = Annotated[
    int, Field(ge=1, le=100, description="How many disks"), BeforeValidator(whole_number)
]
DiskScope = Annotated[
    ScopeName,
    Field(
        description=(
            "all: owned and saved; owned: of this library; saved: others' that were saved and are "
            "still published; private, "
            "published: owned ones that are"
        )
    ),
]


class SearchKnowledge(Input):
    query: Annotated[
        str,
        Field(
            min_length=1,
            max_length=10_000,
            json_schema_extra=NOT_BLANK,
            description=(
                "What to search for, in natural language; only the first 1,000 characters count"
            ),
        ),
        BeforeValidator(not_blank),
    ]
    limit: Annotated[
        int, Field(ge=1, le=25, description="How many sections"), BeforeValidator(whole_number)
    ] = 5


class ListDisks(Input):
    scope: DiskScope = "all"
    category: Category = None
    tag: Tag = None
    limit: Limit = 20


class GetDisk(Input):
    disk_id: Annotated[
        str, Field(min_length=1, max_length=200, description="Disk UUID, public_id or entity id")
    ]


def moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class DiskSection(TypedDict):
    index: Annotated[int, Field(description="From 1")]
    word_count: int
    key_points: list[str]
    text: NotRequired[Annotated[str, Field(description="Only if the disk is not redacted")]]


class RelatedDisk(TypedDict):
    public_id: str
    title: str
    similarity: float


class Disk(TypedDict):
    public_id: str
    title: str
    summary: str
    category: str
    word_count: int
    visibility: Visibility
    relationship: Annotated[str, Field(json_schema_extra={"enum": ["owned", "saved", "public"]})]
    source_url: str | None
    ai_generated: Annotated[bool, Field(description="Whether a model wrote summary and key points")]
    redacted: Annotated[bool, Field(description="Whether the source text is left out")]
    tags: list[str]
    sections: list[DiskSection]
    related_disks: list[RelatedDisk]
    text: NotRequired[Annotated[str, Field(description="Only if the disk is not redacted")]]
    created_at: Moment


def disk(value: DiskView) -> Disk:
    view = value.view
    shown: Disk = {
        "public_id": value.public_id,
        "title": view.title,
        "summary": view.summary,
        "category": view.category,
        "word_count": view.word_count,
        "visibility": _visibility(value.visibility),
        "relationship": value.relationship,
        "source_url": view.source_url,
        "ai_generated": view.ai_generated,
        "redacted": not isinstance(view, OpenDisk),
        "tags": list(view.tags),
        "sections": [_section(section) for section in view.sections],
        "related_disks": [
            {"public_id": one.public_id, "title": one.title, "similarity": _clamp(one.similarity)}
            for one in value.related
        ],
        "created_at": moment(value.created_at),
    }
    if isinstance(view, OpenDisk):
        shown["text"] = view.text
    return shown


def _section(value: OpenSection | OutlinedSection) -> DiskSection:
    shown: DiskSection = {
        "index": value.index,
        "word_count": value.word_count,
        "key_points": list(value.key_points),
    }
    if isinstance(value, OpenSection):
        shown["text"] = value.text
    return shown


class DiskSummary(TypedDict):
    public_id: str
    title: str
    summary: str
    category: str
    visibility: Visibility
    relationship: Annotated[str, Field(json_schema_extra={"enum": ["owned", "saved"]})]
    owner_user_id: str
    owner_display_name: str
    word_count: int
    tags: list[str]
    saved_at: Moment | None
    created_at: Moment


class DiskList(TypedDict):
    scope: ScopeName
    total: int
    disks: list[DiskSummary]


def disk_summary(value: DiskLine) -> DiskSummary:
    return {
        "public_id": value.public_id,
        "title": value.title,
        "summary": value.summary,
        "category": value.category,
        "visibility": _visibility(value.visibility),
        "relationship": value.relationship,
        "owner_user_id": value.owner_id,
        "owner_display_name": value.owner_name,
        "word_count": value.word_count,
        "tags": list(value.tags),
        "saved_at": moment(value.saved_at) if value.saved_at else None,
        "created_at": moment(value.created_at),
    }


def disk_list(scope: ScopeName, lines: Iterable[DiskLine], total: int) -> DiskList:
    return {"scope": scope, "total": total, "disks": [disk_summary(value) for value in lines]}


class SectionHit(TypedDict):
    disk_public_id: str
    disk_title: str
    section_index: Annotated[int, Field(description="From 1, as in get_disk")]
    similarity: float
    key_points: list[str]
    redacted: bool
    section_text: NotRequired[
        Annotated[str, Field(description="The section, if the disk is not redacted")]
    ]
    snippet: NotRequired[
        Annotated[str, Field(description="What the section is about, if the disk is redacted")]
    ]


def section_hits(values: Iterable[DiskHit]) -> list[SectionHit]:
    return [section_hit(value) for value in values]


def section_hit(value: DiskHit) -> SectionHit:
    shown: SectionHit = {
        "disk_public_id": value.public_id,
        "disk_title": value.title,
        "section_index": value.section_index,
        "similarity": _clamp(value.similarity),
        "key_points": list(value.key_points),
        "redacted": value.redacted,
    }
    if value.redacted:
        shown["snippet"] = value.text
    else:
        shown["section_text"] = value.text
    return shown


class Publication(TypedDict):
    public_id: str
    visibility: Visibility
    access: Annotated[
        str | None,
        Field(
            json_schema_extra={"enum": ["anyone", "members", None]},
            description="Who can read it: anyone with the link, or people with an account",
        ),
    ]
    published_at: Moment | None
    path: Annotated[str | None, Field(description="Path of its page on this server")]


def publication(value: Published) -> Publication:
    return {
        "public_id": value.public_id,
        "visibility": "published",
        "access": value.audience.value,
        "published_at": moment(value.published_at),
        "path": f"/d/{value.public_id}",
    }


class SavedDisk(TypedDict):
    public_id: str
    title: str
    saved_at: Moment | None


def saved_disk(value: Published) -> SavedDisk:
    return {
        "public_id": value.public_id,
        "title": value.view.title,
        "saved_at": moment(value.saved_at) if value.saved_at else None,
    }


NOT_FOUND: dict[str, Any] = {"error": "not_found", "message": NO_DISK}


def _visibility(value: str) -> Visibility:
    return "published" if value == "published" else "private"


def _clamp(similarity: float) -> float:
    return round(min(max(similarity, 0.0), 1.0), 4)
