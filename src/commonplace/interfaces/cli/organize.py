"""tag, move, archive: where items are found again; open: the same in the browser."""

import webbrowser
from collections.abc import Awaitable, Callable
from typing import Annotated

import typer

from commonplace.errors import CommonplaceError, Invalid, NotFound
from commonplace.interfaces.actions.items import ITEM
from commonplace.interfaces.actions.shapes import Call
from commonplace.interfaces.cli.command import CommandContext, Commands, Session
from commonplace.interfaces.cli.connect import check_server
from commonplace.interfaces.cli.generated import answer
from commonplace.interfaces.cli.items import check_name, find_or_create
from commonplace.model import Item

OneItem = Annotated[str, typer.Argument(metavar="ITEM", help="An item's id.", show_default=False)]
Items = Annotated[
    list[str], typer.Argument(metavar="ITEM...", help="Ids of items.", show_default=False)
]


async def tag(
    session: Session,
    item: OneItem,
    tags: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TAG...]", help="Tags to add.", show_default=False),
    ] = None,
    remove: Annotated[list[str] | None, typer.Option(help="A tag to remove (repeatable).")] = None,
) -> None:
    """Add tags to an item, or remove them."""
    if not tags and not remove:
        raise Invalid("Enter a tag: commonplace tag ITEM TAG")

    async def change(item_id: str) -> Item:
        held = (await _find(session, item_id)).tags
        wanted = [each for each in dict.fromkeys([*held, *(tags or ())]) if each not in gone]
        return await _update(session, item_id, tags=wanted)

    gone = {*(remove or ())}
    await _each(session, [item], change, lambda one: f"Tags of {_name(one)}: {', '.join(one.tags)}")


async def archive(
    session: Session,
    items: Items,
    undo: Annotated[bool, typer.Option("--undo", help="Bring them back.")] = False,
) -> None:
    """Archive items, or bring them back. Archived items are not listed; search finds them."""
    said = "Restored" if undo else "Archived"
    await _each(
        session,
        items,
        lambda item_id: _update(session, item_id, archived=not undo),
        lambda item: f"{said}: {_name(item)}",
    )


async def move(
    session: Session,
    items: Items,
    folder: Annotated[
        str,
        typer.Argument(metavar="FOLDER", help="Its name or id; '' for none.", show_default=False),
    ],
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep them in their other folders, too.")
    ] = False,
) -> None:
    """Move items to a folder. Creates the folder if it does not exist."""
    folders, caller = session.services.folders, session.caller
    for item_id in items:
        await _find(session, item_id)  # no folder for what is not there
    target = await find_or_create(session, check_name(folder)) if folder else None

    async def change(item_id: str) -> Item:
        item = await _find(session, item_id)
        if target is not None and target not in item.folders:
            await folders.file(caller, item.id, [target])
        for other in () if keep else item.folders:
            if other != target:
                await folders.unfile(caller, item.id, other)
        return await _find(session, item_id)

    where = f"moved to {folder}" if target else "in no folder"
    await _each(session, items, change, lambda item: f"{_name(item)} {where}")


async def open_(
    context: CommandContext,
    item: Annotated[
        str | None,
        typer.Argument(metavar="[ITEM]", help="An item's id. Default: the library."),
    ] = None,
) -> None:
    """Open the library or an item in the browser."""
    url, problem = check_server(context.settings)
    if problem:
        raise Invalid(problem)
    if item is not None:
        async with context.open() as (services, caller):
            found = await services.library.find(caller, item)
        if found is None:
            raise NotFound(f"No item {item!r}.")
        url = f"{url}/items/{found.public_id}"
    webbrowser.open(url)
    context.show({"url": url}, url)


async def _find(session: Session, item_id: str) -> Item:
    found = await session.services.library.find(session.caller, item_id)
    if found is None:
        raise NotFound(f"No item {item_id!r}.")
    return found


async def _update(session: Session, item_id: str, **changes: object) -> Item:
    changed = (await answer(session, "update_item", {"item_id": item_id, **changes})).value.item
    assert isinstance(changed, Item)
    return changed


async def _each(
    session: Session,
    items: list[str],
    change: Callable[[str], Awaitable[Item]],
    say: Callable[[Item], str],
) -> None:
    """Change items one by one, and print them; one that fails does not stop the others."""
    changed, failed = list[Item](), list[str]()
    for item_id in items:
        try:
            changed.append(await change(item_id))
        except CommonplaceError as error:
            failed.append(error.message if len(items) == 1 else f"{item_id}: {error.message}")
    shown = [ITEM(item, Call(None, session.settings)) for item in changed]
    if changed:
        session.show(shown[0] if len(items) == 1 else shown, "\n".join(map(say, changed)))
    if failed:
        raise Invalid("\n".join(failed))


def _name(item: Item) -> str:
    return f"{item.title} ({item.public_id})"


COMMANDS: Commands = {"tag": tag, "move": move, "archive": archive, "open": open_}
