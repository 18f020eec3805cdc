"""member: who belongs to the library."""

from typing import Annotated

import typer

from commonplace.errors import NotFound
from commonplace.interfaces.cli.command import Group, Session
from commonplace.interfaces.cli.items import check_name
from commonplace.interfaces.cli.users import check_email
from commonplace.model import Role

Who = Annotated[
    str, typer.Argument(metavar="MEMBER", help="The member's email or id.", show_default=False)
]
INVITATION_DAYS = 7


async def list_members(session: Session) -> None:
    """List members."""
    members = await session.services.members.all(session.caller)
    session.show_table(
        members,
        ["id", "role", "name", "email"],
        [(each.person_id, each.role, each.name, each.email) for each in members],
    )


async def invite_member(
    session: Session,
    role: Annotated[Role, typer.Option(help="Their role.")] = Role.MEMBER,
    email: Annotated[
        str | None, typer.Option(help="Only the person with this email can accept it.")
    ] = None,
    expires: Annotated[
        int, typer.Option(min=1, max=90, help="Days until it expires.")
    ] = INVITATION_DAYS,
) -> None:
    """Create an invitation and print its secret once. Send it to the person you invite."""
    invitation, secret = await session.services.members.invite(
        session.caller, role, check_email(email) if email else None, expires
    )
    session.show({"id": invitation.id, "token": secret}, secret)


async def list_invitations(session: Session) -> None:
    """List invitations."""
    invitations = await session.services.members.invitations(session.caller)
    session.show_table(
        invitations,
        ["id", "role", "for", "until", ""],
        [
            (
                each.id,
                each.role,
                each.email or "anybody",
                each.expires_at,
                "accepted" if each.accepted_at else "",
            )
            for each in invitations
        ],
    )


async def withdraw_invitation(
    session: Session, invitation: Annotated[str, typer.Argument(help="The invitation's id.")]
) -> None:
    """Cancel a pending invitation."""
    await session.services.members.withdraw(session.caller, invitation)
    session.show({"ok": True, "id": invitation}, "Withdrawn.")


async def accept_invitation(
    session: Session,
    invitation: Annotated[str, typer.Argument(help="The invitation's secret.")],
    name: Annotated[str | None, typer.Option(help="Your name, if you have no account yet.")] = None,
    email: Annotated[
        str | None, typer.Option(help="Your email, if you have no account yet.")
    ] = None,
) -> None:
    """Accept an invitation with --token, or create an account with --name and --email."""
    new = name is not None or email is not None
    done = await session.services.members.accept(
        None if new else session.caller,
        invitation,
        check_name(name) if name else None,
        check_email(email) if email else None,
    )
    session.show(
        {
            "person_id": done.person_id,
            "library_id": done.library_id,
            "role": done.role,
            "token": done.token,
        },
        done.token,
    )


async def change_role(
    session: Session,
    who: Who,
    role: Annotated[Role, typer.Argument(help="The new role.")],
) -> None:
    """Change a member's role, effective immediately."""
    member = await session.services.members.change_role(
        session.caller, await _find_member(session, who), role
    )
    session.show(member, f"{member.name} is {member.role} now.")


async def remove_member(session: Session, who: Who) -> None:
    """Remove a member and revoke their tokens for this library."""
    person_id = await _find_member(session, who)
    await session.services.members.remove(session.caller, person_id)
    session.show({"ok": True, "id": person_id}, f"Removed {who}.")


async def _find_member(session: Session, who: str) -> str:
    for member in await session.services.members.all(session.caller):
        if who == member.person_id or who.lower() == member.email.lower():
            return member.person_id
    raise NotFound(f"There is no member {who!r}; `commonplace member list` shows them.")


GROUP: Group = (
    "member",
    "Manage members: viewers read, members write, admins and owners also manage members.",
    {
        "list": list_members,
        "invite": invite_member,
        "invitations": list_invitations,
        "withdraw": withdraw_invitation,
        "accept": accept_invitation,
        "role": change_role,
        "remove": remove_member,
    },
)
