"""graph supersede, mark-wrong, mark-stale, restore, delete."""

from typing import Annotated

import typer

from commonplace.interfaces.cli import output, task_options
from commonplace.interfaces.cli.command import Desk, command, item_argument

Memory = Annotated[str, item_argument("ENTITY")]
Reason = Annotated[str, typer.Option(help="Why.")]


def register(group: typer.Typer) -> None:
    command(group, "supersede")(supersede)
    command(group, "mark-wrong")(mark_wrong)
    command(group, "mark-stale")(mark_stale)
    command(group, "restore")(restore)
    command(group, "delete")(delete)


async def supersede(
    desk: Desk,
    entity: Memory,
    by: Annotated[str | None, typer.Option(help="Id of what replaces it.")] = None,
    content: Annotated[
        str | None, typer.Option(help="Or the text of a new memory; - reads standard input.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="With --content: its title.")] = None,
    reason: Reason = "",
) -> None:
    """Say what replaces a memory; it stands below that from now on."""
    text = None if content is None else task_options.typed(content)
    async with desk.open() as (app, caller):
        done = await app.memory.supersede(
            caller, entity, by=by, title=title, content=text, reason=reason
        )
        await task_options.answer(desk, app, caller, done)


async def mark_wrong(desk: Desk, entity: Memory, reason: Reason = "") -> None:
    """Search and context leave a memory out from now on."""
    async with desk.open() as (app, caller):
        await task_options.answer(
            desk, app, caller, await app.memory.mark_wrong(caller, entity, reason)
        )


async def mark_stale(desk: Desk, entity: Memory, reason: Reason = "") -> None:
    """A memory is still found, and says that it is stale."""
    async with desk.open() as (app, caller):
        await task_options.answer(
            desk, app, caller, await app.memory.mark_stale(caller, entity, reason)
        )


async def restore(desk: Desk, entity: Memory) -> None:
    """Take a correction back."""
    async with desk.open() as (app, caller):
        await task_options.answer(desk, app, caller, await app.memory.restore(caller, entity))


async def delete(desk: Desk, entity: Memory) -> None:
    """Delete an entity or any other item, with its capture and all that joins it to others."""
    async with desk.open() as (app, caller):
        item = await app.library.delete(caller, entity)
    output.as_json({"ok": True}) if desk.as_json else output.text(f"Deleted: {item.title}")
