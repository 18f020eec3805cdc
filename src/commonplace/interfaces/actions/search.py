"""Searching passages and entities, and reading the results."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from commonplace.core.entities.validation import moment, since as parse_since
from commonplace.interfaces.actions.action import Action, Tool
from commonplace.interfaces.actions.entities import ENTITY, item_url, public_metadata
from commonplace.interfaces.actions.fields import (
    WHOLE,
    AnyTypeNames,
    Cli,
    Day,
    FromSection,
    Input,
    ItemId,
    MaxChars,
    ModeName,
    Project,
    Query,
    Since,
    Statuses,
    Word,
    about,
    number,
)
from commonplace.interfaces.actions.items import (
    DEGRADED,
    FETCH_CHARS,
    ORIGIN,
    WEAK,
    as_json,
    brief_sections,
    on_one_line,
    shorten,
)
from commonplace.interfaces.actions.shapes import (
    Call,
    Field,
    Shape,
    many,
    plain,
    said,
    to_the_second,
)
from commonplace.model import Caller, EntityType, Hit, ItemFilter, Json, Mode, SearchResult

if TYPE_CHECKING:
    from commonplace.core.items.item_parts import ItemPart
    from commonplace.core.search.search import EntityQuery
    from commonplace.core.services import Services

# -- inputs


class Search(Input):
    query: Query
    limit: Annotated[int, number(1, 20, "How many passages to return"), WHOLE] = 8
    mode: Annotated[ModeName, about("keyword: exact names, error codes; semantic: paraphrases")] = (
        Mode.HYBRID
    )


class SearchEntities(Input):
    query: Query
    types: AnyTypeNames | None = None
    language: Annotated[Word | None, about("Programming language")] = None
    category: Annotated[Word | None, about("Exact category")] = None
    status: Statuses | None = None
    project: Project | None = None
    assignee: Annotated[Word | None, about("Name of the assignee")] = None
    since: Since | None = None
    text_language: Annotated[Word | None, about("Language of the text: en, de")] = None
    author: Annotated[Word | None, about("Part of the author's name")] = None
    published_after: Day | None = None
    published_before: Day | None = None
    as_of: Annotated[Day | None, about("Answer from what was there and held then")] = None
    limit: Annotated[int, number(1, 50, "How many entities to return"), WHOLE] = 10
    include_content: Annotated[bool, about("Return the best passage"), Cli(hidden=True)] = True
    content_max_chars: Annotated[
        int, number(1, 20_000, "Maximum length of the passage"), WHOLE, Cli(hidden=True)
    ] = 500

    @property
    def filters(self) -> Json:
        others = ("query", "limit", "include_content", "content_max_chars")
        return {
            name: value
            for name in type(self).model_fields
            if name not in others and (value := getattr(self, name)) is not None
        }

    def _moment(self, name: str, *, end: bool = False) -> datetime | None:
        value = getattr(self, name)
        return None if value is None else moment(name, value, end=end)

    @property
    def question(self) -> "EntityQuery":
        from commonplace.core.search.search import EntityQuery

        where = ItemFilter(
            entity_types=tuple(self.types or ()),
            language=self.language,
            category=self.category,
            statuses=() if self.status is None else (self.status,),
            assignee=self.assignee,
            since=parse_since(self.since) if self.since is not None else None,
            text_language=self.text_language and self.text_language.lower(),
            author=self.author,
            published_after=self._moment("published_after"),
            published_before=self._moment("published_before"),
            as_of=self._moment("as_of", end=True),
        )
        return EntityQuery(self.query, self.project, where)


class Fetch(Input):
    id: Annotated[ItemId, about("Id of an entity or item, as other tools return it")]
    from_section: FromSection = 0
    max_chars: MaxChars | None = None


# -- answers

STATUS = "Of tasks and memories; empty for a memory that holds"
SUPERSEDED_BY = "Entity id of what replaced it"
HIT = Shape(
    "SearchHit",
    Hit,
    rank="rank",
    score=Field(float, lambda hit, call: round(hit.score, 4)),
    title="passage.title",
    item_id="passage.item_id",
    section_index="passage.position",
    text="passage.text",
    url="passage.url",
    created_at="passage.created_at",
    published_at="passage.published_at",
    origin=said(str, "passage.origin", ORIGIN),
    added_by=Field(
        str,
        lambda hit, call: hit.passage.added_by,
        "Name of the token that added it, for tokens of the whole library",
        optional=True,
    ),
    status=Field(str, lambda hit, call: hit.passage.own_status, STATUS, optional=True),
    superseded_by=Field(
        str, lambda hit, call: hit.passage.superseded_by, SUPERSEDED_BY, optional=True
    ),
)
HITS = Shape(
    "SearchHits",
    SearchResult,
    "query mode",
    hits=many(HIT, "hits"),
    degraded=DEGRADED,
    weak=said(bool, "weak", WEAK),
)


def _about_hit(hit: Hit, call: Call) -> Json:
    passage = hit.passage
    stated = {
        "status": passage.status,
        "superseded_by": passage.superseded_by,
        "tags": list(passage.tags),
        "published_at": plain(passage.published_at),
        "added_by": passage.added_by,
    }
    return {
        **{name: value for name, value in stated.items() if value},
        "section_index": passage.position,
        "origin": passage.origin,
    }


def _content(hit: Hit, call: Call) -> str | None:
    args = call.args
    return shorten(hit.passage.text, args.content_max_chars) if args.include_content else None


FOUND = Shape(
    "FoundEntity",
    Hit,
    id=Field(str, lambda hit, call: f"{hit.passage.entity_type}_{hit.passage.public_id}"),
    type="passage.entity_type",
    title="passage.title",
    content=Field(str | None, _content),
    score=Field(float, lambda hit, call: round(hit.score, 4)),
    url=Field(
        str,
        lambda hit, call: item_url(hit.passage.url, hit.passage.public_id, call.settings),
    ),
)
RESULT = Shape(
    "EntityResult",
    Hit,
    base=FOUND,
    created_at="passage.created_at",
    metadata=Field(Json, _about_hit),
)
SEARCHED = Shape(
    "EntitySearch",
    SearchResult,
    total=Field(int, lambda found, call: len(found.hits)),
    query=Field(str, lambda found, call: call.args.query),
    filters=Field(Json, lambda found, call: call.args.filters),
    has_more=Field(bool, lambda found, call: len(found.hits) > call.args.limit),
    degraded=DEGRADED,
    weak=said(bool, "weak", WEAK),
)


def _results(shape: Shape) -> Field:
    return Field(
        [shape], lambda found, call: [shape(hit, call) for hit in found.hits[: call.args.limit]]
    )


RESULTS = Shape("EntityResults", None, base=SEARCHED, results=_results(RESULT))

RESULT_TOOL = Shape(
    "EntityResultByTool",
    Hit,
    base=FOUND,
    created_at=Field(datetime, lambda hit, call: to_the_second(hit.passage.created_at)),
    metadata=Field(Json, lambda hit, call: _brief(hit, call)),
)
RESULTS_TOOL = Shape("EntityResultsByTool", None, base=SEARCHED, results=_results(RESULT_TOOL))


def _brief(hit: Hit, call: Call) -> Json:
    """Leave out automatic tags of documents, and the first section, where reading begins anyway."""
    told = {name: value for name, value in _about_hit(hit, call).items() if value}
    passage = hit.passage
    if passage.entity_type == EntityType.DOCUMENT and {*passage.tags} <= {*passage.auto_tags}:
        told.pop("tags", None)
    return told


@dataclass(frozen=True, slots=True)
class Fetched:
    """An entity with its relations, and the part of its text that was asked for."""

    entity: Any
    part: "ItemPart"


def _about_fetched(fetched: Fetched, call: Call) -> Json:
    shown = ENTITY(fetched.entity, call)
    own = public_metadata(shown.pop("metadata"), {*shown, "added_by", "transcription_status"})
    for stated in ("id", "title", "name", "url"):
        del shown[stated]
    status = fetched.part.item.transcription_status
    return {
        **own,
        **{name: value for name, value in shown.items() if value},
        **({"transcription_status": status} if status else {}),
        "sections": brief_sections(fetched.part, call),
        "next_section": fetched.part.next_section,
        **({"cut": True} if fetched.part.cut else {}),
    }


FETCHED = Shape(
    "FetchedEntity",
    None,
    id=said(str, "part.item.entity_id"),
    title=said(str, "part.item.title"),
    text=said(str, "part.text"),
    url=Field(
        str,
        lambda found, call: item_url(found.part.item.url, found.part.item.public_id, call.settings),
    ),
    metadata=Field(Json, _about_fetched),
)


# -- texts of answers

CLOSEST = "No exact match. Closest passages:"


def standing(about: Json) -> str:
    """Return a status, and what replaced it."""
    by = about.get("superseded_by")
    return f"{about['status']} by {by}" if by else str(about.get("status") or "")


def dated(result: Json) -> str:
    """Return the day that something was published, else the day that it was added."""
    published = result["metadata"].get("published_at")
    return f"published {published[:10]}" if published else str(result["created_at"])[:10]


def _notes(found: Json, hits: list[Json]) -> list[str]:
    degraded = [f"Note: {found['degraded']}"] if found["degraded"] else []
    return degraded + [CLOSEST] * bool(found["weak"] and hits)


def _hits_text(found: Json, value: Any) -> str:
    lines = _notes(found, found["hits"])
    if not found["hits"]:
        lines.append("Nothing found.")
    for hit in found["hits"]:
        lines.append(f"{hit['rank']}. ({hit['score']:.2f}) {on_one_line(hit['title'])}")
        quoted = f'"...{hit["text"].strip()}..."'.split("\n")
        lines += ["   " + line if line.strip() else line for line in quoted]
        lines.append(f"   item_id: {hit['item_id']}")
        dates = [
            f"{name}: {hit[name][:10]}" for name in ("created_at", "published_at") if hit[name]
        ]
        lines.append("   " + ", ".join(dates))
        if hit.get("status"):
            lines.append(f"   status: {standing(hit)}")
    return "\n".join(lines)


def results_text(found: Json, value: Any) -> str:
    lines = _notes(found, found["results"])
    for rank, result in enumerate(found["results"], 1):
        facts = [standing(result["metadata"]), dated(result), f"{result['score']:.2f}"]
        title = f"{on_one_line(result['title'])} ({', '.join(filter(None, facts))})"
        lines.append(f"{rank}. [{result['id']}] {title}")
        if result["content"]:
            lines.append("   " + result["content"].replace("\n", "\n   "))
    if found["has_more"]:
        lines.append("There is more: raise limit, or narrow the search.")
    return "\n".join(lines if found["results"] else [*lines, "Nothing found."])


# -- what is done


async def _fetch(services: "Services", caller: Caller, args: Fetch) -> Fetched:
    from commonplace.core.items.item_parts import part_of

    entity = await services.entities.get(caller, args.id)
    full = await services.library.reread(caller, entity.item)
    return Fetched(entity, part_of(full, args.from_section, args.max_chars))


ACTIONS = (
    Action(
        "search_knowledge_base",
        "Search passages",
        Search,
        "search.search",
        HITS,
        cli="search",
        tool=Tool(
            "Search for passages in everything the user saved (pages, files, transcripts, notes), "
            "before answering from memory. get_item reads the whole item of a hit.",
            _hits_text,
            shown="query mode hits",
        ),
    ),
    Action(
        "search",
        "Search entities and documents",
        SearchEntities,
        "search.search",
        RESULTS,
        "POST /api/search",
        cli="search",
        tool=Tool(
            "Search tasks, memories and documents by meaning and words: the default search, with "
            "filters; one result each, with its best passage. Use it before answering from "
            "memory. fetch reads one in full.",
            results_text,
            shape=RESULTS_TOOL,
            shown="results total has_more",
        ),
        run=lambda services, caller, args: services.entity_search.search(caller, args.question),
    ),
    Action(
        "fetch",
        "Fetch an entity or document",
        Fetch,
        "entities.get",
        FETCHED,
        tool=Tool(
            "Read a search result in full, by id. Long texts come in parts: continue with "
            "from_section=metadata.next_section.",
            as_json,
            defaults={"max_chars": FETCH_CHARS},
        ),
        run=_fetch,
    ),
)
