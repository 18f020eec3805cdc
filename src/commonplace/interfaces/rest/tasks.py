"""Tasks and epics: listed, added, changed, and moved along the drawing."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import Body, Query
from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

from commonplace.core.entities.validation import NewEntity
from commonplace.core.work.tasks import ChangeResult
from commonplace.interfaces.actions import entities, tasks as wire
from commonplace.interfaces.actions.entities import PriorityName, Reference, Short
from commonplace.interfaces.actions.items import Input
from commonplace.interfaces.rest.routes import Desk, ItemId, api_router
from commonplace.model import ItemFilter
from commonplace.model.workflow import EPIC, TASK, Machine

router = api_router("tasks", "/api")
EXAMPLE = {
    "title": "Implement GitHub OAuth callback",
    "content": "Validate state, exchange the code, issue a session.",
    "project": "project_abc123def456",
    "priority": "high",
}


class Changed(entities.Entity):
    message: Annotated[str, Field(description="What was done, and what came of it")]


class Added(Changed):
    conflicts: list[entities.Conflict]


class Page(TypedDict):
    total: int
    page: int
    per_page: int
    has_more: bool


class TasksPage(Page):
    tasks: list[entities.Entity]


class EpicsPage(Page):
    epics: list[entities.Entity]


class WorkQuery(Input):
    model_config = ConfigDict(strict=False)

    project: Annotated[Reference | None, Field(description="Id of a project")] = None
    status: Annotated[
        list[Short],
        Field(default_factory=list, max_length=20, description="May be given several times"),
    ]
    assignee: Short | None = None
    priority: PriorityName | None = None
    page: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    per_page: Annotated[int, Field(ge=1, le=100)] = 20


class TasksQuery(WorkQuery):
    epic: Annotated[Reference | None, Field(description="Id of an epic: only its tasks")] = None


class NewTask(entities.AddInput):
    entity_type: Literal["task"] = "task"
    epic: Annotated[Reference | None, Field(description="Id of the epic it is part of")] = None


class NewEpic(entities.AddInput):
    entity_type: Literal["epic"] = "epic"


@router.get("/tasks", summary="List tasks, newest first")
async def list_tasks(desk: Desk, query: Annotated[TasksQuery, Query()]) -> TasksPage:
    tasks, page = await _page(desk, TASK, query, query.epic)
    return {"tasks": tasks, **page}


@router.post("/tasks", status_code=201, summary="Add a task")
async def add_task(desk: Desk, body: Annotated[NewTask, Body(examples=[EXAMPLE])]) -> Added:
    """The task is `todo`, and searchable when the call returns."""
    return await _add(desk, body, body.new(epic=body.epic))


class NextQuery(Input):
    model_config = ConfigDict(strict=False)

    project: Annotated[Reference | None, Field(description="Id of a project")] = None
    assignee: Annotated[Short | None, Field(description="Only their tasks, and nobody's")] = None
    limit: Annotated[int, Field(ge=1, le=100)] = 5


class Next(TypedDict):
    suggestions: list[wire.Suggestion]
    message: str


@router.get("/tasks/next", summary="Suggest what to do next, with reasons")
async def next_tasks(desk: Desk, query: Annotated[NextQuery, Query()]) -> Next:
    found, message = await desk.services.planning.suggest(
        desk.caller, query.project, assignee=query.assignee, limit=query.limit
    )
    return {
        "suggestions": [wire.suggestion(suggestion) for suggestion in found],
        "message": message,
    }


@router.get("/tasks/{item_id}", summary="Read a task in full")
async def read_task(desk: Desk, item_id: ItemId) -> entities.EntityInFull:
    return await _read(desk, TASK, item_id)


@router.patch("/tasks/{item_id}", summary="Update a task")
async def change_task(desk: Desk, item_id: ItemId, body: wire.TaskChanges) -> Changed:
    """`status` must be an allowed transition; the error lists the allowed ones."""
    return await changed(
        desk,
        await desk.services.tasks.update(
            desk.caller, item_id, TASK, body.wish, body.expected_revision
        ),
    )


@router.get("/tasks/{item_id}/estimate", summary="Estimate a task from similar finished tasks")
async def estimate_task(desk: Desk, item_id: ItemId) -> wire.Estimate:
    return wire.estimate((await desk.services.planning.estimate(desk.caller, item_id))[1])


@router.post("/tasks/{item_id}/block", summary="Block a task, with a reason")
async def block_task(desk: Desk, item_id: ItemId, body: wire.Blocking) -> Changed:
    return await _step(desk, item_id, "block_task", body, reason=body.reason)


@router.post("/tasks/{item_id}/review", summary="Submit a task for review")
async def submit_review(desk: Desk, item_id: ItemId, body: wire.Review | None = None) -> Changed:
    return await _step(desk, item_id, "submit_review", body)


@router.post("/tasks/{item_id}/complete", summary="Complete a task")
async def complete_task(
    desk: Desk, item_id: ItemId, body: wire.Completion | None = None
) -> Changed:
    """`learnings` are stored as an episode that is derived from the task."""
    return await _step(
        desk, item_id, "complete_task", body, learnings=(body.learnings if body else None) or ""
    )


@router.post("/tasks/{item_id}/notes", summary="Add a note to a task")
async def note_on_task(desk: Desk, item_id: ItemId, body: wire.Note) -> Changed:
    return await changed(
        desk,
        await desk.services.tasks.note(desk.caller, item_id, body.content, body.expected_revision),
    )


@router.get("/epics", summary="List epics, newest first")
async def list_epics(desk: Desk, query: Annotated[WorkQuery, Query()]) -> EpicsPage:
    epics, page = await _page(desk, EPIC, query)
    return {"epics": epics, **page}


@router.post("/epics", status_code=201, summary="Add an epic")
async def add_epic(desk: Desk, body: NewEpic) -> Added:
    """The epic is `planning`; its status follows its tasks."""
    return await _add(desk, body, body.new())


@router.get("/epics/{item_id}", summary="Read an epic in full")
async def read_epic(desk: Desk, item_id: ItemId) -> entities.EntityInFull:
    return await _read(desk, EPIC, item_id)


@router.patch("/epics/{item_id}", summary="Update an epic")
async def change_epic(desk: Desk, item_id: ItemId, body: wire.Changes) -> Changed:
    return await changed(
        desk,
        await desk.services.tasks.update(
            desk.caller, item_id, EPIC, body.wish, body.expected_revision
        ),
    )


def _plain(action: str) -> Callable[..., Any]:
    async def step(desk: Desk, item_id: ItemId, body: wire.Nothing | None = None) -> Changed:
        return await _step(desk, item_id, action, body)

    step.__name__ = action
    return step


for _path, _action, _summary in (
    ("/tasks/{item_id}/start", "start_task", "Start a task"),
    ("/tasks/{item_id}/unblock", "unblock_task", "Unblock a task"),
    ("/tasks/{item_id}/archive", "archive_task", "Archive a task"),
    ("/epics/{item_id}/start", "start_epic", "Start an epic"),
    ("/epics/{item_id}/complete", "complete_epic", "Complete an epic that has no open tasks"),
    ("/epics/{item_id}/archive", "archive_epic", "Archive an epic"),
):
    router.post(_path, summary=_summary)(_plain(_action))


async def _add(desk: Desk, body: entities.AddInput, new: NewEntity) -> Added:
    added = await desk.services.entities.add(desk.caller, new, sync=True, **body.checks)
    return {
        **await changed(desk, ChangeResult(added.item, added.message)),
        "conflicts": entities.added(added)["conflicts"],
    }


async def _page(
    desk: Desk, machine: Machine, query: WorkQuery, epic: str | None = None
) -> tuple[list[entities.Entity], Page]:
    where = ItemFilter(
        entity_types=(machine.entity_type,),
        statuses=tuple(query.status),
        assignee=query.assignee,
        priority=query.priority,
    )
    offset = (query.page - 1) * query.per_page
    found, total = await desk.services.tasks.page(
        desk.caller, where, project=query.project, epic=epic, limit=query.per_page, offset=offset
    )
    return [entities.entity(entity, desk.services.settings) for entity in found], {
        "total": total,
        "page": query.page,
        "per_page": query.per_page,
        "has_more": offset + len(found) < total,
    }


async def _read(desk: Desk, machine: Machine, item_id: str) -> entities.EntityInFull:
    entity = await desk.services.entities.get(desk.caller, item_id)
    machine.require(entity.item)
    return entities.entity_in_full(entity, desk.services.settings)


async def _step(
    desk: Desk, item_id: str, action: str, body: wire.Nothing | None, **words: str
) -> Changed:
    given = body or wire.Nothing()
    return await changed(
        desk,
        await desk.services.tasks.step(
            desk.caller,
            item_id,
            action,
            about=given.about,
            expected_revision=given.expected_revision,
            **words,
        ),
    )


async def changed(desk: Desk, done: ChangeResult) -> Changed:
    [entity] = await desk.services.entities.described(desk.caller, [done.item])
    return {**entities.entity(entity, desk.services.settings), "message": done.message}
