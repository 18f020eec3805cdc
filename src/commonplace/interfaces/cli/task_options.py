"""What the commands on tasks and on epics share: options, listing, showing, and how they answer."""

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from commonplace.interfaces.cli import output
from commonplace.interfaces.cli.command import Desk
from commonplace.model import Caller, ItemFilter

if TYPE_CHECKING:
    from commonplace.core.entities.entities import Entity
    from commonplace.core.entities.validation import NewEntity
    from commonplace.core.services import Services
    from commonplace.core.work.tasks import ChangeResult
    from commonplace.model.workflow import Machine

Project = Annotated[str | None, typer.Option(help="Id of a project.")]
Assignees = Annotated[
    list[str] | None, typer.Option("--assignee", help="Name of an assignee (repeatable).")
]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="A tag (repeatable).")]
Priority = Annotated[str, typer.Option(help="critical, high, medium, low or someday.")]
COLUMNS = ["id", "status", "priority", "due", "title"]


async def listed(
    desk: Desk, where: ItemFilter, *, project: str | None, limit: int, epic: str | None = None
) -> None:
    async with desk.open() as (app, caller):
        found, total = await app.tasks.page(
            caller, where, project=project, epic=epic, limit=limit, offset=0
        )
    if desk.as_json:
        from commonplace.interfaces.actions import entities

        output.as_json([entities.entity(entity, desk.settings) for entity in found])
        return
    output.table(COLUMNS, [row(entity) for entity in found])
    if total > len(found):
        output.note(f"{total - len(found)} more; --limit shows them.")


async def shown(desk: Desk, entity_id: str, machine: "Machine") -> None:
    from commonplace.model.task_notes import notes

    async with desk.open() as (app, caller):
        entity = await app.entities.get(caller, entity_id)
    item = entity.item
    machine.require(item)
    if desk.as_json:
        from commonplace.interfaces.actions import entities

        output.as_json(entities.entity_in_full(entity, desk.settings))
        return
    output.text(f"{item.title} ({item.entity_id})")
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
    for name, value in facts.items():
        if value:
            output.text(f"  {name}: {value}")
    output.text(f"\n{entity.text}")
    for said in notes(item):
        output.text(f"\n{said['at'][:16].replace('T', ' ')} {said['author']}: {said['text']}")


async def added(desk: Desk, new: "NewEntity") -> None:
    """`content`: - stands for standard input; without any, the title says it all."""
    from commonplace.core.work.tasks import ChangeResult

    new = replace(new, content=typed(new.content) or new.title)
    async with desk.open() as (app, caller):
        kept = await app.entities.add(caller, new, sync=True)
        await answer(
            desk, app, caller, ChangeResult(kept.item, f"{kept.message} ({kept.item.entity_id})")
        )


async def noted(desk: Desk, entity_id: str, text: str) -> None:
    async with desk.open() as (app, caller):
        await answer(desk, app, caller, await app.tasks.note(caller, entity_id, typed(text)))


def typed(text: str) -> str:
    return sys.stdin.read() if text == "-" else text


async def step(desk: Desk, entity_id: str, action: str, **more: Any) -> None:
    async with desk.open() as (app, caller):
        await answer(desk, app, caller, await app.tasks.step(caller, entity_id, action, **more))


async def answer(desk: Desk, app: "Services", caller: Caller, done: "ChangeResult") -> None:
    if not desk.as_json:
        output.text(done.message)
        return
    from commonplace.interfaces.actions import entities

    [entity] = await app.entities.described(caller, [done.item])
    output.as_json({**entities.entity(entity, desk.settings), **done.more, "message": done.message})


def row(entity: "Entity") -> tuple[Any, ...]:
    item = entity.item
    return item.entity_id, item.status, item.priority, item.due_date, item.title
