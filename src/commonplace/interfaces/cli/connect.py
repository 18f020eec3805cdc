"""connect: the lines that make a client a client of this server."""

from typing import Annotated

import typer

from commonplace.core.people.client_setup import Client, address, instructions
from commonplace.interfaces.cli import output
from commonplace.interfaces.cli.command import CommandContext, Commands


async def connect(
    context: CommandContext,
    client: Annotated[Client, typer.Argument(help="The client to connect.", show_default=False)],
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Create a token that can only read.")
    ] = False,
) -> None:
    """Print how to connect a client to this library, with a new token or the one of --token."""
    from commonplace.core.people.tokens import NewToken

    secret = context.token or ""
    # Claude Desktop starts a program of its owner's, which needs a token only to be let do less.
    if not secret and (read_only or client is not Client.CLAUDE_DESKTOP):
        async with context.open() as (services, caller):
            _, secret = await services.people.create_token(
                caller, NewToken(client, write=not read_only)
            )
    made = instructions(client, address(context.settings), secret, context.settings)
    if not context.as_json:
        output.note(made.where)
    context.show(
        {
            "client": client,
            "where": made.where,
            "configuration": made.lines,
            "token": secret or None,
        },
        made.lines,
    )


COMMANDS: Commands = {"connect": connect}
