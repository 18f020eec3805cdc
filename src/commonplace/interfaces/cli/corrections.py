"""graph supersede, mark-wrong, mark-stale, restore, delete."""

from typing import Annotated

import typer

from commonplace.interfaces.cli import output, task_options
from commonplace.interfaces.cli.command import Desk, command, item_argument

Memory = Annotated[str, item_argument("ENTITY")]
Reason = Annotated[str, typer.Option(help="The reason.")]


def register(group: typer.Typer) -> None:
    command(group, "supersede")(supersede)
    command(group, "mark-wrong")(mark_wrong)
    command(group, "mark-stale")(mark_stale)
    command(group, "restore")(restore)
    command(group, "delete")(delete)


async def supersede(
    desk: Desk,
    entity: Memory,
    by: Annotated[str | None, typer.Option(help="Id of the replacement.")] = None,
    content: Annotated[
        str | None, typer.Option(help="Text of a new memory; - reads standard input.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the new memory.")] = None,
    reason: Reason = "",
) -> None:
    """Replace a memory. Search ranks it below its replacement."""
    text = None if content is None else task_options.typed(content)
    async with desk.open() as (app, caller):
        done = await app.memory.supersede(
            caller, entity, by=by, title=title, content=text, reason=reason
        )
        await task_options.answer(desk, app, caller, done)


async def mark_wrong(desk: Desk, entity: Memory, reason: Reason = "") -> None:
    """Mark a memory as wrong. Search and context leave it out."""
    async with desk.open() as (app, caller):
        await task_options.answer(
            desk, app, caller, await app.memory.mark_wrong(caller, entity, reason)
        )


async def mark_stale(desk: Desk, entity: Memory, reason: Reason = "") -> None:
    """Mark a memory as stale. Search still finds it and shows its status."""
    async with desk.open() as (app, caller):
        await task_options.answer(
            desk, app, caller, await app.memory.mark_stale(caller, entity, reason)
        )


async def restore(desk: Desk, entity: Memory) -> None:
    """Restore a corrected memory."""
    async with desk.open() as (app, caller):
        await task_options.answer(desk, app, caller, await app.memory.restore(caller, entity))


async def delete(desk: Desk, entity: Memory) -> None:
    """Delete an entity or another item, with its capture and relations."""
    async with desk.open() as (app, caller):
        item = await app.library.delete(caller, entity)
    output.as_json({"ok": True}) if desk.as_json else output.text(f"Deleted: {item.title}")
