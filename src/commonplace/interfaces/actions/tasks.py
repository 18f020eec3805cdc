"""Actions on tasks and epics: add, list, read, change, move through their states, plan."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from commonplace.interfaces.actions.action import Action, Done
from commonplace.interfaces.actions.conflicts import CONFLICT, SIMILAR
from commonplace.interfaces.actions.entities import (
    CHANGED_ENTITY,
    ENTITY,
    FULL_ENTITY,
    WORK_FACTS,
    WORK_FIELDS,
    Add,
    AddInEpic,
    EntityFields,
    OneEntity,
    OneEntityAt,
    added_in_full,
    authored,
    change_done,
    changed,
)
from commonplace.interfaces.actions.fields import (
    WHOLE,
    Cli,
    DependsOn,
    EntityTitle,
    ExpectedRevision,
    Hours,
    Input,
    ItemId,
    LongText,
    OneOf,
    Priority,
    Project,
    Reason,
    Reference,
    WebAddress,
    Word,
    Words,
    about,
    number,
    patch_of,
)
from commonplace.interfaces.actions.items import Paged, on_one_line
from commonplace.interfaces.actions.shapes import Call, Field, Listing, Shape, many, said
from commonplace.model import Caller, ItemFilter, Json
from commonplace.model.workflow import EPIC, STEPS, TASK, Machine

if TYPE_CHECKING:
    from commonplace.core.services import Services

# -- inputs


class NewTask(AddInEpic):
    entity_type: Annotated[str, OneOf(("task",)), Cli(hidden=True)] = "task"


class NewEpic(Add):
    entity_type: Annotated[str, OneOf(("epic",)), Cli(hidden=True)] = "epic"


class ListEpics(Paged):
    entity_type: ClassVar = "epic"
    project: Project | None = None
    status: Annotated[Words, about("Only with this status; may be given several times")] = []
    assignee: Annotated[Word | None, about("Only of this assignee")] = None
    priority: Priority | None = None

    @property
    def where(self) -> ItemFilter:
        return ItemFilter(
            entity_types=(self.entity_type,),
            statuses=tuple(self.status),
            assignee=self.assignee,
            priority=self.priority,
        )


class ListTasks(ListEpics):
    entity_type: ClassVar = "task"
    epic: Annotated[Reference | None, about("Only of this epic")] = None


class OpenTasks(Input):
    project: Project | None = None
    limit: Annotated[int, number(1, 100, "How many to return"), WHOLE] = 20


class NextTasks(OpenTasks):
    assignee: Annotated[Word | None, about("Only their tasks, and nobody's")] = None
    limit: Annotated[int, number(1, 100, "How many to return"), WHOLE] = 5


class Step(OneEntityAt):
    """The input of a transition that needs nothing more."""

    @property
    def about(self) -> Json:
        """Facts to add to the metadata of the entity."""
        return {}


class Start(Step):
    assignee: Annotated[Word | None, about("An assignee to add")] = None


class Block(Step):
    reason: Annotated[Reason, about("Why it is blocked")]


class Review(Step):
    pr_url: Annotated[WebAddress | None, about("URL of the pull request")] = None
    commit_shas: Annotated[Words | None, about("Commits to review"), Cli("--commit")] = None

    @property
    def about(self) -> Json:
        return self.model_dump(include={"pr_url", "commit_shas"}, exclude_none=True)


class Complete(Step):
    learnings: Annotated[
        LongText | None, about("What was learned; stored as an episode derived from the task")
    ] = None
    actual_hours: Annotated[
        Hours | None, about("Actual hours; used for estimates"), Cli("--hours")
    ] = None

    @property
    def about(self) -> Json:
        return self.model_dump(include={"actual_hours"}, exclude_none=True)


class Note(OneEntityAt):
    content: Annotated[LongText, about("The note"), Cli(argument=True, stdin=True)]

    @property
    def text(self) -> str:
        return self.content

    aliases = {"note": "content", "text": "content"}


class WorkFields(EntityFields):
    """The fields of tasks and epics that can be changed."""

    title: Annotated[EntityTitle, Cli("--title")] = ""
    status: Annotated[Word, about("Must be an allowed transition")]
    project: Annotated[Project, about("Project to move it to")]
    epic: Annotated[Reference | None, about("Id of the epic it is part of; null: of none")]
    depends_on: Annotated[
        DependsOn, about("Ids of tasks and epics that must be done first; replaces the list")
    ]
    aliases = {"epic_id": "epic", "project_id": "project"}


_OF_BOTH = f"title status {' '.join(WORK_FIELDS)} tags technologies languages category project"
_WHICH: dict[str, tuple[Any, Any]] = {
    "entity_id": (ItemId, ...),
    "expected_revision": (ExpectedRevision, None),
}
ChangeEpic = patch_of("ChangeEpic", WorkFields, _OF_BOTH, **_WHICH)
ChangeTask = patch_of("ChangeTask", WorkFields, f"{_OF_BOTH} epic depends_on", **_WHICH)

# -- answers

ADDED_WORK = Shape(
    "AddedWork",
    None,
    base=ENTITY,
    at="entity",
    message=said(str, "added.message"),
    conflicts=many(CONFLICT, "added.conflicts"),
    similar=many(SIMILAR, "added.similar"),
)
RANKED = Shape(
    "RankedTask",
    "commonplace.core.work.planning.Ranked",
    "score ready reasons",
    id="item.entity_id",
    title="item.title",
    status="item.status",
    **authored(WORK_FIELDS),
    waits_for=Field(
        list[str], lambda ranked, call: [other.entity_id for other in ranked.waits_for]
    ),
)
SUGGESTION = Shape(
    "SuggestedTask",
    "commonplace.core.work.planning.Suggestion",
    base=RANKED,
    at="ranked",
    action=said(str, "action", "The action of `manage` that would move it on"),
)
SUGGESTIONS = Shape(  # of the suggestions, and a sentence
    "SuggestedTasks",
    None,
    suggestions=Field([SUGGESTION], lambda found, call: [SUGGESTION(s, call) for s in found[0]]),
    message=Field(str, lambda found, call: found[1]),
)
PRECEDENT = Shape(
    "Precedent",
    "commonplace.core.work.planning.Precedent",
    "likeness hours days",
    id="item.entity_id",
    title="item.title",
)
ESTIMATE = Shape(
    "Estimate",
    "commonplace.core.work.planning.Estimate",
    "hours days low high confidence explanation",
    based_on=many(PRECEDENT, "precedents"),
)


def _estimated(value: Any, call: Call) -> Done:
    task, estimate = value
    return Done(task, estimate.explanation, ESTIMATE(estimate, call))


def _prioritized(value: Any, call: Call) -> Done:
    ranked, total = value
    message = f"{total} open task{'s' * (total != 1)}, most important first."
    tasks = [RANKED(each, call) for each in ranked]
    return Done(None, message, {"tasks": tasks, "total": total}, [*map(_task_line, tasks)])


def _suggested(value: Any, call: Call) -> Done:
    tasks = SUGGESTIONS(value, call)["suggestions"]
    lines = [f"{_task_line(task)} Next: {task['action']}" for task in tasks]
    return Done(None, value[1], {"suggestions": tasks}, lines)


def _task_line(task: Json) -> str:
    facts = ", ".join(filter(None, map(task.get, ("status", *WORK_FACTS))))
    reasons = "; ".join(task["reasons"])
    return f"- [{task['id']}] {on_one_line(task['title'])} ({facts}): {reasons}."


def _cycles(value: Any, call: Call) -> Done:
    cycles = value[: call.args.limit]
    titles = "; ".join(" -> ".join(item.title for item in cycle) for cycle in cycles)
    found = f"{len(cycles)} cycle{'s' * (len(cycles) != 1)}: {titles}"
    data = [[{"id": item.entity_id, "title": item.title} for item in cycle] for cycle in cycles]
    return Done(
        None,
        found if cycles else "No task waits for itself.",
        {"cycles": data, "has_cycles": bool(cycles)},
        [f"- {' -> '.join(item.entity_id for item in cycle)}" for cycle in cycles],
    )


# -- what is done


async def _read(services: "Services", caller: Caller, args: OneEntity, machine: Machine) -> Any:
    entity = await services.entities.get(caller, args.entity_id)
    machine.require(entity.item)
    return entity


async def _only_estimate(services: "Services", caller: Caller, value: Any) -> Any:
    return value[1]


def _work(machine: Machine, new: type[Input], wanted: type[Input], changes: type[Input]) -> Any:
    """The actions that tasks and epics have alike."""
    noun, path = machine.entity_type.value, f"/api/{machine.entity_type}s"
    article = f"{'an' if noun == 'epic' else 'a'} {noun}"
    return (
        Action(
            f"list_{noun}s",
            f"List {noun}s, newest first",
            wanted,
            "tasks.page",
            Listing(f"{noun}s", ENTITY, paged=True, name=f"{noun.capitalize()}List"),
            f"GET {path}",
            cli="task list",
        ),
        Action(
            f"add_{noun}",
            f"Add {article}",
            new,
            "entities.add",
            ADDED_WORK,
            f"POST {path}",
            cli="task add",
            status=201,
            given={"sync": True},
            expand=added_in_full,
        ),
        Action(
            f"get_{noun}",
            f"Read {article} in full",
            OneEntity,
            "entities.get",
            FULL_ENTITY,
            f"GET {path}/{{entity_id}}",
            run=lambda services, caller, args: _read(services, caller, args, machine),
        ),
        Action(
            f"update_{noun}",
            f"Update {article}",
            changes,
            "tasks.update",
            CHANGED_ENTITY,
            f"PATCH {path}/{{entity_id}}",
            cli="task update",
            manage=change_done,
            description="`status` must be an allowed transition; the error lists the allowed ones.",
            given={"machine": machine},
            expand=changed,
        ),
        *(
            Action(
                name,
                step.title,
                _STEP_INPUTS.get(name, Step),
                "tasks.step",
                CHANGED_ENTITY,
                f"POST {path}/{{entity_id}}/{step.path}",
                cli="task update",
                manage=change_done,
                given={"action": name},
                expand=changed,
            )
            for name, step in STEPS.items()
            if step.machine is machine
        ),
    )


_STEP_INPUTS: dict[str, type[Input]] = {
    "start_task": Start,
    "block_task": Block,
    "submit_review": Review,
    "complete_task": Complete,
}

ACTIONS = (
    Action(
        "suggest",
        "Suggest what to do next, with reasons",
        NextTasks,
        "planning.suggest",
        SUGGESTIONS,
        "GET /api/tasks/next",
        manage=_suggested,
    ),
    *_work(TASK, NewTask, ListTasks, ChangeTask),
    Action(
        "add_note",
        "Add a note to a task",
        Note,
        "tasks.note",
        CHANGED_ENTITY,
        "POST /api/tasks/{entity_id}/notes",
        manage=change_done,
        expand=changed,
    ),
    Action(
        "estimate",
        "Estimate a task from similar finished tasks",
        OneEntity,
        "planning.estimate",
        ESTIMATE,
        "GET /api/tasks/{entity_id}/estimate",
        manage=_estimated,
        expand=_only_estimate,
    ),
    Action("prioritize", "Rank open tasks", OpenTasks, "planning.prioritize", manage=_prioritized),
    Action(
        "detect_cycles",
        "Find circular dependencies",
        OpenTasks,
        "planning.cycles",
        manage=_cycles,
    ),
    *_work(EPIC, NewEpic, ListEpics, ChangeEpic),
)
