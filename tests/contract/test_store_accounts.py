"""How people sign in, as the store keeps it."""

from datetime import timedelta

import pytest

from commonplace.errors import NameTaken
from commonplace.model import Invitation, Passkey, Role, WebSession, new_id, now
from commonplace.store import Store
from tests.contract.library import Library

pytestmark = pytest.mark.anyio
DAY = timedelta(days=1)


async def test_a_password_is_replaced_by_the_next(store: Store, ann: Library) -> None:
    person = (await store.people.all())[0]
    assert await store.accounts.password_hash(person.id) is None
    for hashed in ("first", "second"):
        await store.accounts.set_password(person.id, hashed)
        assert await store.accounts.password_hash(person.id) == hashed


async def test_an_address_that_somebody_else_has_is_refused(
    store: Store, ann: Library, bob: Library
) -> None:
    first, second = await store.people.all()
    with pytest.raises(NameTaken):
        await store.accounts.rename(second.id, "Bob", first.email.upper())
    await store.accounts.rename(second.id, "Robert", "robert@example.org")
    found = await store.accounts.find_by_email("ROBERT@example.org")
    assert found and (found.id, found.name) == (second.id, "Robert")
    assert await store.accounts.person(second.id) == found


async def test_passkeys_belong_to_a_person(store: Store, ann: Library, bob: Library) -> None:
    first, second = await store.people.all()
    passkey = Passkey("abc", first.id, "Laptop", b"\x00\xff", 3)
    await store.accounts.add_passkey(passkey)
    await store.accounts.record_passkey_use("abc", 4)
    kept = await store.accounts.passkey("abc")
    assert kept and (kept.public_key, kept.uses, kept.used_at is not None) == (b"\x00\xff", 4, True)
    assert await store.accounts.passkeys(second.id) == []
    assert not await store.accounts.delete_passkey(second.id, "abc")
    assert await store.accounts.delete_passkey(first.id, "abc")
    assert await store.accounts.passkey("abc") is None


async def test_sessions_end(store: Store, ann: Library) -> None:
    person = (await store.people.all())[0]
    for name, lasts in (("a", DAY), ("b", DAY), ("c", DAY), ("over", -DAY)):
        await store.accounts.open_session(WebSession(name, person.id, person.id, now() + lasts))
    assert await store.accounts.session("over") is None
    await store.accounts.set_view_as("a", "some token")
    await store.accounts.extend_session("a", now() + 9 * DAY)
    found = await store.accounts.session("a")
    assert found and (found[0].view_as, found[1]) == ("some token", person)
    assert found[0].expires_at > now() + 8 * DAY
    await store.accounts.close_sessions(person.id, only="b")
    assert {session.digest for session in await store.accounts.sessions(person.id)} == {"a", "c"}
    await store.accounts.close_sessions(person.id, but="c")
    assert {session.digest for session in await store.accounts.sessions(person.id)} == {"c"}
    await store.accounts.close_sessions(person.id)
    assert await store.accounts.sessions(person.id) == []


async def test_a_secret_for_one_use_is_good_once_for_its_purpose_and_in_its_time(
    store: Store, ann: Library
) -> None:
    person = (await store.people.all())[0]
    await store.accounts.add_secret("claim", "claim", person.id, now() + DAY)
    await store.accounts.add_secret("late", "claim", person.id, now() - DAY)
    assert await store.accounts.check_secret("claim", "claim") == (True, person.id)
    assert await store.accounts.redeem_secret("late", "claim") == (False, None)
    assert await store.accounts.check_secret("claim", "passkey") == (False, None)
    assert await store.accounts.redeem_secret("claim", "claim") == (True, person.id)
    assert await store.accounts.redeem_secret("claim", "claim") == (False, None)


async def test_a_session_knows_all_libraries_of_its_person_and_turns_from_one_to_another(
    store: Store, ann: Library, bob: Library
) -> None:
    first, second = await store.people.all()
    await store.accounts.open_session(
        WebSession("a", first.id, first.id, now() + DAY, view_as="some token")
    )
    invitation = Invitation(new_id(), second.id, Role.VIEWER, None, second.id, now(), now() + DAY)
    await store.members.invite(invitation, "i")
    await store.members.accept(invitation, first, None, new=False)
    await store.accounts.switch_library("a", second.id)
    found = await store.accounts.session("a")
    assert found and (found[0].library_id, found[0].view_as) == (second.id, None)
    assert [(each.library_id, each.name, each.role) for each in found[2]] == [
        (first.id, first.name, Role.OWNER),
        (second.id, second.name, Role.VIEWER),
    ]
    await store.members.remove(second.id, first.id)
    left = await store.accounts.session("a")
    assert left and [each.library_id for each in left[2]] == [first.id]


async def test_a_library_is_named_after_its_person_until_it_gets_a_name(
    store: Store, ann: Library
) -> None:
    person = (await store.people.all())[0]
    await store.accounts.rename(person.id, "Anna", "anna@example.org")
    assert await store.members.library_name(person.id) == "Anna"
    await store.members.rename_library(person.id, "The lab")
    await store.accounts.rename(person.id, "Ann", "anna@example.org")
    assert await store.members.library_name(person.id) == "The lab"
