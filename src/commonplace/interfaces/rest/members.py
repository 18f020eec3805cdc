"""Members of a library, and invitations to join it."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field
from typing_extensions import TypedDict

from commonplace.core.people.members import INVITATION_DAYS
from commonplace.interfaces.actions import people as people_shapes
from commonplace.interfaces.actions.items import Email, Input, Name, whole_number
from commonplace.interfaces.rest.routes import OK, ApiRequest, Id, Ok, api_router
from commonplace.model import Role

router = api_router("members")
RoleName = Literal["owner", "admin", "member", "viewer"]


class Members(TypedDict):
    members: list[people_shapes.Member]
    total: int


@router.get("/members", summary="List members of the library")
async def list_members(api: ApiRequest) -> Members:
    members = await api.services.members.all(api.caller)
    return {"members": [people_shapes.member(member) for member in members], "total": len(members)}


class RoleChange(Input):
    role: Annotated[
        RoleName,
        Field(
            description="viewers read, members write, admins and owners also say who belongs to it"
        ),
    ]


@router.patch("/members/{person_id}", summary="Change a member's role")
async def change_role(api: ApiRequest, person_id: Id, body: RoleChange) -> people_shapes.Member:
    """Takes effect immediately for all of their tokens. Admins cannot appoint or change owners; the
    last owner cannot be changed."""
    return people_shapes.member(
        await api.services.members.change_role(api.caller, person_id, Role(body.role))
    )


@router.delete("/members/{person_id}", summary="Remove a member")
async def remove_member(api: ApiRequest, person_id: Id) -> Ok:
    """Revokes their tokens for this library. Items that they added stay."""
    await api.services.members.remove(api.caller, person_id)
    return OK


class InvitationRequest(Input):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"role": "viewer", "email": "ada@example.org"}]}
    )

    role: RoleName
    email: Annotated[
        Email | None,
        Field(
            description="Only the person with this address can accept it; left out: whoever has "
            "the secret"
        ),
    ] = None
    expires_days: Annotated[int, Field(ge=1, le=90), BeforeValidator(whole_number)] = (
        INVITATION_DAYS
    )


class NewInvitation(people_shapes.Invitation):
    token: Annotated[str, Field(description="The secret to send on. It is shown this once")]


class Invitations(TypedDict):
    invitations: list[people_shapes.Invitation]
    total: int


@router.post("/invitations", status_code=201, summary="Invite a person to the library")
async def invite(api: ApiRequest, body: InvitationRequest) -> NewInvitation:
    invitation, secret = await api.services.members.invite(
        api.caller, Role(body.role), body.email, body.expires_days
    )
    return {**people_shapes.invitation(invitation), "token": secret}


@router.get("/invitations", summary="List invitations")
async def list_invitations(api: ApiRequest) -> Invitations:
    invitations = await api.services.members.invitations(api.caller)
    return {
        "invitations": [people_shapes.invitation(invitation) for invitation in invitations],
        "total": len(invitations),
    }


@router.delete("/invitations/{invitation_id}", summary="Withdraw an invitation")
async def withdraw(api: ApiRequest, invitation_id: Id) -> Ok:
    await api.services.members.withdraw(api.caller, invitation_id)
    return OK


class AcceptRequest(Input):
    token: Annotated[
        str, Field(min_length=1, max_length=200, description="The invitation's secret")
    ]
    name: Annotated[Name | None, Field(description="Of who has no account yet")] = None
    email: Annotated[
        Email | None,
        Field(description="Of who has no account yet; the invitation's own when left out"),
    ] = None


class AcceptedInvitation(TypedDict):
    person_id: str
    library_id: str
    role: RoleName
    token: Annotated[str, Field(description="A token for that library. It is shown this once")]
    new_person: bool


@router.post("/invitations/accept", status_code=201, summary="Accept an invitation")
async def accept(api: ApiRequest, body: AcceptRequest) -> AcceptedInvitation:
    """Send your own token, or `name` and `email` to create an account."""
    caller = api.caller if api.caller.person_id else None
    done = await api.services.members.accept(caller, body.token, body.name, body.email)
    return {
        "person_id": done.person_id,
        "library_id": done.library_id,
        "role": done.role.value,
        "token": done.token,
        "new_person": done.new_person,
    }
