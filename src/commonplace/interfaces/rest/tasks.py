"""Tasks and epics: list, add, change, and move through their states."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import Body, Query
from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

from commonplace.core.entities.validation import NewEntity
from commonplace.core.work.tasks import ChangeResult
from commonplace.interfaces.actions import entities as entity_shapes, tasks as task_shapes
from commonplace.interfaces.actions.entities import PriorityName, Reference, Short
from commonplace.interfaces.actions.items import Input
from commonplace.interfaces.rest.routes import ApiRequest, ItemId, api_router
from commonplace.model import ItemFilter
from commonplace.model.workflow import EPIC, TASK, Machine

router = api_router("tasks", "/api")
EXAMPLE = {
    "title": "Implement GitHub OAuth callback",
    "content": "Validate state, exchange the code, issue a session.",
    "project": "project_abc123def456",
    "priority": "high",
}


class ChangedEntity(entity_shapes.Entity):
    message: Annotated[str, Field(description="What was done, and what came of it")]


class AddedWork(ChangedEntity):
    conflicts: list[entity_shapes.Conflict]


class Page(TypedDict):
    total: int
    page: int
    per_page: int
    has_more: bool


class TasksPage(Page):
    tasks: list[entity_shapes.Entity]


class EpicsPage(Page):
    epics: list[entity_shapes.Entity]


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


class NewTask(entity_shapes.AddInput):
    entity_type: Literal["task"] = "task"
    epic: Annotated[Reference | None, Field(description="Id of the epic it is part of")] = None


class NewEpic(entity_shapes.AddInput):
    entity_type: Literal["epic"] = "epic"


@router.get("/tasks", summary="List tasks, newest first")
async def list_tasks(api: ApiRequest, query: Annotated[TasksQuery, Query()]) -> TasksPage:
    tasks, page = await _page(api, TASK, query, query.epic)
    return {"tasks": tasks, **page}


@router.post("/tasks", status_code=201, summary="Add a task")
async def add_task(
    api: ApiRequest, body: Annotated[NewTask, Body(examples=[EXAMPLE])]
) -> AddedWork:
    """The task is `todo`, and searchable when the call returns."""
    return await _add(api, body, body.to_new_entity(epic=body.epic))


class NextQuery(Input):
    model_config = ConfigDict(strict=False)

    project: Annotated[Reference | None, Field(description="Id of a project")] = None
    assignee: Annotated[Short | None, Field(description="Only their tasks, and nobody's")] = None
    limit: Annotated[int, Field(ge=1, le=100)] = 5


class NextTasks(TypedDict):
    suggestions: list[task_shapes.Suggestion]
    message: str


@router.get("/tasks/next", summary="Suggest what to do next, with reasons")
async def next_tasks(api: ApiRequest, query: Annotated[NextQuery, Query()]) -> NextTasks:
    found, message = await api.services.planning.suggest(
        api.caller, query.project, assignee=query.assignee, limit=query.limit
    )
    return {
        "suggestions": [task_shapes.suggestion(suggestion) for suggestion in found],
        "message": message,
    }


@router.get("/tasks/{item_id}", summary="Read a task in full")
async def read_task(api: ApiRequest, item_id: ItemId) -> entity_shapes.EntityInFull:
    return await _read(api, TASK, item_id)


@router.patch("/tasks/{item_id}", summary="Update a task")
async def change_task(
    api: ApiRequest, item_id: ItemId, body: task_shapes.TaskChanges
) -> ChangedEntity:
    """`status` must be an allowed transition; the error lists the allowed ones."""
    return await changed_entity(
        api,
        await api.services.tasks.update(
            api.caller, item_id, TASK, body.changes, body.expected_revision
        ),
    )


@router.get("/tasks/{item_id}/estimate", summary="Estimate a task from similar finished tasks")
async def estimate_task(api: ApiRequest, item_id: ItemId) -> task_shapes.Estimate:
    return task_shapes.estimate((await api.services.planning.estimate(api.caller, item_id))[1])


@router.post("/tasks/{item_id}/block", summary="Block a task, with a reason")
async def block_task(
    api: ApiRequest, item_id: ItemId, body: task_shapes.BlockInput
) -> ChangedEntity:
    return await _step(api, item_id, "block_task", body, reason=body.reason)


@router.post("/tasks/{item_id}/review", summary="Submit a task for review")
async def submit_review(
    api: ApiRequest, item_id: ItemId, body: task_shapes.ReviewInput | None = None
) -> ChangedEntity:
    return await _step(api, item_id, "submit_review", body)


@router.post("/tasks/{item_id}/complete", summary="Complete a task")
async def complete_task(
    api: ApiRequest, item_id: ItemId, body: task_shapes.CompleteInput | None = None
) -> ChangedEntity:
    """`learnings` are stored as an episode that is derived from the task."""
    return await _step(
        api, item_id, "complete_task", body, learnings=(body.learnings if body else None) or ""
    )


@router.post("/tasks/{item_id}/notes", summary="Add a note to a task")
async def note_on_task(
    api: ApiRequest, item_id: ItemId, body: task_shapes.NoteInput
) -> ChangedEntity:
    return await changed_entity(
        api,
        await api.services.tasks.note(api.caller, item_id, body.content, body.expected_revision),
    )


@router.get("/epics", summary="List epics, newest first")
async def list_epics(api: ApiRequest, query: Annotated[WorkQuery, Query()]) -> EpicsPage:
    epics, page = await _page(api, EPIC, query)
    return {"epics": epics, **page}


@router.post("/epics", status_code=201, summary="Add an epic")
async def add_epic(api: ApiRequest, body: NewEpic) -> AddedWork:
    """The epic is `planning`; its status follows its tasks."""
    return await _add(api, body, body.to_new_entity())


@router.get("/epics/{item_id}", summary="Read an epic in full")
async def read_epic(api: ApiRequest, item_id: ItemId) -> entity_shapes.EntityInFull:
    return await _read(api, EPIC, item_id)


@router.patch("/epics/{item_id}", summary="Update an epic")
async def change_epic(
    api: ApiRequest, item_id: ItemId, body: task_shapes.EpicChanges
) -> ChangedEntity:
    return await changed_entity(
        api,
        await api.services.tasks.update(
            api.caller, item_id, EPIC, body.changes, body.expected_revision
        ),
    )


def _step_route(action: str) -> Callable[..., Any]:
    async def step(
        api: ApiRequest, item_id: ItemId, body: task_shapes.StepInput | None = None
    ) -> ChangedEntity:
        return await _step(api, item_id, action, body)

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
    router.post(_path, summary=_summary)(_step_route(_action))


async def _add(api: ApiRequest, body: entity_shapes.AddInput, new: NewEntity) -> AddedWork:
    added = await api.services.entities.add(api.caller, new, sync=True, **body.checks)
    return {
        **await changed_entity(api, ChangeResult(added.item, added.message)),
        "conflicts": entity_shapes.add_entity_result(added)["conflicts"],
    }


async def _page(
    api: ApiRequest, machine: Machine, query: WorkQuery, epic: str | None = None
) -> tuple[list[entity_shapes.Entity], Page]:
    where = ItemFilter(
        entity_types=(machine.entity_type,),
        statuses=tuple(query.status),
        assignee=query.assignee,
        priority=query.priority,
    )
    offset = (query.page - 1) * query.per_page
    found, total = await api.services.tasks.page(
        api.caller, where, project=query.project, epic=epic, limit=query.per_page, offset=offset
    )
    return [entity_shapes.entity(entity, api.services.settings) for entity in found], {
        "total": total,
        "page": query.page,
        "per_page": query.per_page,
        "has_more": offset + len(found) < total,
    }


async def _read(api: ApiRequest, machine: Machine, item_id: str) -> entity_shapes.EntityInFull:
    entity = await api.services.entities.get(api.caller, item_id)
    machine.require(entity.item)
    return entity_shapes.entity_in_full(entity, api.services.settings)


async def _step(
    api: ApiRequest, item_id: str, action: str, body: task_shapes.StepInput | None, **words: str
) -> ChangedEntity:
    given = body or task_shapes.StepInput()
    return await changed_entity(
        api,
        await api.services.tasks.step(
            api.caller,
            item_id,
            action,
            about=given.metadata,
            expected_revision=given.expected_revision,
            **words,
        ),
    )


async def changed_entity(api: ApiRequest, done: ChangeResult) -> ChangedEntity:
    [entity] = await api.services.entities.described(api.caller, [done.item])
    return {**entity_shapes.entity(entity, api.services.settings), "message": done.message}
