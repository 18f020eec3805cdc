"""Members and invitations, on every engine."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from commonplace.core.people.tokens import NewToken, mint, new_person
from commonplace.errors import Conflict, NameTaken, NotFound
from commonplace.model import Invitation, Passkey, Person, Role, new_id, now
from commonplace.store import Store
from tests.contract.library import Library

pytestmark = pytest.mark.anyio


async def invite(
    library: Library,
    role: Role = Role.MEMBER,
    digest: str | None = None,
    days: int = 1,
    **changes: Any,
) -> Invitation:
    invitation = Invitation(
        **{
            "id": new_id(),
            "library_id": library.id,
            "role": role,
            "email": None,
            "invited_by": library.id,
            "created_at": now(),
            "expires_at": now() + timedelta(days=days),
        }
        | changes
    )
    await library.store.members.invite(invitation, digest or new_id())
    return invitation


async def accept(library: Library, invitation: Invitation, person: Person | None = None) -> Person:
    joining = person or new_person("Bo", f"{new_id()}@example.org")
    token, _ = mint(library.id, joining.id, NewToken("t", write=True))
    await library.store.members.accept(
        invitation, joining, (token, f"digest of {joining.id}"), new=person is None
    )
    return joining


async def test_whoever_accepts_is_a_member_with_a_token(ann: Library) -> None:
    invitation = await invite(ann, Role.ADMIN, digest="d", email="x@example.org")
    assert await ann.store.members.find_invitation("d") == invitation
    assert await ann.store.members.find_invitation("e") is None
    bo = await accept(ann, invitation)
    assert [(m.person_id, m.role) for m in await ann.store.members.of_library(ann.id)] == [
        (ann.id, "owner"),
        (bo.id, "admin"),
    ]
    token = await ann.store.tokens.by_digest(f"digest of {bo.id}")
    assert token is not None and (token.library_id, token.role) == (ann.id, Role.ADMIN)
    [used] = await ann.store.members.invitations(ann.id)
    assert used.accepted_at is not None and used.accepted_by == bo.id
    assert await ann.store.people.role(bo.id, bo.id) == "owner", (
        "a new person has a library of their own"
    )
    assert await ann.store.accounts.person(bo.id) == bo


async def test_what_somebody_new_signs_in_with_is_written_with_them_or_not_at_all(
    ann: Library,
) -> None:
    invitation, members, accounts = await invite(ann), ann.store.members, ann.store.accounts
    key = Passkey("key", "", "The first", b"public", 0, now())
    bo, cy, eve = (new_person(name, f"{name}@example.org") for name in ("bo", "cy", "eve"))
    await members.accept(invitation, bo, None, new=True, sign_in="a hash")
    assert await accounts.password_hash(bo.id) == "a hash"
    with pytest.raises(Conflict):
        await members.accept(invitation, eve, None, new=True, sign_in="her hash")
    assert (await accounts.password_hash(eve.id), await accounts.person(eve.id)) == (None, None)
    await members.accept(await invite(ann), cy, None, new=True, sign_in=key)
    assert [found.person_id for found in await accounts.passkeys(cy.id)] == [cy.id]


async def test_an_invitation_is_good_once_and_for_a_while(ann: Library) -> None:
    once, past = await invite(ann), await invite(ann, days=-1)
    answers = await asyncio.gather(*(accept(ann, once) for _ in range(4)), return_exceptions=True)
    assert sum(isinstance(answer, Conflict) for answer in answers) == 3
    assert len(await ann.store.members.of_library(ann.id)) == 2
    with pytest.raises(Conflict):
        await accept(ann, past)
    assert len(await ann.store.people.all()) == 2, "who was not let in was not made either"


async def test_nobody_joins_twice_or_under_somebody_elses_address(
    ann: Library, bob: Library
) -> None:
    [other] = [person for person in await ann.store.people.all() if person.id == bob.id]
    await accept(ann, await invite(ann), other)
    again = await invite(ann, digest="again")
    with pytest.raises(Conflict, match="already"):
        await accept(ann, again, other)
    with pytest.raises(NameTaken):
        token, _ = mint(ann.id, new_id(), NewToken("t"))
        await ann.store.members.accept(
            again, new_person("Not Bob", other.email.upper()), (token, "d"), new=True
        )
    unused = await ann.store.members.find_invitation("again")
    assert unused is not None and unused.accepted_at is None


async def test_a_withdrawn_invitation_is_gone(ann: Library, bob: Library) -> None:
    invitation = await invite(ann)
    assert not await ann.store.members.withdraw(bob.id, invitation.id)
    assert await ann.store.members.withdraw(ann.id, invitation.id)
    assert not await ann.store.members.withdraw(ann.id, invitation.id)
    with pytest.raises(Conflict):
        await accept(ann, invitation)


async def test_a_role_holds_for_tokens_at_once_and_removal_revokes_them(ann: Library) -> None:
    bo = await accept(ann, await invite(ann))
    elsewhere = await ann.token(digest="own", library_id=bo.id, person_id=bo.id)
    assert (await ann.store.members.change_role(ann.id, bo.id, Role.VIEWER)).role is Role.VIEWER
    token = await ann.store.tokens.by_digest(f"digest of {bo.id}")
    assert token is not None and token.role is Role.VIEWER
    await ann.store.members.remove(ann.id, bo.id)
    token = await ann.store.tokens.by_digest(f"digest of {bo.id}")
    assert token is not None and token.role is None and token.revoked_at is not None
    kept = await ann.store.tokens.by_digest("own")
    assert kept is not None and kept.id == elsewhere.id and kept.revoked_at is None
    for call in (
        ann.store.members.remove(ann.id, bo.id),
        ann.store.members.change_role(ann.id, bo.id, Role.ADMIN),
    ):
        with pytest.raises(NotFound):
            await call


async def test_who_has_no_say_any_more_has_no_invitation_to_come_back_by(ann: Library) -> None:
    bo, others = await accept(ann, await invite(ann, Role.OWNER)), await invite(ann)

    async def give() -> None:
        for role in (Role.VIEWER, Role.OWNER):
            await invite(ann, role, invited_by=bo.id)

    async def good() -> list[Role]:
        return sorted(
            each.role
            for each in await ann.store.members.invitations(ann.id)
            if each.invited_by == bo.id
        )

    await give()
    await ann.store.members.change_role(ann.id, bo.id, Role.OWNER)
    assert await good() == [Role.OWNER, Role.VIEWER]
    await ann.store.members.change_role(ann.id, bo.id, Role.ADMIN)
    assert await good() == [Role.VIEWER]
    await ann.store.members.change_role(ann.id, bo.id, Role.MEMBER)
    assert await good() == []
    await give()
    await ann.store.members.remove(ann.id, bo.id)
    assert await good() == []
    assert others in await ann.store.members.invitations(ann.id)


async def test_of_two_owners_who_leave_at_once_one_stays(store: Store, ann: Library) -> None:
    bo = await accept(ann, await invite(ann, Role.OWNER))
    answers = await asyncio.gather(
        store.members.change_role(ann.id, ann.id, Role.MEMBER),
        store.members.remove(ann.id, bo.id),
        return_exceptions=True,
    )
    assert sum(isinstance(answer, Conflict) for answer in answers) == 1
    assert [m.role for m in await store.members.of_library(ann.id)].count(Role.OWNER) == 1
