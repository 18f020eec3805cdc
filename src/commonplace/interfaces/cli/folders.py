"""folder: list, create, rename, delete."""

from typing import Annotated

import typer

from commonplace.interfaces.cli.command import Group, Session
from commonplace.interfaces.cli.items import check_name, find_folder

Name = Annotated[str, typer.Argument(help="The folder's name.", show_default=False)]
WhichFolder = Annotated[str, typer.Argument(help="The folder, by name or id.", show_default=False)]


async def list_folders(session: Session) -> None:
    """List folders."""
    folders = await session.services.folders.list_folders(session.caller)
    session.show_table(
        folders,
        ["id", "items", "name"],
        [(folder.id, folder.item_count, folder.name) for folder in folders],
    )


async def create_folder(session: Session, name: Name) -> None:
    """Create a folder."""
    folder = await session.services.folders.create(session.caller, check_name(name))
    session.show(folder, folder.id)


async def rename_folder(
    session: Session, folder: WhichFolder, name: Annotated[str, typer.Argument(help="New name.")]
) -> None:
    """Rename a folder."""
    found = await find_folder(session, folder)
    new = await session.services.folders.rename(session.caller, found.id, check_name(name))
    session.show(new, f"{found.name} is now {new.name}.")


async def delete_folder(
    session: Session,
    folder: WhichFolder,
    cascade_items: Annotated[
        bool,
        typer.Option("--cascade-items", help="Also delete items that are in no other folder."),
    ] = False,
) -> None:
    """Delete a folder. Its items stay unless you pass --cascade-items."""
    found = await find_folder(session, folder)
    await session.services.folders.delete(session.caller, found.id, cascade_items=cascade_items)
    session.show({"ok": True, "id": found.id}, f"Deleted folder {found.name}.")


GROUP: Group = (
    "folder",
    "Manage folders.",
    {
        "list": list_folders,
        "create": create_folder,
        "rename": rename_folder,
        "delete": delete_folder,
    },
)
