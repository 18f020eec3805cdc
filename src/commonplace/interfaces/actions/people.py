"""Actions on tokens, members and invitations, and who is asking."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from pydantic import ConfigDict, model_validator

from commonplace.interfaces.actions.action import Action
from commonplace.interfaces.actions.fields import (
    WHOLE,
    Cli,
    Email,
    Id,
    Input,
    Name,
    OneOf,
    Reference,
    RoleName,
    about,
    chars,
    number,
    patch_of,
)
from commonplace.interfaces.actions.folders import Nothing
from commonplace.interfaces.actions.shapes import Call, Field, Listing, Shape, one, said
from commonplace.model import MEGABYTE, Capability, Event, Invitation, Json, Member, Token, Usage

if TYPE_CHECKING:
    from commonplace.core.people.tokens import NewToken

INVITATION_DAYS, TOKEN_DAYS = 7, 365
ONCE = "The secret. It is shown this once"

# -- inputs


class CreateToken(Input):
    model_config = ConfigDict(json_schema_extra={"not": {"required": ["write", "capabilities"]}})

    name: Annotated[Name, about("Name of the token")]
    write: Annotated[bool | None, about("Also change things"), Cli("--write")] = None
    capabilities: Annotated[
        list[Annotated[str, OneOf(Capability)]] | None,
        about("`read` always goes with it", max_length=2),
        Cli(hidden=True),
    ] = None
    folder_ids: Annotated[
        list[Reference] | None,
        about("Only these folders, for good", min_length=1, max_length=100),
        Cli("--folder"),
    ] = None
    kb_only: Annotated[bool, about("Limit to searchable items")] = False
    expires_days: Annotated[
        Annotated[int, number(1, 36_500), WHOLE] | None,
        about("Days until it expires; null: never"),
        Cli("--expires", null="0"),
    ] = TOKEN_DAYS

    @model_validator(mode="after")
    def _check_one_field(self) -> "CreateToken":
        if {"write", "capabilities"} <= self.model_fields_set:
            raise ValueError("say `write` or `capabilities`, not both")
        return self

    @property
    def new(self) -> "NewToken":
        from commonplace.core.people.tokens import NewToken

        return NewToken(
            self.name,
            bool(self.write or "write" in (self.capabilities or ())),
            None if self.folder_ids is None else tuple(self.folder_ids),
            self.kb_only,
            self.expires_days,
        )


class OneToken(Input):
    token_id: Id


class MemberFields(Input):
    role: Annotated[RoleName, about("viewers read, members write, admins and owners also manage")]


MemberId = Annotated[Id, Cli("MEMBER", argument=True)]
ChangeMember = patch_of("ChangeMember", MemberFields, "role", person_id=(MemberId, ...))


class OneMember(Input):
    person_id: MemberId


class Invite(Input):
    role: RoleName
    email: Annotated[Email | None, about("Only the person with this email can accept it")] = None
    expires_days: Annotated[
        int, number(1, 90, "Days until it expires"), WHOLE, Cli("--expires")
    ] = INVITATION_DAYS

    @property
    def days(self) -> int:
        return self.expires_days


class OneInvitation(Input):
    invitation_id: Id


class AcceptInvitation(Input):
    token: Annotated[str, chars(1, 200, "The invitation's secret")]
    name: Annotated[Name | None, about("Of who has no account yet")] = None
    email: Annotated[
        Email | None, about("Of who has no account yet; the invitation's own when left out")
    ] = None


# -- answers


def _capabilities(token: Token, call: Call) -> list[str]:
    from commonplace.core.people.authorization import may

    return sorted(token.capabilities if token.role is None else may(token.role, token.capabilities))


TOKEN = Shape(
    "Token",
    Token,
    "id name kind",
    redirect_host=said(
        str | None, "redirect_host", "Where an OAuth client receives its codes; null: a token"
    ),
    capabilities=Field(list[str], _capabilities),
    folders="folders",
    kb_only="kb_only",
    created_at="created_at",
    expires_at="expires_at",
    revoked_at="revoked_at",
    last_used_at="last_used_at",
)
NEW_TOKEN = Shape("NewToken", None, base=TOKEN, at=0, token=said(str, 1, ONCE))
MEMBER = Shape("Member", Member, "person_id name email role")
INVITATION = Shape(
    "Invitation",
    Invitation,
    "id role email invited_by created_at expires_at accepted_at accepted_by",
)
NEW_INVITATION = Shape("NewInvitation", None, base=INVITATION, at=0, token=said(str, 1, ONCE))
ACCEPTED = Shape(
    "AcceptedInvitation",
    "commonplace.core.people.members.AcceptedInvitation",
    "person_id library_id role new_person",
    token=said(str, "token", ONCE),
)
EVENT = Shape("TokenEvent", Event, "at action target ok")


def _usage(used: Usage, cap: Usage) -> Json:
    return {
        "items": {"used": used.items, "cap": cap.items},
        "sections": {"used": used.sections, "cap": cap.sections},
        "megabytes": {
            "used": round(used.size / MEGABYTE, 3),
            "cap": cap.size // MEGABYTE,
        },
    }


ME = Shape(
    "Me",
    "commonplace.core.people.tokens.Me",
    person=Field(
        Json,
        lambda me, call: {
            "id": me.caller.person_id,
            "name": me.person.name if me.person else "",
            "email": me.person.email if me.person else "",
            "role": me.caller.role,
        },
    ),
    library=Field(Json, lambda me, call: {"id": me.caller.library_id, "name": me.library}),
    token=one(TOKEN, "token", "null: a JWT"),
    capabilities=said(frozenset[str], "caller.capabilities"),
    limits=Field(
        Json,
        lambda me, call: {name: asdict(left) for name, left in me.limits.items()},
        "What is left of each hourly limit; null: unlimited",
    ),
    usage=Field(
        Json | None,
        lambda me, call: me.usage and _usage(*me.usage),
        "What the library holds, its trash included, and its quotas (0: none); null for a token "
        "that does not see the whole library",
    ),
)

ACTIONS = (
    Action(
        "get_me",
        "Show who is asking, and what is left of the limits",
        Nothing,
        "people.me",
        ME,
        "GET /api/v1/me",
    ),
    Action(
        "list_tokens",
        "List the library's tokens",
        Nothing,
        "people.tokens",
        Listing("tokens", TOKEN),
        "GET /api/v1/tokens",
        cli="token list",
    ),
    Action(
        "create_token",
        "Create a token",
        CreateToken,
        "people.create_token",
        NEW_TOKEN,
        "POST /api/v1/tokens",
        cli="token create",
        description="`token` is the secret. Only its hash is stored, so this is the only time "
        "that it is shown.",
        status=201,
        secret="token",
        example={"name": "laptop agent", "write": True, "expires_days": 90},
    ),
    Action(
        "get_token",
        "Read a token",
        OneToken,
        "people.token",
        TOKEN,
        "GET /api/v1/tokens/{token_id}",
    ),
    Action(
        "revoke_token",
        "Revoke a token",
        OneToken,
        "people.revoke_token",
        route="DELETE /api/v1/tokens/{token_id}",
        cli="token revoke",
    ),
    Action(
        "list_token_activity",
        "List the recent activity of a token",
        OneToken,
        "people.activity",
        Listing("events", EVENT),
        "GET /api/v1/tokens/{token_id}/activity",
    ),
    Action(
        "list_members",
        "List members of the library",
        Nothing,
        "members.all",
        Listing("members", MEMBER),
        "GET /api/v1/members",
        cli="member list",
    ),
    Action(
        "change_role",
        "Change a member's role",
        ChangeMember,
        "members.change_role",
        MEMBER,
        "PATCH /api/v1/members/{person_id}",
        cli="member role",
        description="Takes effect immediately for all of their tokens. Admins cannot appoint or "
        "change owners; the last owner cannot be changed.",
    ),
    Action(
        "remove_member",
        "Remove a member",
        OneMember,
        "members.remove",
        route="DELETE /api/v1/members/{person_id}",
        cli="member role",
        description="Revokes their tokens for this library. Items that they added stay.",
    ),
    Action(
        "invite_member",
        "Invite a person to the library",
        Invite,
        "members.invite",
        NEW_INVITATION,
        "POST /api/v1/invitations",
        cli="member invite",
        status=201,
        secret="token",
        example={"role": "viewer", "email": "ada@example.org"},
    ),
    Action(
        "list_invitations",
        "List invitations",
        Nothing,
        "members.invitations",
        Listing("invitations", INVITATION),
        "GET /api/v1/invitations",
        cli="member list",
    ),
    Action(
        "withdraw_invitation",
        "Withdraw an invitation",
        OneInvitation,
        "members.withdraw",
        route="DELETE /api/v1/invitations/{invitation_id}",
    ),
    Action(
        "accept_invitation",
        "Accept an invitation",
        AcceptInvitation,
        "members.accept",
        ACCEPTED,
        "POST /api/v1/invitations/accept",
        description="Send your own token, or `name` and `email` to create an account.",
        status=201,
        secret="token",
        run=lambda services, caller, args: services.members.accept(
            caller if caller.person_id else None, args.token, args.name, args.email
        ),
    ),
)
