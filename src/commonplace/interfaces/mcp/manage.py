"""The `manage` tool: move work on, plan, and correct memory."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from typing_extensions import TypedDict

from commonplace.core.services import Services
from commonplace.core.work.tasks import ChangeResult
from commonplace.errors import Invalid
from commonplace.interfaces.actions import entities as entity_shapes, tasks as task_shapes
from commonplace.interfaces.actions.entities import Reference, Short
from commonplace.interfaces.actions.items import Input, whole_number
from commonplace.interfaces.mcp.tools import Tool, as_text, parse_arguments
from commonplace.model import Caller, Capability, Item, Json
from commonplace.model.workflow import EPIC, STEPS, TASK, Machine


@dataclass(frozen=True, slots=True)
class ActionResult:
    """The result of an action, with the item it changed, if any."""

    message: str
    item: Item | None = None
    data: Mapping[str, Any] | None = None  # None: the item itself
    more: Mapping[str, Any] | None = None  # beside the item


Run = Callable[[Services, Caller, str, Any], Awaitable[ActionResult]]


@dataclass(frozen=True, slots=True)
class Action:
    data: type[Input]
    run: Run
    of: bool = True  # whether an entity_id is needed


def _result(done: ChangeResult) -> ActionResult:
    return ActionResult(done.message, done.item, more=done.more)


def _step(name: str, data: type[task_shapes.StepInput]) -> Action:
    async def run(
        services: Services, caller: Caller, entity_id: str, given: task_shapes.StepInput
    ) -> ActionResult:
        return _result(
            await services.tasks.step(
                caller,
                entity_id,
                name,
                reason=getattr(given, "reason", ""),
                learnings=getattr(given, "learnings", None) or "",
                about=given.metadata,
                expected_revision=given.expected_revision,
            )
        )

    return Action(data, run)


def _update(machine: Machine, data: type[task_shapes.EpicChanges]) -> Action:
    async def run(
        services: Services, caller: Caller, entity_id: str, given: task_shapes.EpicChanges
    ) -> ActionResult:
        return _result(
            await services.tasks.update(
                caller, entity_id, machine, given.changes, given.expected_revision
            )
        )

    return Action(data, run)


async def _note(
    services: Services, caller: Caller, entity_id: str, given: task_shapes.NoteInput
) -> ActionResult:
    return _result(
        await services.tasks.note(caller, entity_id, given.content, given.expected_revision)
    )


class ProjectInput(Input):
    project: Annotated[
        Reference | None, Field(description="Id of a project; left out: all that is open")
    ] = None
    limit: Annotated[int, Field(ge=1, le=100), BeforeValidator(whole_number)] = 20


class SuggestInput(ProjectInput):
    assignee: Annotated[Short | None, Field(description="Only their tasks, and nobody's")] = None
    limit: Annotated[int, Field(ge=1, le=100), BeforeValidator(whole_number)] = 5


async def _estimate(
    services: Services, caller: Caller, entity_id: str, given: Input
) -> ActionResult:
    task, estimate = await services.planning.estimate(caller, entity_id)
    return ActionResult(estimate.explanation, task, {**task_shapes.estimate(estimate)})


async def _prioritize(
    services: Services, caller: Caller, entity_id: str, given: ProjectInput
) -> ActionResult:
    ranked, total = await services.planning.prioritize(
        caller, _project(entity_id, given), limit=given.limit
    )
    said = f"{total} open task{'s' * (total != 1)}, most important first."
    return ActionResult(
        said, data={"tasks": [task_shapes.ranked_task(r) for r in ranked], "total": total}
    )


async def _suggest(
    services: Services, caller: Caller, entity_id: str, given: SuggestInput
) -> ActionResult:
    found, said = await services.planning.suggest(
        caller, _project(entity_id, given), assignee=given.assignee, limit=given.limit
    )
    return ActionResult(said, data={"suggestions": [task_shapes.suggestion(s) for s in found]})


async def _detect_cycles(
    services: Services, caller: Caller, entity_id: str, given: ProjectInput
) -> ActionResult:
    cycles = (await services.planning.cycles(caller, _project(entity_id, given)))[: given.limit]
    said = "; ".join(" -> ".join(item.title for item in cycle) for cycle in cycles)
    return ActionResult(
        f"{len(cycles)} cycle{'s' * (len(cycles) != 1)}: {said}"
        if cycles
        else "No task waits for itself.",
        data={"cycles": [task_shapes.cycle(cycle) for cycle in cycles], "has_cycles": bool(cycles)},
    )


def _project(entity_id: str, given: ProjectInput) -> str | None:
    if entity_id and given.project not in (None, entity_id):
        raise Invalid("`entity_id` and `data.project` name two projects; name one.")
    return entity_id or given.project


async def _supersede(
    services: Services, caller: Caller, entity_id: str, given: task_shapes.SupersedeInput
) -> ActionResult:
    return _result(
        await services.memory.supersede(
            caller,
            entity_id,
            by=given.by,
            title=given.title,
            content=given.content,
            reason=given.reason or "",
            expected_revision=given.expected_revision,
        )
    )


async def _mark_wrong(
    services: Services, caller: Caller, entity_id: str, given: task_shapes.MarkInput
) -> ActionResult:
    return _result(
        await services.memory.mark_wrong(
            caller, entity_id, given.reason or "", given.expected_revision
        )
    )


async def _mark_stale(
    services: Services, caller: Caller, entity_id: str, given: task_shapes.MarkInput
) -> ActionResult:
    return _result(
        await services.memory.mark_stale(
            caller, entity_id, given.reason or "", given.expected_revision
        )
    )


async def _restore(
    services: Services, caller: Caller, entity_id: str, given: task_shapes.StepInput
) -> ActionResult:
    return _result(await services.memory.restore(caller, entity_id, given.expected_revision))


async def _delete(
    services: Services, caller: Caller, entity_id: str, given: task_shapes.StepInput
) -> ActionResult:
    item = await services.library.delete(caller, entity_id, given.expected_revision)
    return ActionResult(f"Deleted: {item.title}", item, {"deleted": True})


class NoInput(Input):
    """The input of an action that takes no data."""


_STEP_INPUTS: dict[str, type[task_shapes.StepInput]] = {
    "block_task": task_shapes.BlockInput,
    "submit_review": task_shapes.ReviewInput,
    "complete_task": task_shapes.CompleteInput,
}
ACTIONS: dict[str, Action] = {
    **{name: _step(name, _STEP_INPUTS.get(name, task_shapes.StepInput)) for name in STEPS},
    "update_task": _update(TASK, task_shapes.TaskChanges),
    "update_epic": _update(EPIC, task_shapes.EpicChanges),
    "add_note": Action(task_shapes.NoteInput, _note),
    "estimate": Action(NoInput, _estimate),
    "prioritize": Action(ProjectInput, _prioritize, of=False),
    "detect_cycles": Action(ProjectInput, _detect_cycles, of=False),
    "suggest": Action(SuggestInput, _suggest, of=False),
    "supersede": Action(task_shapes.SupersedeInput, _supersede),
    "mark_wrong": Action(task_shapes.MarkInput, _mark_wrong),
    "mark_stale": Action(task_shapes.MarkInput, _mark_stale),
    "restore": Action(task_shapes.StepInput, _restore),
    "delete": Action(task_shapes.StepInput, _delete),
}
ActionName = Literal[
    "start_task",
    "block_task",
    "unblock_task",
    "submit_review",
    "complete_task",
    "archive_task",
    "update_task",
    "add_note",
    "start_epic",
    "complete_epic",
    "archive_epic",
    "update_epic",
    "estimate",
    "prioritize",
    "detect_cycles",
    "suggest",
    "supersede",
    "mark_wrong",
    "mark_stale",
    "restore",
    "delete",
]


class Manage(Input):
    action: Annotated[ActionName, Field(description="What to do")]
    entity_id: Annotated[
        Reference | None,
        Field(
            description=(
                "The task, epic or memory; for prioritize, detect_cycles and suggest a project, or "
                "nothing for all"
            )
        ),
    ] = None
    data: Annotated[
        dict[str, Any],
        Field(
            default_factory=dict,
            description=(
                "What goes with it. block_task: reason. submit_review: pr_url, commit_shas. "
                "complete_task: learnings, actual_hours. "
                "update_task: title, status, priority, assignees, due_date, tags, technologies, "
                "languages, category, project (moves it), "
                "epic (null: none), depends_on. update_epic: the same without the last two. "
                "add_note: content. "
                "prioritize, detect_cycles: project, limit. suggest: project, assignee, limit. "
                "supersede: by, or content and title; "
                "reason. mark_wrong, mark_stale: reason. "
                "All that change something: expected_revision"
            ),
        ),
    ]
    expected_revision: task_shapes.Revision = None


class ManageResult(TypedDict):
    success: bool
    action: str
    entity_id: Annotated[str | None, Field(description="Id of the entity")]
    message: str
    data: Annotated[dict[str, Any], Field(description="The entity, or the result of the action")]
    revision: Annotated[
        int | None, Field(description="Revision of the entity, for expected_revision")
    ]


async def _manage(services: Services, caller: Caller, args: Manage) -> tuple[str, ManageResult]:
    action = ACTIONS[args.action]
    if action.of and args.entity_id is None:
        raise Invalid(f"`entity_id` is required for {args.action}.")
    done = await action.run(
        services,
        caller,
        args.entity_id or "",
        parse_arguments(action.data, _data(args), "In `data`: "),
    )
    data: Json = dict(done.data or {})
    if done.item is not None and done.data is None:
        [entity] = await services.entities.described(caller, [done.item])
        data = {**entity_shapes.entity(entity, services.settings), **(done.more or {})}
    answer: ManageResult = {
        "success": True,
        "action": args.action,
        "entity_id": done.item.entity_id if done.item else args.entity_id,
        "message": done.message,
        "data": data,
        "revision": done.item.revision if done.item and "deleted" not in data else None,
    }
    return as_text(answer), answer


def _data(args: Manage) -> Json:
    if args.expected_revision is None:
        return args.data
    if args.data.get("expected_revision", args.expected_revision) != args.expected_revision:
        raise Invalid("`expected_revision` is given twice, and differs.")
    return args.data | {"expected_revision": args.expected_revision}


TOOLS = (
    Tool(
        "manage",
        "Manage work and memory",
        "Manage tasks, epics and memory: change states, update, plan, correct. Task states: "
        "backlog -> todo -> doing -> blocked, review, done or back to todo; blocked -> doing or "
        "archived; review -> doing, done or archived; todo and done -> archived; other "
        "transitions are rejected with the allowed ones. Epics go planning -> in_progress -> "
        "completed -> archived and follow their tasks automatically. Start with suggest to see "
        "what to do next and why, start_task when you begin, add_note as you go, complete_task "
        "with learnings when you are done. estimate predicts the duration of a task from similar "
        "ones; prioritize ranks open tasks; detect_cycles finds circular dependencies. When a "
        "memory is no longer right: supersede (with its replacement), mark_wrong, mark_stale, "
        "restore, delete. Pass the revision you read as expected_revision to avoid lost updates.",
        Capability.WRITE,
        Manage,
        ManageResult,
        _manage,
        idempotent=False,
        destructive=True,
    ),
)
