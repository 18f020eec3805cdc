"""folder, token, user."""

from typing import Annotated

import typer

from commonplace.errors import Invalid, NotFound
from commonplace.interfaces.cli import output
from commonplace.interfaces.cli.command import Desk, command
from commonplace.interfaces.cli.items import find_folder, named

DEFAULT_EXPIRY_DAYS = 365

Name = Annotated[str, typer.Argument(help="The folder's name.", show_default=False)]
WhichFolder = Annotated[str, typer.Argument(help="The folder, by name or id.", show_default=False)]


def register(root: typer.Typer) -> None:
    folder = typer.Typer(no_args_is_help=True, help="Manage folders.")
    command(folder, "list")(folder_list)
    command(folder, "create")(folder_create)
    command(folder, "rename")(folder_rename)
    command(folder, "delete")(folder_delete)
    root.add_typer(folder, name="folder")
    token = typer.Typer(no_args_is_help=True, help="Manage tokens of agents and scripts.")
    command(token, "create")(token_create)
    command(token, "list")(token_list)
    command(token, "revoke")(token_revoke)
    root.add_typer(token, name="token")
    user = typer.Typer(no_args_is_help=True, help="Manage people. Each has a library.")
    command(user, "create")(user_create)
    command(user, "list")(user_list)
    command(user, "link")(user_link)
    root.add_typer(user, name="user")


async def folder_list(desk: Desk) -> None:
    """List folders."""
    from commonplace.interfaces.actions import items

    async with desk.open() as (app, caller):
        folders = await app.folders.list_folders(caller)
    if desk.as_json:
        output.as_json([items.folder(folder) for folder in folders])
    else:
        output.table(
            ["id", "items", "name"],
            [(folder.id, folder.item_count, folder.name) for folder in folders],
        )


async def folder_create(desk: Desk, name: Name) -> None:
    """Create a folder."""
    from commonplace.interfaces.actions import items

    async with desk.open() as (app, caller):
        folder = await app.folders.create(caller, named(name))
    output.as_json(items.folder(folder)) if desk.as_json else output.text(folder.id)


async def folder_rename(
    desk: Desk, folder: WhichFolder, name: Annotated[str, typer.Argument(help="New name.")]
) -> None:
    """Rename a folder."""
    from commonplace.interfaces.actions import items

    async with desk.open() as (app, caller):
        found = await find_folder(app, caller, folder)
        renamed = await app.folders.rename(caller, found.id, named(name))
    output.as_json(items.folder(renamed)) if desk.as_json else output.text(
        f"{found.name} is now {renamed.name}."
    )


async def folder_delete(
    desk: Desk,
    folder: WhichFolder,
    cascade_items: Annotated[
        bool,
        typer.Option("--cascade-items", help="Also delete items that are in no other folder."),
    ] = False,
) -> None:
    """Delete a folder. Its items stay unless you pass --cascade-items."""
    async with desk.open() as (app, caller):
        found = await find_folder(app, caller, folder)
        await app.folders.delete(caller, found.id, cascade_items=cascade_items)
    output.as_json({"ok": True, "id": found.id}) if desk.as_json else output.text(
        f"Deleted folder {found.name}."
    )


async def token_create(
    desk: Desk,
    name: Annotated[str, typer.Option(help="Name of the token.")],
    write: Annotated[
        bool, typer.Option("--write", help="Can also add, change and delete.")
    ] = False,
    folder: Annotated[
        list[str] | None, typer.Option(help="Limit to this folder (repeatable).")
    ] = None,
    kb_only: Annotated[bool, typer.Option("--kb-only", help="Limit to items in the KB.")] = False,
    expires: Annotated[
        int, typer.Option(min=0, max=36_500, help="Days until it expires; 0 never expires.")
    ] = DEFAULT_EXPIRY_DAYS,
) -> None:
    """Create a token and print it once. Only its hash is stored."""
    from commonplace.core.people.tokens import NewToken

    wanted = NewToken(
        named(name), write, tuple(folder) if folder else None, kb_only, expires or None
    )
    async with desk.open() as (app, caller):
        token, secret = await app.people.create_token(caller, wanted)
    output.as_json({"id": token.id, "token": secret}) if desk.as_json else output.text(secret)


async def token_list(desk: Desk) -> None:
    """List tokens."""
    from commonplace.interfaces.actions import items

    async with desk.open() as (app, caller):
        tokens = await app.people.tokens(caller)
        folders = {folder.id: folder.name for folder in await app.folders.list_folders(caller)}
    if desk.as_json:
        output.as_json([items.token(token) for token in tokens])
        return
    output.table(
        ["id", "name", "may", "folders", "expires", "last used", ""],
        [
            (
                token.id,
                token.name,
                token.capabilities,
                "all"
                if token.folders is None
                else [folders.get(folder, folder) for folder in token.folders],
                token.expires_at or "never",
                token.last_used_at or "never",
                "revoked" if token.revoked_at else "",
            )
            for token in tokens
        ],
    )


async def token_revoke(
    desk: Desk,
    which: Annotated[
        str, typer.Argument(metavar="TOKEN", help="The token's id or name.", show_default=False)
    ],
) -> None:
    """Revoke a token, immediately and permanently."""
    async with desk.open() as (app, caller):
        named = [
            known
            for known in await app.people.tokens(caller)
            if which in (known.id, known.name) and not known.revoked_at
        ]
        if len(named) > 1:
            raise Invalid(
                f"{len(named)} tokens are named {which!r}; `commonplace token list` shows their ids."
            )
        if not named:
            raise NotFound(f"There is no token {which!r}; `commonplace token list` shows them.")
        await app.people.revoke_token(caller, named[0].id)
    output.as_json({"ok": True, "id": named[0].id}) if desk.as_json else output.text(
        f"Revoked {named[0].name}."
    )


async def user_create(
    desk: Desk,
    name: Annotated[str, typer.Option(help="The person's name.")],
    email: Annotated[str, typer.Option(help="The person's email.")],
) -> None:
    """Create a person with a library, and a token that can read and write."""
    desk.require_owner()
    async with desk.open() as (app, _):
        person, secret = await app.people.create_with_token(named(name), address(email))
    output.as_json({"id": person.id, "token": secret}) if desk.as_json else output.text(secret)


async def user_link(
    desk: Desk,
    who: Annotated[
        str,
        typer.Argument(
            metavar="[PERSON]",
            help="Email or id. Default: the owner, who is the first person.",
            show_default=False,
        ),
    ] = "",
    email: Annotated[str, typer.Option(help="The same, by email.", show_default=False)] = "",
) -> None:
    """Print a sign-in link for the web app. It works once, for a day, and can set a new password."""
    from commonplace.core.people.client_setup import address

    desk.require_owner()
    wanted = (email or who).strip()
    async with desk.open() as (app, _):
        await app.people.ensure_owner()
        found = [
            p
            for p in await app.people.all()
            if wanted in ("", p.id) or p.email.lower() == wanted.lower()
        ]
        if not found:
            raise NotFound(f"There is no person {wanted!r}. `commonplace user list` shows all.")
        link = f"{address(desk.settings)}/claim/{await app.accounts.invitation(found[0])}"
    output.as_json({"id": found[0].id, "link": link}) if desk.as_json else output.text(link)


async def user_list(desk: Desk) -> None:
    """List people."""
    desk.require_owner()
    async with desk.open() as (app, _):
        people = await app.people.all()
    if desk.as_json:
        output.as_json(
            [
                {"id": p.id, "name": p.name, "email": p.email, "created_at": p.created_at}
                for p in people
            ]
        )
    else:
        output.table(
            ["id", "name", "email", "since"],
            [(p.id, p.name, p.email, p.created_at) for p in people],
        )


def address(email: str) -> str:
    local, _, host = email.strip().rpartition("@")
    if not local or not host or any(c.isspace() for c in email.strip()):
        raise Invalid(f"{email!r} is not an e-mail address.")
    return email.strip()
