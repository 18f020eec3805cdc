"""Actions on disks: search, read, list, publish, save."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import orjson

from commonplace.errors import BadRequest, BatchTooLarge, Invalid
from commonplace.interfaces.actions.action import Action, Tool
from commonplace.interfaces.actions.fields import (
    WHOLE,
    AudienceName,
    DiskScopeName,
    Id,
    Input,
    MaxChars,
    ModeName,
    Offset,
    Query,
    Reference,
    about,
    chars,
    number,
)
from commonplace.interfaces.actions.items import ORIGIN, WEAK, as_json
from commonplace.interfaces.actions.search import STATUS, SUPERSEDED_BY, Search
from commonplace.interfaces.actions.shapes import NEXT, Call, Field, Shape, compact, many, said
from commonplace.model import NO_DISK, Audience, Caller, DiskFilter, DiskScope, Json, Mode, OpenDisk

if TYPE_CHECKING:
    from commonplace.core.services import Services

# -- inputs

DiskId = Annotated[Id, about("Disk UUID, public_id or entity id")]


class SearchKnowledge(Input):
    query: Query
    limit: Annotated[int, number(1, 25, "How many sections"), WHOLE] = 5


class ListDisks(Input):
    scope: Annotated[
        DiskScopeName,
        about(
            "all: owned and saved; owned; saved: others', still published; private, published: "
            "owned ones that are"
        ),
    ] = DiskScope.ALL
    category: Annotated[str | None, chars(0, 200, "Exact category name")] = None
    tag: Annotated[str | None, chars(0, 200, "Exact tag name")] = None
    limit: Annotated[int, number(1, 100, "How many disks"), WHOLE] = 20

    @property
    def where(self) -> DiskFilter:
        return DiskFilter(self.category, self.tag)


class FindDisks(ListDisks):
    search: Annotated[
        str | None, chars(0, 500, "Owned disks by meaning; offset and category are ignored")
    ] = None
    offset: Offset = 0

    @property
    def where(self) -> DiskFilter:
        return DiskFilter(self.category, self.tag)


class OneDisk(Input):
    disk_id: DiskId


class ReadDisk(OneDisk):
    from_section: Annotated[int, number(1, 1_000_000, "Section to begin with, from 1"), WHOLE] = 1
    max_chars: MaxChars | None = None


MOST_IDS = 10


class DiskBatch(Input):
    ids: Annotated[list[Reference], about("At most 10", min_length=1, max_length=MOST_IDS)]

    @property
    def disk_ids(self) -> list[str]:
        return self.ids


class Publish(OneDisk):
    access: Annotated[
        AudienceName, about("`anyone` with its address, or `members`: people with an account")
    ] = Audience.ANYONE
    summary: Annotated[
        str | None,
        chars(
            0,
            2_000,
            "Your own words for redacted views. It may quote at most 60 words of the text and a "
            "tenth of it. Left out: as it was; empty: none of your own",
        ),
    ] = None

    @property
    def audience(self) -> Audience:
        return Audience(self.access)


# -- answers


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _at(name: str) -> Field:
    def get(value: Any, call: Call) -> str | None:
        at = getattr(value, name)
        return None if at is None else _moment(at)

    return Field(datetime | None if name != "created_at" else datetime, get)


def _similarity(value: Any, call: Call) -> float:
    similarity: float = value.similarity
    return round(min(max(similarity, 0.0), 1.0), 4)


def _visibility(value: Any, call: Call) -> str:
    return "published" if value.visibility == "published" else "private"


SIMILARITY, VISIBILITY = Field(float, _similarity), Field(str, _visibility)
OPEN_TEXT = "Only if the disk is not redacted"
DISK_SECTION = Shape(
    "DiskSection",
    None,
    index=said(int, "index", "From 1"),
    word_count=said(int, "word_count"),
    key_points=said(tuple[str, ...], "key_points"),
    text=Field(str, lambda section, call: getattr(section, "text", None), OPEN_TEXT, True),
)
RELATED_DISK = Shape(
    "RelatedDisk",
    "commonplace.core.disks.disk_views.Related",
    "public_id title",
    similarity=SIMILARITY,
)
_DISK: dict[str, Any] = dict(
    public_id=said(str, "disk.public_id"),
    title=said(str, "disk.view.title"),
    summary=said(str, "disk.view.summary"),
    category=said(str, "disk.view.category"),
    word_count=said(int, "disk.view.word_count"),
    visibility=Field(str, lambda part, call: _visibility(part.disk, call)),
    relationship=said(str, "disk.relationship", "owned, saved or public"),
    source_url=said(str | None, "disk.view.source_url"),
    ai_generated=said(
        bool, "disk.view.ai_generated", "Whether a model wrote summary and key points"
    ),
    redacted=Field(bool, lambda part, call: not isinstance(part.disk.view, OpenDisk)),
    tags=said(list[str], "disk.view.tags"),
    sections=many(DISK_SECTION, "sections"),
    next_section=said(int | None, "next_section", "Where to read on; null at the end"),
    related_disks=many(RELATED_DISK, "disk.related"),
    text=Field(str, lambda part, call: part.text, OPEN_TEXT, True),
    created_at=Field(datetime, lambda part, call: _moment(part.disk.created_at)),
)
DISK = Shape("Disk", None, **_DISK)
_FROM_OUTSIDE = ("source_url", "related_disks")
BATCH_DISK = Shape(
    "DiskOfBatch",
    None,
    **{name: field for name, field in _DISK.items() if name not in _FROM_OUTSIDE},
)
DISK_LINE = Shape(
    "DiskSummary",
    "commonplace.core.disks.disk_views.DiskLine",
    "public_id title summary category",
    visibility=VISIBILITY,
    relationship="relationship",
    owner_user_id="owner_id",
    owner_display_name="owner_name",
    word_count="word_count",
    tags="tags",
    saved_at=_at("saved_at"),
    created_at=_at("created_at"),
    similarity=Field(
        float,
        lambda line, call: None if line.similarity is None else _similarity(line, call),
        "Of a search",
        True,
    ),
)


def _found_scope(call: Call) -> str:
    return DiskScope.OWNED if getattr(call.args, "search", None) else str(call.args.scope)


DISKS = Shape(  # of the lines, and their total
    "DiskList",
    None,
    scope=Field(str, lambda found, call: _found_scope(call)),
    total=said(int, 1),
    disks=many(DISK_LINE, 0),
    next=NEXT,
)
SECTION_HIT = Shape(
    "DiskHit",
    "commonplace.core.disks.disk_views.DiskHit",
    disk_public_id="public_id",
    disk_title="title",
    section_index=said(int, "section_index", "From 1, as in get_disk"),
    similarity=SIMILARITY,
    key_points="key_points",
    redacted="redacted",
    section_text=Field(
        str,
        lambda hit, call: None if hit.redacted else hit.text,
        "The section, if the disk is not redacted",
        True,
    ),
    snippet=Field(
        str,
        lambda hit, call: hit.text if hit.redacted else None,
        "What the section is about, if the disk is redacted",
        True,
    ),
    created_at="created_at",
    published_at="published_at",
    origin=said(str, "origin", ORIGIN),
    added_by=Field(str, lambda hit, call: hit.added_by, "Name of the token", True),
    status=Field(str, lambda hit, call: hit.status, STATUS, True),
    superseded_by=Field(str, lambda hit, call: hit.superseded_by, SUPERSEDED_BY, True),
)
SECTION_HITS = Shape(  # of the result, and its hits
    "DiskHits",
    None,
    results=many(SECTION_HIT, 1),
    degraded=Field(str | None, lambda found, call: found[0].degraded),
    weak=Field(bool, lambda found, call: found[0].weak, WEAK),
)
PASSAGE = Shape(
    "SearchResult",
    "commonplace.core.disks.disk_views.DiskHit",
    "item_id url",
    base=SECTION_HIT,
    score=SIMILARITY,
)
PASSAGES = Shape(  # of the result, and its hits
    "SearchResults",
    None,
    query=Field(str, lambda found, call: found[0].query),
    mode=Field(ModeName, lambda found, call: found[0].mode),
    results=many(PASSAGE, 1),
    degraded=Field(str | None, lambda found, call: found[0].degraded),
    weak=Field(bool, lambda found, call: found[0].weak, WEAK),
)
PUBLICATION = Shape(
    "Publication",
    None,
    public_id=said(str, "public_id"),
    visibility=Field(str, lambda disk, call: "published" if _published(disk) else "private"),
    access=Field(
        str | None,
        lambda disk, call: disk.audience if _published(disk) else None,
        "Who can read it: anyone with the link, or people with an account",
    ),
    published_at=Field(
        str | None, lambda disk, call: _moment(disk.published_at) if _published(disk) else None
    ),
    path=Field(
        str | None,
        lambda disk, call: f"/d/{disk.public_id}" if _published(disk) else None,
        "Path of its page on this server",
    ),
)


def _published(disk: Any) -> bool:
    return hasattr(disk, "audience")


SAVED = Shape(
    "SavedDisk",
    None,
    public_id=said(str, "public_id"),
    title=said(str, "view.title"),
    saved_at=_at("saved_at"),
)
BATCH = Shape(
    "DiskBatch",
    None,
    disks=Field(
        [BATCH_DISK],
        lambda found, call: [BATCH_DISK(whole(disk), call) for disk in found[0]],
    ),
    not_found=said(list[str], 1),
)

# -- texts and what is done


def _hits_text(found: Json, value: Any) -> str:
    return orjson.dumps(compact(found["results"])).decode()


NOT_FOUND: Json = {"error": "not_found", "message": NO_DISK}


@dataclass(frozen=True, slots=True)
class PartOfDisk:
    """A disk, and the part of it that was asked for."""

    disk: Any
    sections: Sequence[Any]
    text: str | None
    next_section: int | None


async def _read(services: "Services", caller: Caller, args: ReadDisk) -> PartOfDisk:
    """Read a disk. Without text in it, as in redacted views, only sections are left out."""
    from commonplace.core.items.item_parts import read_part

    disk = await services.disks.get(caller, args.disk_id)
    start = args.from_section - 1
    if isinstance(disk.view, OpenDisk):
        part = read_part(disk.view.text, disk.view.sections, start, args.max_chars)
        following = None if part.next_section is None else part.next_section + 1
        sections = [disk.view.sections[place.position] for place in part.places]
        if part.cut and sections:
            sections = [replace(sections[0], text=part.text)]
        return PartOfDisk(disk, sections, part.text, following)
    if start and start >= len(disk.view.sections):
        raise Invalid(f"`from_section` is out of range: it has {len(disk.view.sections)} sections.")
    return PartOfDisk(disk, disk.view.sections[start:], None, None)


def whole(disk: Any) -> PartOfDisk:
    return PartOfDisk(disk, disk.view.sections, getattr(disk.view, "text", None), None)


async def _list(services: "Services", caller: Caller, args: ListDisks) -> Any:
    if isinstance(args, FindDisks) and args.search:
        found = await services.disks.find(caller, args.search, args.limit)
        return found, len(found)
    offset = args.offset if isinstance(args, FindDisks) else 0
    scope = DiskScope(args.scope)
    return await services.disks.page(caller, scope, args.where, limit=args.limit, offset=offset)


def _check_batch(values: Json) -> None:
    ids = values.get("ids")
    if not isinstance(ids, list):
        raise BadRequest("`ids` must be a list of disk ids.")
    if len(ids) > MOST_IDS:
        raise BatchTooLarge(f"`ids` may have {MOST_IDS} entries; send the rest in other calls.")


async def _whole(services: "Services", caller: Caller, disk: Any) -> PartOfDisk:
    return whole(disk)


async def _search(services: "Services", caller: Caller, args: Search) -> Any:
    found = await services.search.search(caller, args.query, limit=args.limit, mode=Mode(args.mode))
    seen = [(hit.score, hit.passage) for hit in found.hits]
    return found, await services.disks.hits(caller, seen)


SEARCH_ITEMS = Action(
    "search_items",
    "Search by meaning, by keywords, or both",
    Search,
    "search.search",
    PASSAGES,
    "POST /api/v1/search",
    run=_search,
    example={"query": "How do I scope a token to multiple folders?", "limit": 5},
)
ACTIONS = (
    Action(
        "search_knowledge",
        "Search disks",
        SearchKnowledge,
        "search.search",
        SECTION_HITS,
        tool=Tool(
            "Search the user's own disks by meaning. Use section_text ?? snippet: redacted hits "
            "have only a snippet.",
            _hits_text,
            shown="results",
        ),
        run=lambda services, caller, args: services.disks.search(caller, args.query, args.limit),
    ),
    Action(
        "list_disks",
        "List owned and saved disks, newest first",
        FindDisks,
        "disks.page",
        DISKS,
        "GET /api/v1/disks",
        cli="disk list",
        tool=Tool(
            "List the user's own and saved disks, newest first.",
            as_json,
            input=ListDisks,
            shown="scope total disks",
        ),
        run=_list,
    ),
    Action(
        "get_disks",
        "Read several owned disks",
        DiskBatch,
        "disks.batch",
        BATCH,
        "POST /api/v1/disks/batch",
        check=_check_batch,
    ),
    Action(
        "get_disk",
        "Read a disk",
        ReadDisk,
        "disks.get",
        DISK,
        "GET /api/v1/disks/{disk_id}",
        tool=Tool(
            "Read one disk by UUID or public_id. Published and saved disks are `redacted`: no "
            "source text. Long disks: set max_chars, and continue with from_section=next_section.",
            as_json,
            shown="public_id title redacted sections next_section text",
            missing=NOT_FOUND,
        ),
        description="Your private disks include their text. Published disks and those of others "
        "are redacted.",
        run=_read,
    ),
    Action(
        "preview_disk",
        "Preview a disk as others will see it",
        OneDisk,
        "disks.preview",
        DISK,
        "GET /api/v1/disks/{disk_id}/preview",
        expand=_whole,
    ),
    Action(
        "publish_disk",
        "Publish a disk",
        Publish,
        "disks.publish",
        PUBLICATION,
        "POST /api/v1/disks/{disk_id}/publish",
        cli="disk publish",
        description="Others find it by its id, read the redacted view and can save it. Publish "
        "again to change the access or the summary.",
    ),
    Action(
        "unpublish_disk",
        "Unpublish a disk",
        OneDisk,
        "disks.unpublish",
        PUBLICATION,
        "DELETE /api/v1/disks/{disk_id}/publish",
        cli="disk publish",
        description="Takes effect immediately for everyone. People who saved it get it back if "
        "you publish it again.",
    ),
    Action(
        "save_disk",
        "Save another person's disk",
        OneDisk,
        "disks.save",
        SAVED,
        "POST /api/v1/disks/{disk_id}/save",
        cli="disk save",
    ),
    Action(
        "unsave_disk",
        "Remove a saved disk",
        OneDisk,
        "disks.unsave",
        route="DELETE /api/v1/disks/{disk_id}/save",
        cli="disk save",
    ),
)
