"""token list, user, member."""

from contextlib import suppress
from typing import Annotated, Literal

import typer

from commonplace.core.people.client_setup import address
from commonplace.errors import CapabilityDenied, ForbiddenScope, Invalid, NotFound
from commonplace.hooks import server_url
from commonplace.interfaces.cli import output
from commonplace.interfaces.cli.command import Commands, Session
from commonplace.interfaces.cli.generated import answer, run, show
from commonplace.interfaces.cli.items import check_name
from commonplace.model import MEGABYTE, Json, Role, folder_list


async def list_tokens(session: Session, given: Json) -> None:
    """List the library's tokens."""
    found = await answer(session, "list_tokens", given)
    if not session.as_json:
        folders = (await answer(session, "list_folders", {})).value
        names = {node.id: node.path for node in folder_list(folders)}
        for token in found.json["tokens"]:
            if token["folders"] is not None:
                token["folders"] = [names.get(each, each) for each in token["folders"]]
    show(session, "list_tokens", found, given)


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
    found = await session.services.people.find(wanted)
    if found is None:
        raise NotFound(f"There is no person {wanted!r}.")
    secret = await session.services.accounts.invitation(found)
    settings = session.settings
    url = settings.public_url or server_url(settings.data_dir) or address(settings)
    link = f"{url.rstrip('/')}/claim/{secret}"
    session.show({"id": found.id, "link": link}, link)


def check_email(email: str) -> str:
    local, _, host = email.strip().rpartition("@")
    if not local or not host or any(c.isspace() for c in email.strip()):
        raise Invalid(f"{email!r} is not an email address.")
    return email.strip()


async def list_libraries(
    session: Session,
    after: Annotated[str | None, typer.Option(help="Id after which the list continues.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Libraries to list.")] = 100,
) -> None:
    """List the libraries of this server, the newest first: names, sizes and jobs."""
    session.require_owner()
    page = await session.services.admin.libraries(session.caller, after, limit)
    columns = [
        "id",
        "name",
        "email",
        "members",
        "created",
        "items",
        "sections",
        "MB",
        "open",
        "failed",
    ]
    rows = [
        (
            each.id,
            each.name,
            each.email,
            each.members,
            f"{each.created_at:%Y-%m-%d}",
            each.usage.items,
            each.usage.sections,
            round(each.usage.size / MEGABYTE, 1),
            each.open_jobs,
            each.failed_jobs,
        )
        for each in page.libraries
    ]
    session.show(
        {
            "libraries": [dict(zip(columns, row, strict=True)) for row in rows],
            "total": page.total,
            "after": page.after,
        },
        lambda: output.table(columns, rows),
    )


async def list_members(session: Session, given: Json) -> None:
    """List members and pending invitations."""
    members = await answer(session, "list_members", given)
    pending: list[Json] = []
    with suppress(CapabilityDenied, ForbiddenScope):  # only admins and owners see them
        invited = (await answer(session, "list_invitations", given)).json["invitations"]
        pending = [each for each in invited if each["accepted_at"] is None]
    rows = [
        (each["person_id"], each["role"], each["name"], each["email"])
        for each in members.json["members"]
    ]
    rows += [
        (
            each["id"],
            each["role"],
            f"invited until {each['expires_at'][:10]}",
            each["email"] or "anybody",
        )
        for each in pending
    ]
    session.show(
        {**members.json, "invitations": pending},
        lambda: output.table(["id", "role", "name", "email"], rows),
    )


async def invite(
    session: Session,
    given: Json,
    role: Annotated[Role, typer.Option(help="Their role.")] = Role.MEMBER,
    withdraw: Annotated[
        str | None, typer.Option(help="Withdraw the invitation with this id.")
    ] = None,
) -> None:
    """Invite a person to the library, or withdraw an invitation. Prints the invitation's secret
    once; send it to them."""
    if withdraw is None:
        await run(session, "invite_member", {**given, "role": role})
    else:
        await run(session, "withdraw_invitation", {**given, "invitation_id": withdraw})


async def change_role(
    session: Session,
    given: Json,
    role: Annotated[
        Literal["viewer", "member", "admin", "owner", "none"],
        typer.Argument(
            metavar="ROLE", help="viewer, member, admin, owner, or none to remove them."
        ),
    ],
) -> None:
    """Change a member's role, or remove them. Effective immediately for all of their tokens."""
    if role == "none":
        await run(session, "remove_member", given)
    else:
        await run(session, "change_role", {**given, "role": role})


COMMANDS: Commands = {
    "token list": list_tokens,
    "user create": create_user,
    "user link": link_user,
    "member list": list_members,
    "member invite": invite,
    "member role": change_role,
    "admin libraries": list_libraries,
}
