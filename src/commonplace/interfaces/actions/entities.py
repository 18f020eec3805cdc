"""Inputs and answers about entities."""

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field
from typing_extensions import TypedDict

from commonplace import model
from commonplace.core.entities import validation as rules
from commonplace.core.entities.duplicates import THRESHOLD, SimilarItem
from commonplace.core.entities.entities import AddedEntity, Entity as CoreEntity
from commonplace.core.entities.search import EntityQuery
from commonplace.core.entities.validation import NewEntity, since as parse_since
from commonplace.core.people.client_setup import address as server_address
from commonplace.interfaces.actions.items import (
    NOT_BLANK,
    Input,
    Moment,
    moment,
    not_blank,
    whole_number,
)
from commonplace.settings import Settings

EntityTypeName = Literal[
    "episode",
    "pattern",
    "procedure",
    "decision",
    "plan",
    "idea",
    "claim",
    "artifact",
    "session",
    "domain",
    "task",
    "epic",
    "project",
]
AnyTypeName = Literal["document", EntityTypeName]
PriorityName = Literal["critical", "high", "medium", "low", "someday"]
Reference = Annotated[str, Field(min_length=1, max_length=200)]
Short = Annotated[
    str,
    Field(min_length=1, max_length=rules.LONGEST_WORD, json_schema_extra=NOT_BLANK),
    BeforeValidator(not_blank),
]
ShortList = Annotated[list[Short], Field(max_length=rules.LONGEST_LIST)]
Statuses = Annotated[str, Field(max_length=200)]
References = Annotated[list[Reference], Field(max_length=rules.LONGEST_LIST)]
_INTERNAL = ("front_matter", "tags_derived")


def refuse_document(value: object) -> object:
    if value == "document":
        raise ValueError(
            "cannot be document: add_to_knowledge and uploads keep documents; here it is one of "
            f"{', '.join(rules.TYPES)}"
        )
    return value


def empty_if_null(value: object) -> object:
    """Turn null into an empty text, so that both are refused in the same words."""
    return "" if value is None else value


Essential = Annotated[str, BeforeValidator(empty_if_null)]
ProjectId = Annotated[
    str, Field(max_length=200, json_schema_extra={"minLength": 1})
]  # tasks without one have their own words
DueDate = Annotated[str, Field(max_length=40, description="ISO date, such as 2026-03-31")]
Since = Annotated[
    str, Field(max_length=40, description="ISO date or time, or an age such as 12h, 7d, 2w")
]


def required_not_blank(*names: str) -> Callable[[dict[str, Any]], None]:
    """Declare fields as required in the schema, though they have defaults.

    With the defaults, a missing field is answered as an empty one, in the words of the contract.
    """

    def update_schema(schema: dict[str, Any]) -> None:
        schema["required"] = list(names)
        for name in names:
            del schema["properties"][name]["default"]
            schema["properties"][name] |= {"minLength": 1, **NOT_BLANK}

    return update_schema


class AddInput(Input):
    model_config = ConfigDict(json_schema_extra=required_not_blank("title", "content"))

    title: Annotated[
        Essential,
        Field(
            json_schema_extra={"maxLength": rules.LONGEST_TITLE},
            description="Short title, up to 200 characters",
        ),
    ] = ""
    content: Annotated[
        Essential,
        Field(
            json_schema_extra={"maxLength": rules.LONGEST_CONTENT},
            description="The whole text, up to 50,000 characters",
        ),
    ] = ""
    entity_type: Annotated[
        EntityTypeName,
        BeforeValidator(refuse_document),
        Field(
            description=(
                "episode: something learnt; pattern: a practice that works; procedure: a runbook; "
                "decision: with its reasons; plan; "
                "idea; claim: one fact; artifact: a work product; session: a checkpoint; domain; "
                "task and epic: work in a project; "
                "project"
            )
        ),
    ] = "episode"
    category: Annotated[
        str, Field(max_length=rules.LONGEST_WORD, description="Domain category, such as debugging")
    ] = ""
    languages: Annotated[
        ShortList, Field(default_factory=list, description="Programming languages")
    ]
    tags: Annotated[
        ShortList,
        Field(default_factory=list, description="Tags; tasks also get tags from their words"),
    ]
    related_to: Annotated[
        References,
        Field(
            default_factory=list,
            description=(
                "Ids of entities to link to; supersedes:<id>, contradicts:<id>, requires:<id> and "
                "supports:<id> say how"
            ),
        ),
    ]
    metadata: Annotated[
        dict[str, Any], Field(default_factory=dict, description="Additional structured data")
    ]
    project: Annotated[
        ProjectId | None, Field(description="Id of a project; required for tasks and epics")
    ] = None
    priority: Annotated[
        PriorityName | None, Field(description="Priority of tasks and epics; medium by default")
    ] = None
    assignees: Annotated[
        ShortList, Field(default_factory=list, description="Names of the assignees")
    ]
    due_date: Annotated[DueDate | None, Field(description="ISO date, such as 2026-03-31")] = None
    technologies: Annotated[
        ShortList, Field(default_factory=list, description="Technologies involved")
    ]
    depends_on: Annotated[
        References, Field(default_factory=list, description="Ids of tasks that must be done first")
    ]
    repository_url: Annotated[
        str | None, Field(max_length=rules.LONGEST_URL, description="Of a project")
    ] = None
    check_conflicts: Annotated[
        bool, Field(description="Whether to look for duplicates and contradictions")
    ] = True
    skip_conflicts: Annotated[bool, Field(description="Skip that check, to be faster")] = False
    conflict_threshold: Annotated[
        float,
        Field(ge=0, le=1, description="Similarity from which a conflict is reported"),
        BeforeValidator(lambda value: float(value) if type(value) is int else value),
    ] = THRESHOLD

    def to_new_entity(self, **more: Any) -> NewEntity:
        return NewEntity(
            title=self.title,
            content=self.content,
            entity_type=self.entity_type,
            category=self.category,
            languages=tuple(self.languages),
            tags=tuple(self.tags),
            related_to=tuple(self.related_to),
            metadata=self.metadata,
            project=self.project,
            priority=self.priority,
            assignees=tuple(self.assignees),
            due_date=self.due_date,
            technologies=tuple(self.technologies),
            depends_on=tuple(self.depends_on),
            repository_url=self.repository_url,
            **more,
        )

    @property
    def checks(self) -> dict[str, Any]:
        return {
            "check_conflicts": self.check_conflicts and not self.skip_conflicts,
            "threshold": self.conflict_threshold,
        }


class Conflict(TypedDict):
    id: str
    name: str
    score: float
    kind: Annotated[
        str,
        Field(
            json_schema_extra={"enum": ["duplicate", "near_duplicate", "contradiction"]},
            description="Kind of conflict",
        ),
    ]
    reason: str


def conflict(value: SimilarItem) -> Conflict:
    return {
        "id": value.entity_id,
        "name": value.name,
        "score": value.score,
        "kind": value.kind,
        "reason": value.reason,
    }


class AddEntityResult(TypedDict):
    success: bool
    id: str
    message: str
    timestamp: Moment
    conflicts: Annotated[
        list[Conflict],
        Field(description="Similar entities; nothing was merged or discarded"),
    ]


def add_entity_result(value: AddedEntity) -> AddEntityResult:
    return {
        "success": True,
        "id": value.item.entity_id,
        "message": value.message,
        "timestamp": moment(value.item.created_at),
        "conflicts": [conflict(found) for found in value.conflicts],
    }


class Entity(TypedDict):
    id: str
    item_id: str
    public_id: str
    entity_type: str
    title: str
    name: str
    category: str
    languages: list[str]
    tags: list[str]
    technologies: list[str]
    assignees: list[str]
    status: str
    priority: str | None
    due_date: str | None
    project: Annotated[str | None, Field(description="Id of the project it belongs to")]
    epic: Annotated[str | None, Field(description="Id of the epic it is part of")]
    depends_on: list[str]
    metadata: dict[str, Any]
    summary: str
    url: str
    revision: int
    created_at: Moment
    updated_at: Moment


def entity(value: CoreEntity, settings: Settings) -> Entity:
    item = value.item
    return {
        "id": item.entity_id,
        "item_id": item.id,
        "public_id": item.public_id,
        "entity_type": item.entity_type,
        "title": item.title,
        "name": item.title,
        "category": item.category,
        "languages": list(item.languages),
        "tags": list(item.tags),
        "technologies": list(item.technologies),
        "assignees": list(item.assignees),
        "status": item.status,
        "priority": item.priority or None,
        "due_date": item.due_date,
        "project": value.project.entity_id if value.project else None,
        "epic": value.epic.entity_id if value.epic else None,
        "depends_on": [other.entity_id for other in value.depends_on],
        "metadata": public_metadata(item.metadata),
        "summary": item.summary,
        "url": address(item.url, item.public_id, settings),
        "revision": item.revision,
        "created_at": moment(item.created_at),
        "updated_at": moment(item.updated_at),
    }


class EntityInFull(Entity):
    content: str


def entity_in_full(value: CoreEntity, settings: Settings) -> EntityInFull:
    return {**entity(value, settings), "content": value.text or ""}


def public_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in metadata.items() if name not in _INTERNAL}


def remaining_metadata(metadata: dict[str, Any], said: Iterable[str]) -> dict[str, Any]:
    """Return the metadata that the answer does not state itself.

    Anybody can write metadata, so it never states an item's status or who added it.
    """
    return {
        name: value
        for name, value in public_metadata(metadata).items()
        if name not in {*said, "origin", "added_by"}
    }


def address(url: str | None, public_id: str, settings: Settings) -> str:
    """Where a person can look at it: its source, else the item in the web app."""
    return url or f"{server_address(settings)}/items/{public_id}"


class SearchInput(Input):
    query: Annotated[
        str,
        Field(
            min_length=1,
            max_length=10_000,
            json_schema_extra=NOT_BLANK,
            description="What to search for, in natural language or exact words",
        ),
        BeforeValidator(not_blank),
    ]
    types: Annotated[
        list[AnyTypeName] | None,
        Field(
            max_length=20, description="Only these types; document: saved pages, texts and files"
        ),
    ] = None
    language: Annotated[Short | None, Field(description="Programming language")] = None
    category: Annotated[Short | None, Field(description="Exact category")] = None
    status: Annotated[
        Statuses | None,
        Field(
            description=(
                "Of tasks (todo, doing ...) or memories (superseded, stale, wrong); several: "
                "`todo,doing`"
            )
        ),
    ] = None
    project: Annotated[
        Reference | None, Field(description="Only entities of this project (id)")
    ] = None
    assignee: Annotated[Short | None, Field(description="Name of the assignee")] = None
    since: Annotated[
        Since | None,
        Field(description="Only newer ones: ISO date or time, or an age such as 12h, 7d, 2w"),
    ] = None
    limit: Annotated[
        int,
        Field(ge=1, le=50, description="How many entities to return"),
        BeforeValidator(whole_number),
    ] = 10
    include_content: Annotated[bool, Field(description="Whether to return the best passage")] = True
    content_max_chars: Annotated[
        int,
        Field(ge=1, le=20_000, description="Maximum length of the passage, in characters"),
        BeforeValidator(whole_number),
    ] = 500

    @property
    def filters(self) -> dict[str, Any]:
        named = ("types", "language", "category", "status", "project", "assignee", "since")
        return {name: value for name in named if (value := getattr(self, name)) is not None}

    def to_query(self) -> EntityQuery:
        return EntityQuery(
            self.query,
            self.project,
            model.ItemFilter(
                entity_types=tuple(self.types or ()),
                language=self.language,
                category=self.category,
                statuses=() if self.status is None else (self.status,),
                assignee=self.assignee,
                since=parse_since(self.since) if self.since is not None else None,
            ),
        )


class EntityResult(TypedDict):
    id: str
    type: str
    title: str
    content: str | None
    score: float
    url: str
    metadata: dict[str, Any]


class EntityResults(TypedDict):
    results: list[EntityResult]
    total: Annotated[int, Field(description="Number of entities found")]
    query: str
    filters: dict[str, Any]
    has_more: bool
    degraded: Annotated[
        str | None, Field(description="Why the result is incomplete; null if it is complete")
    ]


def entity_results(
    query: SearchInput, hits: Sequence[model.Hit], degraded: str | None, settings: Settings
) -> EntityResults:
    return {
        "results": [_entity_result(query, hit, settings) for hit in hits[: query.limit]],
        "total": len(hits),
        "query": query.query,
        "filters": query.filters,
        "has_more": len(hits) > query.limit,
        "degraded": degraded,
    }


def _entity_result(query: SearchInput, hit: model.Hit, settings: Settings) -> EntityResult:
    passage = hit.passage
    said = {
        "status": passage.status,
        "category": passage.category,
        "tags": list(passage.tags),
        "heading": passage.heading,
        "added_by": passage.added_by,
    }
    return {
        "id": f"{passage.entity_type}_{passage.public_id}",
        "type": passage.entity_type,
        "title": passage.title,
        "content": shorten(passage.text, query.content_max_chars)
        if query.include_content
        else None,
        "score": round(hit.score, 4),
        "url": address(passage.url, passage.public_id, settings),
        "metadata": {
            **remaining_metadata(passage.metadata, said),
            **{name: value for name, value in said.items() if value},
            "created_at": moment(passage.created_at),
            "section_index": passage.position,
            "origin": passage.origin,
        },
    }


def shorten(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"
