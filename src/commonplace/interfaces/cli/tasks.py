"""task and epic: add, list, show, update, and move through their states."""

from typing import Annotated

import typer

from commonplace.core.entities import validation as rules
from commonplace.interfaces.cli.command import Group, Session
from commonplace.interfaces.cli.task_options import (
    Assignees,
    Content,
    Due,
    Epic,
    InProject,
    Limit,
    NewDue,
    NewPriority,
    NewProject,
    NewStatus,
    NewTitle,
    Note,
    Priority,
    Project,
    Statuses,
    Tags,
    Title,
    add_note,
    add_work,
    list_work,
    run_step,
    show_work,
    update_work,
)
from commonplace.model import ItemFilter
from commonplace.model.workflow import EPIC, TASK

TaskId = Annotated[str, typer.Argument(metavar="TASK", help="The task's id.", show_default=False)]
EpicId = Annotated[str, typer.Argument(metavar="EPIC", help="The epic's id.", show_default=False)]


async def add_task(
    session: Session,
    title: Title,
    project: InProject,
    content: Content = "",
    priority: Priority = "medium",
    epic: Epic = None,
    assignee: Assignees = None,
    due: Due = None,
    tag: Tags = None,
    depends_on: Annotated[
        list[str] | None, typer.Option(help="Id of a task that must be done first.")
    ] = None,
) -> None:
    """Add a task to a project."""
    await add_work(
        session,
        rules.NewEntity(
            title,
            content,
            "task",
            project=project,
            priority=priority,
            epic=epic,
            assignees=tuple(assignee or ()),
            due_date=due,
            tags=tuple(tag or ()),
            depends_on=tuple(depends_on or ()),
        ),
    )


async def list_tasks(
    session: Session,
    project: Project = None,
    epic: Epic = None,
    status: Statuses = None,
    assignee: Annotated[str | None, typer.Option(help="Only tasks of this assignee.")] = None,
    priority: Annotated[str | None, typer.Option(help="Only this priority.")] = None,
    limit: Limit = 50,
) -> None:
    """List tasks, newest first."""
    where = ItemFilter(
        entity_types=("task",),
        statuses=tuple(status or ()),
        assignee=assignee,
        priority=rules.priority(priority) if priority is not None else None,
    )
    await list_work(session, where, project=project, epic=epic, limit=limit)


async def next_tasks(
    session: Session,
    project: Project = None,
    assignee: Annotated[
        str | None, typer.Option(help="Only tasks of this assignee, and unassigned ones.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=100)] = 5,
) -> None:
    """Suggest what to do next, with reasons."""
    found, message = await session.services.planning.suggest(
        session.caller, project, assignee=assignee, limit=limit
    )
    lines = [
        f"{ranked.item.entity_id}  {ranked.item.title}\n    {'; '.join(ranked.reasons)}"
        for ranked in (suggestion.ranked for suggestion in found)
    ]
    session.show({"suggestions": found, "message": message}, "\n".join(lines), message)


async def show_task(session: Session, task: TaskId) -> None:
    """Show a task with its text and notes."""
    await show_work(session, task, TASK)


async def update_task(
    session: Session,
    task: TaskId,
    title: NewTitle = None,
    status: NewStatus = None,
    priority: NewPriority = None,
    project: NewProject = None,
    epic: Annotated[
        str | None, typer.Option(help="Id of the epic; '' removes the task from it.")
    ] = None,
    assignee: Assignees = None,
    due: NewDue = None,
    tag: Tags = None,
    depends_on: Annotated[
        list[str] | None,
        typer.Option(help="Id of a task that must be done first (repeatable)."),
    ] = None,
) -> None:
    """Update a task. Lists replace the current values."""
    options = {
        "title": title,
        "status": status,
        "priority": priority,
        "project": project,
        "epic": epic,
        "assignees": assignee,
        "due_date": due,
        "tags": tag,
        "depends_on": depends_on,
    }
    await update_work(session, task, TASK, options)


async def start_task(session: Session, task: TaskId) -> None:
    """Start a task, or resume it after a review."""
    await run_step(session, task, "start_task")


async def block_task(
    session: Session, task: TaskId, reason: Annotated[str, typer.Option(help="Why it is blocked.")]
) -> None:
    """Block a task, with a reason."""
    await run_step(session, task, "block_task", reason=reason)


async def unblock_task(session: Session, task: TaskId) -> None:
    """Unblock a task."""
    await run_step(session, task, "unblock_task")


async def submit_review(session: Session, task: TaskId) -> None:
    """Submit a task for review."""
    await run_step(session, task, "submit_review")


async def complete_task(
    session: Session,
    task: TaskId,
    learnings: Annotated[str, typer.Option(help="What you learned; stored as an episode.")] = "",
    hours: Annotated[
        float | None, typer.Option(min=0, help="Actual hours; used for estimates.")
    ] = None,
) -> None:
    """Complete a task."""
    await run_step(
        session,
        task,
        "complete_task",
        learnings=learnings,
        about={"actual_hours": hours} if hours else {},
    )


async def archive_task(session: Session, task: TaskId) -> None:
    """Archive a task."""
    await run_step(session, task, "archive_task")


async def note_on_task(session: Session, task: TaskId, text: Note) -> None:
    """Add a searchable note to a task."""
    await add_note(session, task, text)


async def add_epic(
    session: Session,
    title: Title,
    project: InProject,
    content: Content = "",
    priority: Priority = "medium",
    assignee: Assignees = None,
    due: Due = None,
    tag: Tags = None,
    depends_on: Annotated[
        list[str] | None, typer.Option(help="Id of a task or epic that must be done first.")
    ] = None,
) -> None:
    """Add an epic to a project."""
    await add_work(
        session,
        rules.NewEntity(
            title,
            content,
            "epic",
            project=project,
            priority=priority,
            assignees=tuple(assignee or ()),
            due_date=due,
            tags=tuple(tag or ()),
            depends_on=tuple(depends_on or ()),
        ),
    )


async def list_epics(
    session: Session, project: Project = None, status: Statuses = None, limit: Limit = 50
) -> None:
    """List epics, newest first."""
    where = ItemFilter(entity_types=("epic",), statuses=tuple(status or ()))
    await list_work(session, where, project=project, limit=limit)


async def show_epic(session: Session, epic: EpicId) -> None:
    """Show an epic with its text and notes. `task list --epic` lists its tasks."""
    await show_work(session, epic, EPIC)


async def update_epic(
    session: Session,
    epic: EpicId,
    title: NewTitle = None,
    status: NewStatus = None,
    priority: NewPriority = None,
    project: NewProject = None,
    assignee: Assignees = None,
    due: NewDue = None,
    tag: Tags = None,
) -> None:
    """Update an epic. Lists replace the current values."""
    options = {
        "title": title,
        "status": status,
        "priority": priority,
        "project": project,
        "assignees": assignee,
        "due_date": due,
        "tags": tag,
    }
    await update_work(session, epic, EPIC, options)


async def start_epic(session: Session, epic: EpicId) -> None:
    """Start an epic, or reopen a completed one."""
    await run_step(session, epic, "start_epic")


async def complete_epic(session: Session, epic: EpicId) -> None:
    """Complete an epic that has no open tasks."""
    await run_step(session, epic, "complete_epic")


async def archive_epic(session: Session, epic: EpicId) -> None:
    """Archive an epic. Its tasks do not change."""
    await run_step(session, epic, "archive_epic")


async def note_on_epic(session: Session, epic: EpicId, text: Note) -> None:
    """Add a searchable note to an epic."""
    await add_note(session, epic, text)


TASKS: Group = (
    "task",
    "Manage tasks.",
    {
        "add": add_task,
        "list": list_tasks,
        "next": next_tasks,
        "show": show_task,
        "update": update_task,
        "start": start_task,
        "block": block_task,
        "unblock": unblock_task,
        "review": submit_review,
        "complete": complete_task,
        "archive": archive_task,
        "note": note_on_task,
    },
)
EPICS: Group = (
    "epic",
    "Manage epics (`task add --epic`, `task list --epic`).",
    {
        "add": add_epic,
        "list": list_epics,
        "show": show_epic,
        "update": update_epic,
        "start": start_epic,
        "complete": complete_epic,
        "archive": archive_epic,
        "note": note_on_epic,
    },
)
