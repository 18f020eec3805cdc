"""Actions on entities: add, search, read, list, change, delete, and correct memories."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import ConfigDict, model_validator

from commonplace.core.entities.validation import LONGEST_URL, NewEntity, since as parse_since
from commonplace.core.people.client_setup import address as server_address
from commonplace.interfaces.actions.action import Action, Done, Tool
from commonplace.interfaces.actions.conflicts import CONFLICT, SIMILAR, added_text
from commonplace.interfaces.actions.fields import (
    NUMBER,
    AnyTypeNames,
    Assignees,
    Category,
    Cli,
    Day,
    DependsOn,
    DueDate,
    EntityContent,
    EntityTitle,
    EntityTypeName,
    ExpectedRevision,
    Input,
    ItemId,
    Languages,
    LongText,
    Metadata,
    Priority,
    Project,
    ProjectOfNew,
    Reason,
    Reference,
    RelatedTo,
    Since,
    Tags,
    Technologies,
    Word,
    Words,
    about,
    chars,
    frozen,
    number,
    patch_of,
)
from commonplace.interfaces.actions.items import (
    Paged,
)
from commonplace.interfaces.actions.shapes import (
    Call,
    Field,
    Listing,
    Shape,
    many,
    said,
    within,
)
from commonplace.model import AUTHORED, Caller, Item, ItemFilter, Json
from commonplace.settings import Settings

if TYPE_CHECKING:
    from commonplace.core.services import Services

THRESHOLD = 0.85  # the similarity from which a conflict is reported


def required(*names: str) -> Any:
    """Declare fields as required in the schema, though they have defaults.

    With the defaults, a missing field is answered as an empty one, in the words of the contract.
    """

    def update_schema(schema: Json) -> None:
        schema["required"] = [*names, *schema.get("required", ())]
        for name in names:
            del schema["properties"][name]["default"]
            schema["properties"][name] |= {"minLength": 1, "pattern": r"\S"}

    return update_schema


# -- inputs


class KnowledgeFields(Input):
    """The fields of a memory that its author chooses."""

    title: EntityTitle = ""
    content: EntityContent = ""
    category: Category | None = ""
    languages: Languages = []
    tags: Tags = []
    technologies: Technologies = []
    metadata: Metadata = {}

    def new_entity(self, **more: Any) -> NewEntity:
        """Return the entity of the fields that it has in common with this input."""
        named = type(self).model_fields.keys() & NewEntity.__dataclass_fields__.keys()
        return NewEntity(**{name: frozen(getattr(self, name)) for name in named}, **more)


class MemoryFields(KnowledgeFields):
    valid_until: Annotated[Day | None, about("Date until which it holds")] = None
    review_by: Annotated[Day | None, about("Date by which to check it")] = None


class EntityFields(KnowledgeFields):
    assignees: Assignees = []
    priority: Annotated[Priority | None, about("Of tasks and epics; medium by default")] = None
    due_date: DueDate | None = None


# Fields that only tasks and epics have, and those of them that are not lists.
WORK_FIELDS = [
    name for name in EntityFields.model_fields if name not in KnowledgeFields.model_fields
]
WORK_FACTS = [name for name in WORK_FIELDS if EntityFields.model_fields[name].default != []]


class Add(EntityFields):
    model_config = ConfigDict(json_schema_extra=required("title", "content"))

    entity_type: EntityTypeName = "episode"
    related_to: RelatedTo = []
    project: ProjectOfNew | None = None
    depends_on: DependsOn = []
    repository_url: Annotated[
        str | None, chars(0, LONGEST_URL, "Of a project"), Cli("--repository")
    ] = None
    check_conflicts: Annotated[
        bool, about("Look for duplicates and contradictions"), Cli("--check/--no-check")
    ] = True
    skip_conflicts: Annotated[bool, about("Skip that check, to be faster"), Cli(hidden=True)] = (
        False
    )
    conflict_threshold: Annotated[
        float,
        number(0, 1, "Similarity from which a conflict is reported"),
        NUMBER,
        Cli(hidden=True),
    ] = THRESHOLD

    @property
    def new(self) -> NewEntity:
        return self.new_entity()

    @model_validator(mode="after")
    def _skip(self) -> "Add":
        return self.model_copy(update={"check_conflicts": False}) if self.skip_conflicts else self

    @property
    def threshold(self) -> float:
        return self.conflict_threshold


class AddInEpic(Add):
    epic: Annotated[Reference | None, about("Of a task: id of the epic it is part of")] = None


class AddBody(AddInEpic):
    sync: Annotated[
        bool, about("Wait until it is linked and found by meaning, too"), Cli(hidden=True)
    ] = False


class OneEntity(Input):
    entity_id: ItemId


class OneEntityAt(OneEntity):
    expected_revision: ExpectedRevision = None


class ListEntities(Paged):
    entity_type: AnyTypeNames = []
    project: Project | None = None
    status: Annotated[Words, about("Only with this status; may be given several times")] = []
    language: Annotated[Word | None, about("Programming language")] = None
    category: Annotated[Word | None, about("Exact category")] = None
    assignee: Annotated[Word | None, about("Name of the assignee")] = None
    tag: Annotated[Word | None, about("Exact tag")] = None
    since: Since | None = None
    q: Annotated[str | None, chars(0, 500, "Words in the title, tags or URL")] = None

    @property
    def where(self) -> ItemFilter:
        return ItemFilter(
            entity_types=tuple(self.entity_type),
            statuses=tuple(self.status),
            language=self.language,
            category=self.category,
            assignee=self.assignee,
            tag=self.tag,
            text=self.q,
            since=parse_since(self.since) if self.since is not None else None,
        )


class AllFields(EntityFields, MemoryFields):
    pass


_Changes = patch_of(
    "EntityChanges",
    AllFields,
    " ".join(AllFields.model_fields),
    entity_id=(ItemId, ...),
    expected_revision=(ExpectedRevision, None),
)


class ChangeEntity(_Changes):  # type: ignore[misc, valid-type]
    @model_validator(mode="before")
    @classmethod
    def _refuse_status(cls, value: Any) -> Any:
        if isinstance(value, dict) and "status" in value:
            raise ValueError(
                "`status` is moved along by /api/tasks and the MCP tool manage, which know what "
                "may follow what"
            )
        return value


class Supersede(OneEntityAt):
    by: Annotated[Reference | None, about("Id of the replacement")] = None
    content: Annotated[
        LongText | None, about("Text of a new memory that replaces it"), Cli(stdin=True)
    ] = None
    title: Annotated[str | None, chars(0, 200, "With content: its title")] = None
    reason: Annotated[Reason | None, about("Why")] = None


class Mark(OneEntityAt):
    reason: Annotated[Reason | None, about("Why")] = None


# -- answers


def item_url(url: str | None, public_id: str, settings: Settings) -> str:
    """Where a person can look at it: its source, else the item in the web app."""
    return url or f"{server_address(settings)}/items/{public_id}"


def public_metadata(metadata: Json, said: Any = ()) -> Json:
    """Return the metadata that the answer does not state itself.

    Anybody can write metadata, so it never states an item's status or who added it.
    """
    hidden = {"front_matter", *said}
    return {name: value for name, value in metadata.items() if name not in hidden}


def _entity_id(path: str) -> Field:
    def get(entity: Any, call: Call) -> str | None:
        other = getattr(entity, path)
        return other.entity_id if other else None

    return Field(str | None, get)


def authored(names: Iterable[str]) -> dict[str, Any]:
    """Authored fields of a value's `item`; no priority is null."""
    priority = Field(str | None, lambda value, call: value.item.priority or None)
    return {name: priority if name == "priority" else f"item.{name}" for name in names}


ADDED_ENTITY = Shape(
    "AddedEntity",
    "commonplace.core.entities.entities.AddedEntity",
    success=Field(bool, lambda added, call: True),
    id="item.entity_id",
    message="message",
    timestamp="item.created_at",
    conflicts=many(CONFLICT, "conflicts", "Entities that it repeats or contradicts; all stay"),
    similar=many(SIMILAR, "similar", "At most three closest statements; you decide about them"),
)
ENTITY = Shape(
    "Entity",
    "commonplace.core.entities.entities.Entity",
    id="item.entity_id",
    item_id="item.id",
    **within(
        "item", "public_id entity_type title status summary revision origin created_at updated_at"
    ),
    **authored(AUTHORED),
    name="item.title",
    project=_entity_id("project"),
    epic=_entity_id("epic"),
    depends_on=Field(
        list[str], lambda entity, call: [other.entity_id for other in entity.depends_on]
    ),
    metadata=Field(Json, lambda entity, call: public_metadata(entity.item.metadata)),
    url=Field(
        str,
        lambda entity, call: item_url(entity.item.url, entity.item.public_id, call.settings),
    ),
)
FULL_ENTITY = Shape(
    "FullEntity", None, base=ENTITY, content=Field(str, lambda entity, call: entity.text or "")
)


@dataclass(frozen=True, slots=True)
class Changed:
    """An entity after a change, and the core's sentence about it."""

    entity: Any
    message: str
    more: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AddedInFull:
    added: Any
    entity: Any


NEW_ENTITY = Shape(
    "NewEntity",
    None,
    base=FULL_ENTITY,
    at="entity",
    success=Field(bool, lambda new, call: True),
    message=said(str, "added.message"),
    timestamp=said(datetime, "added.item.created_at"),
    conflicts=many(CONFLICT, "added.conflicts"),
    similar=many(SIMILAR, "added.similar"),
)
CHANGED_ENTITY = Shape(
    "ChangedEntity",
    Changed,
    "message",
    base=FULL_ENTITY,
    at="entity",
    waits_for=Field(
        list[str], lambda done, call: done.more.get("waits_for"), "Unfinished dependencies", True
    ),
    branch_name=Field(str, lambda done, call: done.more.get("branch_name"), "Proposed", True),
    learnings_id=Field(
        str, lambda done, call: done.more.get("learnings_id"), "Episode of the learnings", True
    ),
    superseded_by=Field(
        str, lambda done, call: done.more.get("superseded_by"), "Memory that replaces it", True
    ),
)


# -- what is done


async def changed(services: "Services", caller: Caller, done: Any) -> Changed:
    """Return a changed entity as it is now."""
    entity = await services.entities.with_text(caller, done.item)
    return Changed(entity, done.message, done.more)


async def _with_text(services: "Services", caller: Caller, item: Item) -> Any:
    return await services.entities.with_text(caller, item)


async def added_in_full(services: "Services", caller: Caller, added: Any) -> AddedInFull:
    return AddedInFull(added, await services.entities.with_text(caller, added.item))


def change_done(done: Any, call: Call) -> Done:
    """Tell a change of an entity: its state and the results."""
    item = done.item
    return Done(item, done.message, {"status": item.status or None, **done.more})


def _deleted(item: Item, call: Call) -> Done:
    return Done(item, f"Deleted: {item.title}", {"deleted": True})


def _correction(name: str, title: str, shape: type[Input], description: str = "") -> Action:
    return Action(
        name,
        title,
        shape,
        f"memory.{name}",
        CHANGED_ENTITY,
        f"POST /api/entities/{{entity_id}}/{name.replace('_', '-')}",
        cli="edit",
        manage=change_done,
        description=description,
        expand=changed,
    )


ACTIONS = (
    Action(
        "add",
        "Add an entity",
        Add,
        "entities.add",
        ADDED_ENTITY,
        tool=Tool(
            "Add work or entities to the graph: tasks, epics, projects, or knowledge such as "
            'episodes. Tasks and epics need a project (explore types=["project"] lists them). '
            "`conflicts` lists similar or contradicting entities. For durable memory, use "
            "remember.",
            added_text,
            idempotent=False,
        ),
    ),
    Action(
        "add_entity",
        "Add an entity and return it",
        AddBody,
        "entities.add",
        NEW_ENTITY,
        "POST /api/entities",
        cli="remember",
        status=201,
        also={202: "Stored and found by keywords; a worker does the rest"},
        status_of=lambda new: 202 if new.added.queued else 201,
        query=("sync",),
        expand=added_in_full,
        example={
            "title": "Redis connection pooling insight",
            "category": "debugging",
            "technologies": ["redis", "asyncio"],
            "content": "The pool size must be at least the number of concurrent requests.",
        },
    ),
    Action(
        "list_entities",
        "List entities, newest first",
        ListEntities,
        "entities.page",
        Listing("entities", ENTITY, paged=True),
        "GET /api/entities",
        cli="list",
    ),
    Action(
        "get_entity",
        "Read an entity in full",
        OneEntity,
        "entities.get",
        FULL_ENTITY,
        "GET /api/entities/{entity_id}",
    ),
    Action(
        "update_entity",
        "Update an entity",
        ChangeEntity,
        "entities.update",
        FULL_ENTITY,
        "PATCH /api/entities/{entity_id}",
        expand=_with_text,
    ),
    Action(
        "delete",
        "Delete an entity",
        OneEntityAt,
        "library.delete",
        route="DELETE /api/entities/{entity_id}",
        manage=_deleted,
        run=lambda services, caller, args: services.library.delete(
            caller, args.entity_id, args.expected_revision
        ),
    ),
    _correction(
        "supersede",
        "Replace a memory",
        Supersede,
        "Pass `by` (the id of the replacement), or `content` and `title` to create one. Search "
        "ranks the old memory below it.",
    ),
    _correction(
        "mark_wrong",
        "Mark a memory as wrong",
        Mark,
        "Search and context leave it out from then on.",
    ),
    _correction(
        "mark_stale", "Mark a memory as stale", Mark, "Search still finds it and shows its status."
    ),
    _correction("restore", "Restore a corrected memory", OneEntityAt),
)
