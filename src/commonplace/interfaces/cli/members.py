"""member: who belongs to the library."""

from typing import Annotated

import typer

from commonplace.errors import NotFound
from commonplace.interfaces.cli import output
from commonplace.interfaces.cli.command import Desk, command
from commonplace.interfaces.cli.items import named
from commonplace.interfaces.cli.people import address
from commonplace.model import Member, Role

Who = Annotated[
    str, typer.Argument(metavar="MEMBER", help="The member's email or id.", show_default=False)
]
INVITATION_DAYS = 7


def register(root: typer.Typer) -> None:
    member = typer.Typer(
        no_args_is_help=True,
        help="Manage members: viewers read, members write, admins and owners also manage members.",
    )
    command(member, "list")(member_list)
    command(member, "invite")(member_invite)
    command(member, "invitations")(member_invitations)
    command(member, "withdraw")(member_withdraw)
    command(member, "accept")(member_accept)
    command(member, "role")(member_role)
    command(member, "remove")(member_remove)
    root.add_typer(member, name="member")


async def member_list(desk: Desk) -> None:
    """List members."""
    from commonplace.interfaces.actions import items

    async with desk.open() as (app, caller):
        members = await app.members.all(caller)
    if desk.as_json:
        output.as_json([items.member(member) for member in members])
    else:
        output.table(
            ["id", "role", "name", "email"],
            [(m.person_id, m.role, m.name, m.email) for m in members],
        )


async def member_invite(
    desk: Desk,
    role: Annotated[Role, typer.Option(help="Their role.")] = Role.MEMBER,
    email: Annotated[
        str | None, typer.Option(help="Only the person with this email can accept it.")
    ] = None,
    expires: Annotated[
        int, typer.Option(min=1, max=90, help="Days until it expires.")
    ] = INVITATION_DAYS,
) -> None:
    """Create an invitation and print its secret once. Send it to the person you invite."""
    async with desk.open() as (app, caller):
        invitation, secret = await app.members.invite(
            caller, role, address(email) if email else None, expires
        )
    output.as_json({"id": invitation.id, "token": secret}) if desk.as_json else output.text(secret)


async def member_invitations(desk: Desk) -> None:
    """List invitations."""
    from commonplace.interfaces.actions import items

    async with desk.open() as (app, caller):
        invitations = await app.members.invitations(caller)
    if desk.as_json:
        output.as_json([items.invitation(invitation) for invitation in invitations])
    else:
        output.table(
            ["id", "role", "for", "until", ""],
            [
                (
                    i.id,
                    i.role,
                    i.email or "anybody",
                    i.expires_at,
                    "accepted" if i.accepted_at else "",
                )
                for i in invitations
            ],
        )


async def member_withdraw(
    desk: Desk, invitation: Annotated[str, typer.Argument(help="The invitation's id.")]
) -> None:
    """Cancel a pending invitation."""
    async with desk.open() as (app, caller):
        await app.members.withdraw(caller, invitation)
    output.as_json({"ok": True, "id": invitation}) if desk.as_json else output.text("Withdrawn.")


async def member_accept(
    desk: Desk,
    invitation: Annotated[str, typer.Argument(help="The invitation's secret.")],
    name: Annotated[str | None, typer.Option(help="Your name, if you have no account yet.")] = None,
    email: Annotated[
        str | None, typer.Option(help="Your email, if you have no account yet.")
    ] = None,
) -> None:
    """Accept an invitation with --token, or create an account with --name and --email."""
    async with desk.open() as (app, caller):
        new = name is not None or email is not None
        done = await app.members.accept(
            None if new else caller,
            invitation,
            named(name) if name else None,
            address(email) if email else None,
        )
    if desk.as_json:
        output.as_json(
            {
                "person_id": done.person_id,
                "library_id": done.library_id,
                "role": done.role,
                "token": done.token,
            }
        )
    else:
        output.text(done.token)


async def member_role(
    desk: Desk,
    who: Who,
    role: Annotated[Role, typer.Argument(help="The new role.")],
) -> None:
    """Change a member's role, effective immediately."""
    from commonplace.interfaces.actions import items

    async with desk.open() as (app, caller):
        members = await app.members.all(caller)
        changed = await app.members.change_role(caller, _find(members, who), role)
    output.as_json(items.member(changed)) if desk.as_json else output.text(
        f"{changed.name} is {changed.role} now."
    )


async def member_remove(desk: Desk, who: Who) -> None:
    """Remove a member and revoke their tokens for this library."""
    async with desk.open() as (app, caller):
        person_id = _find(await app.members.all(caller), who)
        await app.members.remove(caller, person_id)
    output.as_json({"ok": True, "id": person_id}) if desk.as_json else output.text(
        f"Removed {who}."
    )


def _find(members: list[Member], who: str) -> str:
    found = [
        member.person_id
        for member in members
        if who == member.person_id or who.lower() == member.email.lower()
    ]
    if not found:
        raise NotFound(f"There is no member {who!r}; `commonplace member list` shows them.")
    return found[0]
