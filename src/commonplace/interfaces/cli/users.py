"""user: create, list, link."""

from typing import Annotated

import typer

from commonplace.core.people.client_setup import address
from commonplace.errors import Invalid, NotFound
from commonplace.interfaces.cli.command import Group, Session
from commonplace.interfaces.cli.items import check_name


async def create_user(
    session: Session,
    name: Annotated[str, typer.Option(help="The person's name.")],
    email: Annotated[str, typer.Option(help="The person's email.")],
) -> None:
    """Create a person with a library, and a token that can read and write."""
    session.require_owner()
    person, secret = await session.services.people.create_with_token(
        check_name(name), check_email(email)
    )
    session.show({"id": person.id, "token": secret}, secret)


async def list_users(session: Session) -> None:
    """List people."""
    session.require_owner()
    people = await session.services.people.all()
    answer = [
        {"id": each.id, "name": each.name, "email": each.email, "created_at": each.created_at}
        for each in people
    ]
    session.show_table(
        answer, ["id", "name", "email", "since"], [tuple(each.values()) for each in answer]
    )


async def link_user(
    session: Session,
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
    """Print a sign-in link for the web app. It works once, for a day, and sets a password."""
    session.require_owner()
    wanted = (email or who).strip()
    people = await session.services.people.all()
    found = [each for each in people if wanted in ("", each.id)]
    found += [each for each in people if each.email.lower() == wanted.lower()]
    if not found:
        raise NotFound(f"There is no person {wanted!r}. `commonplace user list` shows all.")
    secret = await session.services.accounts.invitation(found[0])
    link = f"{address(session.settings)}/claim/{secret}"
    session.show({"id": found[0].id, "link": link}, link)


def check_email(email: str) -> str:
    local, _, host = email.strip().rpartition("@")
    if not local or not host or any(c.isspace() for c in email.strip()):
        raise Invalid(f"{email!r} is not an e-mail address.")
    return email.strip()


GROUP: Group = (
    "user",
    "Manage people. Each has a library.",
    {"create": create_user, "list": list_users, "link": link_user},
)
