"""Options of the task and epic commands, and the code that both share."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from commonplace.core.entities.validation import NewEntity
from commonplace.interfaces.cli import output
from commonplace.interfaces.cli.command import Session, read_text
from commonplace.model import ItemFilter
from commonplace.model.workflow import Machine, notes

if TYPE_CHECKING:
    from commonplace.core.work.tasks import ChangeResult

PRIORITIES = "critical, high, medium, low or someday."
Title = Annotated[str, typer.Argument(help="Short title.")]
InProject = Annotated[str, typer.Option(help="Id of the project.")]
Content = Annotated[
    str, typer.Option(help="Description; - reads standard input. Default: the title.")
]
Project = Annotated[str | None, typer.Option(help="Id of a project.")]
Epic = Annotated[str | None, typer.Option(help="Id of an epic.")]
Statuses = Annotated[list[str] | None, typer.Option(help="Only this status (repeatable).")]
Limit = Annotated[int, typer.Option(min=1, max=1000)]
Assignees = Annotated[
    list[str] | None, typer.Option("--assignee", help="Name of an assignee (repeatable).")
]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="A tag (repeatable).")]
Priority = Annotated[str, typer.Option(help=PRIORITIES)]
Due = Annotated[str | None, typer.Option(help="ISO date.")]
Note = Annotated[str, typer.Argument(help="The note; - reads standard input.")]
NewTitle = Annotated[str | None, typer.Option(help="New title.")]
NewStatus = Annotated[str | None, typer.Option(help="New status; must be an allowed transition.")]
NewPriority = Annotated[str | None, typer.Option(help=PRIORITIES)]
NewProject = Annotated[str | None, typer.Option(help="Id of the project to move it to.")]
NewDue = Annotated[str | None, typer.Option(help="ISO date; '' removes it.")]


async def list_work(
    session: Session, where: ItemFilter, *, project: str | None, limit: int, epic: str | None = None
) -> None:
    found, total = await session.services.tasks.page(
        session.caller, where, project=project, epic=epic, limit=limit, offset=0
    )
    items = [entity.item for entity in found]
    session.show_table(
        found,
        ["id", "status", "priority", "due", "title"],
        [(item.entity_id, item.status, item.priority, item.due_date, item.title) for item in items],
    )
    if total > len(found) and not session.as_json:
        output.note(f"{total - len(found)} more; --limit shows them.")


async def show_work(session: Session, entity_id: str, machine: Machine) -> None:
    from commonplace.interfaces.actions import entities as entity_shapes

    entity = await session.services.entities.get(session.caller, entity_id)
    item = entity.item
    machine.require(item)
    facts = {
        "status": item.status,
        "priority": item.priority,
        "due": item.due_date,
        "assignees": ", ".join(item.assignees),
        "project": entity.project.title if entity.project else None,
        "epic": entity.epic.title if entity.epic else None,
        "depends on": ", ".join(other.title for other in entity.depends_on),
        "blocked": item.metadata.get("blocked_reason"),
    }
    lines = [
        f"{item.title} ({item.entity_id})",
        *(f"  {name}: {value}" for name, value in facts.items() if value),
        f"\n{entity.text}",
        *(
            f"\n{note['at'][:16].replace('T', ' ')} {note['author']}: {note['text']}"
            for note in notes(item)
        ),
    ]
    session.show(entity_shapes.entity_in_full(entity, session.settings), "\n".join(lines))


async def add_work(session: Session, new: NewEntity) -> None:
    """Add a task or an epic. Content - reads standard input; no content means the title."""
    from commonplace.core.work.tasks import ChangeResult

    new = replace(new, content=read_text(new.content) or new.title)
    added = await session.services.entities.add(session.caller, new, sync=True)
    await show_done(session, ChangeResult(added.item, f"{added.message} ({added.item.entity_id})"))


async def update_work(
    session: Session, entity_id: str, machine: Machine, options: dict[str, Any]
) -> None:
    """Apply the options that were given; an empty `epic` or `due_date` removes it."""
    changes = {
        name: (value or None) if name in ("epic", "due_date") else value
        for name, value in options.items()
        if value is not None
    }
    await show_done(
        session, await session.services.tasks.update(session.caller, entity_id, machine, changes)
    )


async def add_note(session: Session, entity_id: str, text: str) -> None:
    await show_done(
        session, await session.services.tasks.note(session.caller, entity_id, read_text(text))
    )


async def run_step(session: Session, entity_id: str, action: str, **more: Any) -> None:
    await show_done(
        session, await session.services.tasks.step(session.caller, entity_id, action, **more)
    )


async def show_done(session: Session, done: "ChangeResult") -> None:
    """Print the message of a change, or the changed entity as JSON."""
    if not session.as_json:
        output.text(done.message)
        return
    from commonplace.interfaces.actions import entities as entity_shapes

    [entity] = await session.services.entities.described(session.caller, [done.item])
    shown = entity_shapes.entity(entity, session.settings)
    output.as_json({**shown, **done.more, "message": done.message}, session.settings)
