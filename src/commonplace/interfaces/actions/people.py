"""Answers about tokens, members, invitations and their events."""

from typing import Literal

from typing_extensions import TypedDict

from commonplace import model
from commonplace.core.people.authorization import may
from commonplace.interfaces.actions.items import Moment, moment, optional_moment


class Token(TypedDict):
    id: str
    name: str
    capabilities: list[str]
    folders: list[str] | None
    kb_only: bool
    created_at: Moment
    expires_at: Moment | None
    revoked_at: Moment | None
    last_used_at: Moment | None


def token(value: model.Token) -> Token:
    capabilities = value.capabilities if value.role is None else may(value.role, value.capabilities)
    return {
        "id": value.id,
        "name": value.name,
        "capabilities": sorted(capabilities),
        "folders": None if value.folders is None else sorted(value.folders),
        "kb_only": value.kb_only,
        "created_at": moment(value.created_at),
        "expires_at": optional_moment(value.expires_at),
        "revoked_at": optional_moment(value.revoked_at),
        "last_used_at": optional_moment(value.last_used_at),
    }


class Member(TypedDict):
    person_id: str
    name: str
    email: str
    role: Literal["owner", "admin", "member", "viewer"]


def member(value: model.Member) -> Member:
    return {
        "person_id": value.person_id,
        "name": value.name,
        "email": value.email,
        "role": value.role.value,
    }


class Invitation(TypedDict):
    id: str
    role: Literal["owner", "admin", "member", "viewer"]
    email: str | None
    invited_by: str
    created_at: Moment
    expires_at: Moment
    accepted_at: Moment | None
    accepted_by: str | None


def invitation(value: model.Invitation) -> Invitation:
    return {
        "id": value.id,
        "role": value.role.value,
        "email": value.email,
        "invited_by": value.invited_by,
        "created_at": moment(value.created_at),
        "expires_at": moment(value.expires_at),
        "accepted_at": optional_moment(value.accepted_at),
        "accepted_by": value.accepted_by,
    }


class Event(TypedDict):
    at: Moment
    action: str
    target: str | None
    ok: bool


def event(value: model.Event) -> Event:
    return {"at": moment(value.at), "action": value.action, "target": value.target, "ok": value.ok}
