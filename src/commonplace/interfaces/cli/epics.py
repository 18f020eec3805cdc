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
        help="Epics: what tasks are parts of (`task add --epic`, `task list --epic`).",
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
    title: Annotated[str, typer.Argument(help="What it comes to, in a few words.")],
    project: Annotated[str, typer.Option(help="Id of the project.")],
    content: Annotated[
        str, typer.Option(help="More about it; - reads standard input. Its title when left out.")
    ] = "",
    priority: Priority = "medium",
    assignee: Assignees = None,
    due: Annotated[str | None, typer.Option(help="ISO date.")] = None,
    tag: Tags = None,
    depends_on: Annotated[
        list[str] | None, typer.Option(help="Id of a task or an epic that must be done before.")
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
    status: Annotated[
        list[str] | None, typer.Option(help="Only these; may be given several times.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 50,
) -> None:
    """List epics, newest first."""
    where = ItemFilter(entity_types=("epic",), statuses=tuple(status or ()))
    await task_options.listed(desk, where, project=project, limit=limit)


async def show_epic(desk: Desk, epic: EpicId) -> None:
    """Show an epic, with its text and notes. `task list --epic` shows its tasks."""
    from commonplace.model.workflow import EPIC

    await task_options.shown(desk, epic, EPIC)


async def update(
    desk: Desk,
    epic: EpicId,
    title: Annotated[str | None, typer.Option(help="A new title.")] = None,
    status: Annotated[
        str | None, typer.Option(help="Only where the drawing leads from where it is.")
    ] = None,
    priority: Annotated[
        str | None, typer.Option(help="critical, high, medium, low or someday.")
    ] = None,
    project: Annotated[str | None, typer.Option(help="Id of the project to move it to.")] = None,
    assignee: Assignees = None,
    due: Annotated[str | None, typer.Option(help="ISO date; an empty text takes it away.")] = None,
    tag: Tags = None,
) -> None:
    """Change an epic. Lists take the place of those that are there."""
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
            desk, app, caller, await app.work.update(caller, epic, EPIC, wish)
        )


async def start(desk: Desk, epic: EpicId) -> None:
    """Begin, or open again what was completed."""
    await task_options.step(desk, epic, "start_epic")


async def complete(desk: Desk, epic: EpicId) -> None:
    """Complete an epic, when no task of it is open."""
    await task_options.step(desk, epic, "complete_epic")


async def archive(desk: Desk, epic: EpicId) -> None:
    """Put an epic away. Its tasks stay as they are."""
    await task_options.step(desk, epic, "archive_epic")


async def note(
    desk: Desk,
    epic: EpicId,
    text: Annotated[str, typer.Argument(help="What to note; - reads standard input.")],
) -> None:
    """Note something on an epic; it is found by it."""
    await task_options.noted(desk, epic, text)
