"""epic: what tasks are parts of; it follows them by itself."""

from typing import Annotated, Any

import typer

from commonplace.interfaces.cli import task_options
from commonplace.interfaces.cli.command import Desk, command
from commonplace.interfaces.cli.task_options import Assignees, Priority, Project, Tags
from commonplace.model import ItemFilter

EpicId = Annotated[str, typer.Argument(metavar="EPIC", help="The epic's id.", show_default=False)]


def register(root: typer.Typer) -> None:
    epic = typer.Typer(
        no_args_is_help=True,
        help="Manage epics (`task add --epic`, `task list --epic`).",
    )
    command(epic, "add")(add)
    command(epic, "list")(list_epics)
    command(epic, "show")(show_epic)
    command(epic, "update")(update)
    command(epic, "start")(start)
    command(epic, "complete")(complete)
    command(epic, "archive")(archive)
    command(epic, "note")(note)
    root.add_typer(epic, name="epic")


async def add(
    desk: Desk,
    title: Annotated[str, typer.Argument(help="Short title.")],
    project: Annotated[str, typer.Option(help="Id of the project.")],
    content: Annotated[
        str, typer.Option(help="Description; - reads standard input. Default: the title.")
    ] = "",
    priority: Priority = "medium",
    assignee: Assignees = None,
    due: Annotated[str | None, typer.Option(help="ISO date.")] = None,
    tag: Tags = None,
    depends_on: Annotated[
        list[str] | None, typer.Option(help="Id of a task or epic that must be done first.")
    ] = None,
) -> None:
    """Add an epic to a project."""
    from commonplace.core.entities.validation import NewEntity

    new = NewEntity(
        title,
        content,
        "epic",
        project=project,
        priority=priority,
        assignees=tuple(assignee or ()),
        due_date=due,
        tags=tuple(tag or ()),
        depends_on=tuple(depends_on or ()),
    )
    await task_options.added(desk, new)


async def list_epics(
    desk: Desk,
    project: Project = None,
    status: Annotated[list[str] | None, typer.Option(help="Only this status (repeatable).")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 50,
) -> None:
    """List epics, newest first."""
    where = ItemFilter(entity_types=("epic",), statuses=tuple(status or ()))
    await task_options.listed(desk, where, project=project, limit=limit)


async def show_epic(desk: Desk, epic: EpicId) -> None:
    """Show an epic with its text and notes. `task list --epic` lists its tasks."""
    from commonplace.model.workflow import EPIC

    await task_options.shown(desk, epic, EPIC)


async def update(
    desk: Desk,
    epic: EpicId,
    title: Annotated[str | None, typer.Option(help="New title.")] = None,
    status: Annotated[
        str | None, typer.Option(help="New status; must be an allowed transition.")
    ] = None,
    priority: Annotated[
        str | None, typer.Option(help="critical, high, medium, low or someday.")
    ] = None,
    project: Annotated[str | None, typer.Option(help="Id of the project to move it to.")] = None,
    assignee: Assignees = None,
    due: Annotated[str | None, typer.Option(help="ISO date; '' removes it.")] = None,
    tag: Tags = None,
) -> None:
    """Update an epic. Lists replace the current values."""
    from commonplace.model.workflow import EPIC

    given = {
        "title": title,
        "status": status,
        "priority": priority,
        "project": project,
        "assignees": assignee,
        "tags": tag,
    }
    wish: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    wish |= {"due_date": due or None} if due is not None else {}
    async with desk.open() as (app, caller):
        await task_options.answer(
            desk, app, caller, await app.tasks.update(caller, epic, EPIC, wish)
        )


async def start(desk: Desk, epic: EpicId) -> None:
    """Start an epic, or reopen a completed one."""
    await task_options.step(desk, epic, "start_epic")


async def complete(desk: Desk, epic: EpicId) -> None:
    """Complete an epic that has no open tasks."""
    await task_options.step(desk, epic, "complete_epic")


async def archive(desk: Desk, epic: EpicId) -> None:
    """Archive an epic. Its tasks do not change."""
    await task_options.step(desk, epic, "archive_epic")


async def note(
    desk: Desk,
    epic: EpicId,
    text: Annotated[str, typer.Argument(help="The note; - reads standard input.")],
) -> None:
    """Add a searchable note to an epic."""
    await task_options.noted(desk, epic, text)
