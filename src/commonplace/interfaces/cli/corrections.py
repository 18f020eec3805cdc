"""graph supersede, mark-wrong, mark-stale, restore, delete."""

from typing import Annotated

import typer

from commonplace.interfaces.cli.command import Command, Session, item_argument, read_text
from commonplace.interfaces.cli.task_options import show_done

Memory = Annotated[str, item_argument("ENTITY")]
Reason = Annotated[str, typer.Option(help="The reason.")]


async def supersede(
    session: Session,
    entity: Memory,
    by: Annotated[str | None, typer.Option(help="Id of the replacement.")] = None,
    content: Annotated[
        str | None, typer.Option(help="Text of a new memory; - reads standard input.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the new memory.")] = None,
    reason: Reason = "",
) -> None:
    """Replace a memory. Search ranks it below its replacement."""
    done = await session.services.memory.supersede(
        session.caller,
        entity,
        by=by,
        title=title,
        content=None if content is None else read_text(content),
        reason=reason,
    )
    await show_done(session, done)


async def mark_wrong(session: Session, entity: Memory, reason: Reason = "") -> None:
    """Mark a memory as wrong. Search and context leave it out."""
    await show_done(
        session, await session.services.memory.mark_wrong(session.caller, entity, reason)
    )


async def mark_stale(session: Session, entity: Memory, reason: Reason = "") -> None:
    """Mark a memory as stale. Search still finds it and shows its status."""
    await show_done(
        session, await session.services.memory.mark_stale(session.caller, entity, reason)
    )


async def restore(session: Session, entity: Memory) -> None:
    """Restore a corrected memory."""
    await show_done(session, await session.services.memory.restore(session.caller, entity))


async def delete(session: Session, entity: Memory) -> None:
    """Delete an entity or another item, with its capture and relations."""
    item = await session.services.library.delete(session.caller, entity)
    session.show({"ok": True}, f"Deleted: {item.title}")


COMMANDS: dict[str, Command] = {
    "supersede": supersede,
    "mark-wrong": mark_wrong,
    "mark-stale": mark_stale,
    "restore": restore,
    "delete": delete,
}
