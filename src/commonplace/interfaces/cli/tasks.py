"""task: work in projects, moved along the drawing; and the epics that it is part of."""

from typing import Annotated, Any

import typer

from commonplace.interfaces.cli import epics, output, task_options
from commonplace.interfaces.cli.command import Desk, command
from commonplace.interfaces.cli.task_options import Assignees, Priority, Project, Tags
from commonplace.model import ItemFilter

TaskId = Annotated[str, typer.Argument(metavar="TASK", help="The task's id.", show_default=False)]


def register(root: typer.Typer) -> None:
    task = typer.Typer(no_args_is_help=True, help="Manage tasks.")
    command(task, "add")(add)
    command(task, "list")(list_tasks)
    command(task, "next")(next_tasks)
    command(task, "show")(show_task)
    command(task, "update")(update)
    command(task, "start")(start)
    command(task, "block")(block)
    command(task, "unblock")(unblock)
    command(task, "review")(review)
    command(task, "complete")(complete)
    command(task, "archive")(archive)
    command(task, "note")(note)
    root.add_typer(task, name="task")
    epics.register(root)


async def add(
    desk: Desk,
    title: Annotated[str, typer.Argument(help="Short title.")],
    project: Annotated[str, typer.Option(help="Id of the project.")],
    content: Annotated[
        str, typer.Option(help="Description; - reads standard input. Default: the title.")
    ] = "",
    priority: Priority = "medium",
    epic: Annotated[str | None, typer.Option(help="Id of an epic.")] = None,
    assignee: Assignees = None,
    due: Annotated[str | None, typer.Option(help="ISO date.")] = None,
    tag: Tags = None,
    depends_on: Annotated[
        list[str] | None, typer.Option(help="Id of a task that must be done first.")
    ] = None,
) -> None:
    """Add a task to a project."""
    from commonplace.core.entities.validation import NewEntity

    new = NewEntity(
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
    )
    await task_options.added(desk, new)


async def list_tasks(
    desk: Desk,
    project: Project = None,
    epic: Annotated[str | None, typer.Option(help="Id of an epic.")] = None,
    status: Annotated[list[str] | None, typer.Option(help="Only this status (repeatable).")] = None,
    assignee: Annotated[str | None, typer.Option(help="Only tasks of this assignee.")] = None,
    priority: Annotated[str | None, typer.Option(help="Only this priority.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 50,
) -> None:
    """List tasks, newest first."""
    from commonplace.core.entities import validation as rules

    where = ItemFilter(
        entity_types=("task",),
        statuses=tuple(status or ()),
        assignee=assignee,
        priority=rules.priority(priority) if priority is not None else None,
    )
    await task_options.listed(desk, where, project=project, epic=epic, limit=limit)


async def next_tasks(
    desk: Desk,
    project: Project = None,
    assignee: Annotated[
        str | None, typer.Option(help="Only tasks of this assignee, and unassigned ones.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=100)] = 5,
) -> None:
    """Suggest what to do next, with reasons."""
    async with desk.open() as (app, caller):
        found, message = await app.planning.suggest(caller, project, assignee=assignee, limit=limit)
    if desk.as_json:
        from commonplace.interfaces.actions import tasks

        output.as_json(
            {
                "suggestions": [tasks.suggestion(suggestion) for suggestion in found],
                "message": message,
            }
        )
        return
    for suggestion in found:
        output.text(f"{suggestion.ranked.item.entity_id}  {suggestion.ranked.item.title}")
        output.text(f"    {'; '.join(suggestion.ranked.reasons)}")
    output.note(message)


async def show_task(desk: Desk, task: TaskId) -> None:
    """Show a task with its text and notes."""
    from commonplace.model.workflow import TASK

    await task_options.shown(desk, task, TASK)


async def update(
    desk: Desk,
    task: TaskId,
    title: Annotated[str | None, typer.Option(help="New title.")] = None,
    status: Annotated[
        str | None, typer.Option(help="New status; must be an allowed transition.")
    ] = None,
    priority: Annotated[
        str | None, typer.Option(help="critical, high, medium, low or someday.")
    ] = None,
    project: Annotated[str | None, typer.Option(help="Id of the project to move it to.")] = None,
    epic: Annotated[
        str | None, typer.Option(help="Id of the epic; '' removes the task from it.")
    ] = None,
    assignee: Assignees = None,
    due: Annotated[str | None, typer.Option(help="ISO date; '' removes it.")] = None,
    tag: Tags = None,
    depends_on: Annotated[
        list[str] | None,
        typer.Option(help="Id of a task that must be done first (repeatable)."),
    ] = None,
) -> None:
    """Update a task. Lists replace the current values."""
    from commonplace.model.workflow import TASK

    given = {
        "title": title,
        "status": status,
        "priority": priority,
        "project": project,
        "assignees": assignee,
        "tags": tag,
        "depends_on": depends_on,
    }
    wish: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    wish |= {
        name: value or None
        for name, value in (("epic", epic), ("due_date", due))
        if value is not None
    }
    async with desk.open() as (app, caller):
        await task_options.answer(
            desk, app, caller, await app.tasks.update(caller, task, TASK, wish)
        )


async def start(desk: Desk, task: TaskId) -> None:
    """Start a task, or resume it after a review."""
    await task_options.step(desk, task, "start_task")


async def block(
    desk: Desk, task: TaskId, reason: Annotated[str, typer.Option(help="Why it is blocked.")]
) -> None:
    """Block a task, with a reason."""
    await task_options.step(desk, task, "block_task", reason=reason)


async def unblock(desk: Desk, task: TaskId) -> None:
    """Unblock a task."""
    await task_options.step(desk, task, "unblock_task")


async def review(desk: Desk, task: TaskId) -> None:
    """Submit a task for review."""
    await task_options.step(desk, task, "submit_review")


async def complete(
    desk: Desk,
    task: TaskId,
    learnings: Annotated[str, typer.Option(help="What you learned; stored as an episode.")] = "",
    hours: Annotated[
        float | None, typer.Option(min=0, help="Actual hours; used for estimates.")
    ] = None,
) -> None:
    """Complete a task."""
    await task_options.step(
        desk,
        task,
        "complete_task",
        learnings=learnings,
        about={"actual_hours": hours} if hours else {},
    )


async def archive(desk: Desk, task: TaskId) -> None:
    """Archive a task."""
    await task_options.step(desk, task, "archive_task")


async def note(
    desk: Desk,
    task: TaskId,
    text: Annotated[str, typer.Argument(help="The note; - reads standard input.")],
) -> None:
    """Add a searchable note to a task."""
    await task_options.noted(desk, task, text)
