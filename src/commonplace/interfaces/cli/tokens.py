"""token: create, list, revoke."""

from typing import Annotated

import typer

from commonplace.errors import Invalid, NotFound
from commonplace.interfaces.cli.command import Group, Session
from commonplace.interfaces.cli.items import check_name

DEFAULT_EXPIRY_DAYS = 365


async def create_token(
    session: Session,
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

    new = NewToken(
        check_name(name), write, tuple(folder) if folder else None, kb_only, expires or None
    )
    token, secret = await session.services.people.create_token(session.caller, new)
    session.show({"id": token.id, "token": secret}, secret)


async def list_tokens(session: Session) -> None:
    """List tokens."""
    services, caller = session.services, session.caller
    tokens = await services.people.tokens(caller)
    names = {folder.id: folder.name for folder in await services.folders.list_folders(caller)}
    session.show_table(
        tokens,
        ["id", "name", "may", "folders", "expires", "last used", ""],
        [
            (
                token.id,
                token.name,
                token.capabilities,
                "all"
                if token.folders is None
                else [names.get(each, each) for each in token.folders],
                token.expires_at or "never",
                token.last_used_at or "never",
                "revoked" if token.revoked_at else "",
            )
            for token in tokens
        ],
    )


async def revoke_token(
    session: Session,
    which: Annotated[
        str, typer.Argument(metavar="TOKEN", help="The token's id or name.", show_default=False)
    ],
) -> None:
    """Revoke a token, immediately and permanently."""
    people, caller = session.services.people, session.caller
    found = [
        token
        for token in await people.tokens(caller)
        if which in (token.id, token.name) and not token.revoked_at
    ]
    if len(found) > 1:
        raise Invalid(
            f"{len(found)} tokens are named {which!r}; `commonplace token list` shows their ids."
        )
    if not found:
        raise NotFound(f"There is no token {which!r}; `commonplace token list` shows them.")
    await people.revoke_token(caller, found[0].id)
    session.show({"ok": True, "id": found[0].id}, f"Revoked {found[0].name}.")


GROUP: Group = (
    "token",
    "Manage tokens of agents and scripts.",
    {"create": create_token, "list": list_tokens, "revoke": revoke_token},
)
