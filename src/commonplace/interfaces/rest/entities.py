"""Entities: add, list, read, change, delete."""

from typing import Annotated, Any

from fastapi import Body, Query
from pydantic import BeforeValidator, ConfigDict, Field, model_validator
from starlette.responses import Response
from typing_extensions import TypedDict

from commonplace.core.entities import validation as rules
from commonplace.core.entities.validation import since
from commonplace.interfaces.actions import entities as entity_shapes
from commonplace.interfaces.actions.entities import (
    AnyTypeName,
    DueDate,
    PriorityName,
    Reference,
    Short,
    ShortList,
    Since,
)
from commonplace.interfaces.actions.items import Input, whole_number
from commonplace.interfaces.rest.routes import OK, ApiRequest, AtRevision, ItemId, Ok, api_router
from commonplace.model import ItemFilter

router = api_router("entities", "/api")
EXAMPLE = {
    "title": "Redis connection pooling insight",
    "category": "debugging",
    "technologies": ["redis", "asyncio"],
    "content": "The pool size must be at least the number of concurrent requests.",
}


class AddBody(entity_shapes.AddInput):
    epic: Annotated[
        Reference | None, Field(description="Of a task: id of the epic it is part of")
    ] = None


class AddQuery(Input):
    model_config = ConfigDict(strict=False)

    sync: Annotated[
        bool, Field(description="Wait until it is linked and found by meaning, too")
    ] = False


class AddedEntity(entity_shapes.AddEntityResult, entity_shapes.EntityInFull):
    """The new entity, with the result of adding it."""


@router.post(
    "/entities",
    status_code=201,
    summary="Add an entity",
    responses={
        202: {
            "model": AddedEntity,
            "description": "Stored and found by keywords; a worker does the rest",
        }
    },
)
async def add_entity(
    api: ApiRequest,
    query: Annotated[AddQuery, Query()],
    body: Annotated[AddBody, Body(examples=[EXAMPLE])],
    response: Response,
) -> AddedEntity:
    """Takes the parameters of the MCP tool `add`. With `sync=true`, the entity is linked and
    searchable when the call returns."""
    entities = api.services.entities
    added = await entities.add(
        api.caller, body.to_new_entity(epic=body.epic), sync=query.sync, **body.checks
    )
    [entity] = await entities.described(api.caller, [added.item])
    response.status_code = 202 if added.queued else 201
    shown = entity_shapes.entity(entity, api.services.settings)
    return {**shown, "content": body.content, **entity_shapes.add_entity_result(added)}


class EntitiesQuery(Input):
    model_config = ConfigDict(strict=False)

    entity_type: Annotated[
        list[AnyTypeName], Field(default_factory=list, description="May be given several times")
    ]
    project: Annotated[
        Reference | None, Field(description="Only entities of this project (id)")
    ] = None
    status: Annotated[
        list[Short],
        Field(default_factory=list, max_length=20, description="May be given several times"),
    ]
    language: Short | None = None
    category: Short | None = None
    assignee: Short | None = None
    tag: Short | None = None
    since: Since | None = None
    q: Annotated[
        str | None, Field(max_length=500, description="Found in title, address or tags")
    ] = None
    page: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    per_page: Annotated[int, Field(ge=1, le=100)] = 20


class EntitiesPage(TypedDict):
    entities: list[entity_shapes.Entity]
    total: int
    page: int
    per_page: int
    has_more: bool


@router.get("/entities", summary="List entities, newest first")
async def list_entities(api: ApiRequest, query: Annotated[EntitiesQuery, Query()]) -> EntitiesPage:
    where = ItemFilter(
        entity_types=tuple(query.entity_type),
        statuses=tuple(query.status),
        language=query.language,
        category=query.category,
        assignee=query.assignee,
        tag=query.tag,
        text=query.q,
        since=since(query.since) if query.since is not None else None,
    )
    offset = (query.page - 1) * query.per_page
    entities, total = await api.services.entities.page(
        api.caller, where, project=query.project, limit=query.per_page, offset=offset
    )
    return {
        "entities": [entity_shapes.entity(entity, api.services.settings) for entity in entities],
        "total": total,
        "page": query.page,
        "per_page": query.per_page,
        "has_more": offset + len(entities) < total,
    }


@router.get("/entities/{item_id}", summary="Read an entity in full")
async def read_entity(api: ApiRequest, item_id: ItemId) -> entity_shapes.EntityInFull:
    return entity_shapes.entity_in_full(
        await api.services.entities.get(api.caller, item_id), api.services.settings
    )


CHANGEABLE = (
    "title",
    "content",
    "category",
    "languages",
    "tags",
    "technologies",
    "assignees",
    "priority",
    "due_date",
    "metadata",
)


class EntityChanges(Input):
    """Fields that are left out or null do not change; at least one must change."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": [name], "properties": {name: {"not": {"type": "null"}}}}
                for name in CHANGEABLE
            ]
        }
    )

    title: Annotated[str | None, Field(json_schema_extra={"maxLength": rules.LONGEST_TITLE})] = None
    content: Annotated[
        str | None, Field(json_schema_extra={"maxLength": rules.LONGEST_CONTENT})
    ] = None
    category: Annotated[str | None, Field(max_length=rules.LONGEST_WORD)] = None
    languages: ShortList | None = None
    tags: ShortList | None = None
    technologies: ShortList | None = None
    assignees: ShortList | None = None
    priority: PriorityName | None = None
    due_date: Annotated[
        DueDate | None, Field(description="ISO date; an empty text takes it away")
    ] = None
    metadata: Annotated[
        dict[str, Any] | None, Field(description="Joined with what is there; null takes a key away")
    ] = None
    expected_revision: Annotated[
        Annotated[int, Field(ge=1, le=2**31 - 1), BeforeValidator(whole_number)] | None,
        Field(
            description=("Change it only if it is still at this revision; otherwise 409 `conflict`")
        ),
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _refuse_status(cls, value: Any) -> Any:
        if isinstance(value, dict) and "status" in value:
            raise ValueError(
                "`status` is moved along by /api/tasks and the MCP tool manage, which know what "
                "may follow what"
            )
        return value


@router.patch("/entities/{item_id}", summary="Update an entity")
async def change_entity(
    api: ApiRequest, item_id: ItemId, body: EntityChanges
) -> entity_shapes.EntityInFull:
    changes = body.model_dump(exclude_none=True, exclude={"expected_revision", "metadata"})
    if body.metadata is not None:
        changes["metadata"] = body.metadata
    item = await api.services.entities.update(api.caller, item_id, changes, body.expected_revision)
    return entity_shapes.entity_in_full(
        await api.services.entities.with_text(api.caller, item), api.services.settings
    )


@router.delete("/entities/{item_id}", summary="Delete an entity")
async def delete_entity(
    api: ApiRequest, item_id: ItemId, expected_revision: AtRevision = None
) -> Ok:
    await api.services.library.delete(api.caller, item_id, expected_revision)
    return OK
