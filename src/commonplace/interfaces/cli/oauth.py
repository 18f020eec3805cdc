"""oauth client: clients for consoles that ask for an id and a secret."""

from typing import Annotated

import typer

from commonplace.interfaces.cli import output
from commonplace.interfaces.cli.command import Commands, Session
from commonplace.interfaces.cli.items import check_name


async def create_client(
    session: Session,
    name: Annotated[str, typer.Option(help="Name that people see when they are asked.")],
    redirect: Annotated[
        list[str], typer.Option(help="Redirect URI, as the console shows it; repeatable.")
    ],
) -> None:
    """Create an OAuth client for a console that asks for a client id and secret. Prints both; the
    secret is shown this once."""
    session.require_owner()
    client, secret = await session.services.oauth.clients.create(check_name(name), redirect)
    session.show(
        {"id": client.id, "secret": secret}, f"Client id: {client.id}\nClient secret: {secret}"
    )


async def list_clients(session: Session) -> None:
    """List OAuth clients, also those that registered themselves."""
    session.require_owner()
    clients = await session.services.oauth.clients.all()
    session.show(
        {
            "clients": [
                {
                    "id": each.id,
                    "name": each.name,
                    "source": each.source,
                    "redirect_uris": each.redirect_uris,
                    "created_at": each.created_at.isoformat(),
                    "last_used_at": each.used_at.isoformat() if each.used_at else None,
                }
                for each in clients
            ]
        },
        lambda: output.table(
            ["id", "name", "source", "redirect URIs"],
            [(each.id, each.name, each.source, " ".join(each.redirect_uris)) for each in clients],
            empty="No OAuth clients yet. Most register themselves when they first connect.",
        ),
    )


async def delete_client(
    session: Session,
    client_id: Annotated[str, typer.Argument(metavar="CLIENT", help="Its id.")],
) -> None:
    """Delete an OAuth client, and revoke what it was granted."""
    session.require_owner()
    await session.services.oauth.clients.delete(client_id)
    session.show({"id": client_id, "deleted": True}, "Deleted.")


COMMANDS: Commands = {
    "oauth client create": create_client,
    "oauth client list": list_clients,
    "oauth client delete": delete_client,
}
