"""People, tokens and the activity log."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest

from commonplace.database import Tx
from commonplace.errors import Conflict, NameTaken
from commonplace.model import Capability, Event, Invitation, Person, Role, WebSession, new_id, now
from commonplace.store import Store
from tests.contract.library import Library

pytestmark = pytest.mark.anyio


async def test_a_person_owns_a_library_of_their_own(store: Store) -> None:
    person = Person(id=new_id(), name="Ann", email="ann@example.com", created_at=now())
    await store.people.create(person)
    assert await store.people.all() == [person]
    assert await store.people.role(person.id, person.id) == "owner"
    assert await store.people.role(new_id(), person.id) is None
    assert await store.people.role(person.id, new_id()) is None


async def test_an_address_belongs_to_one_person_whatever_its_case(store: Store) -> None:
    await store.people.create(
        Person(id=new_id(), name="Ann", email="ann@example.com", created_at=now())
    )
    with pytest.raises(NameTaken, match="ANN@example"):
        await store.people.create(
            Person(id=new_id(), name="Other", email="ANN@example.com", created_at=now())
        )
    assert len(await store.people.all()) == 1


async def test_a_token_is_found_by_its_digest_as_it_was_made(ann: Library) -> None:
    work, home = await ann.folder("work"), await ann.folder("home")
    made = await ann.token(
        work,
        home,
        digest="d1",
        name="scoped",
        kb_only=True,
        expires_at=now() + timedelta(days=1),
        capabilities=frozenset({Capability.READ, Capability.WRITE}),
    )
    whole = await ann.token(digest="d2", capabilities=frozenset({Capability.READ}))
    assert await ann.store.tokens.by_digest("d1") == made
    assert await ann.store.tokens.by_digest("d2") == whole
    assert whole.folders is None
    assert await ann.store.tokens.by_digest("d3") is None


async def test_tokens_are_listed_and_revoked_within_their_library(
    ann: Library, bob: Library
) -> None:
    tokens = ann.store.tokens
    first, second, other = (
        await ann.token(digest="d1"),
        await ann.token(digest="d2"),
        await bob.token(),
    )
    assert [t.id for t in await tokens.of_library(ann.id)] == [first.id, second.id]
    assert not await tokens.revoke(ann.id, other.id)
    assert await tokens.revoke(ann.id, first.id)
    assert not await tokens.revoke(ann.id, first.id), "a second time changes nothing"
    revoked = await tokens.by_digest("d1")
    assert revoked is not None and revoked.revoked_at is not None
    assert [t.revoked_at for t in await tokens.of_library(bob.id)] == [None]


async def test_what_becomes_of_a_token_elsewhere_is_known_at_once(
    ann: Library, open_store: Callable[[], Awaitable[Store]]
) -> None:
    here, elsewhere = ann.store, await open_store()
    folder = await ann.folder("work")
    token = await ann.token(folder, digest="d1")
    assert await here.tokens.by_digest("d1") == await here.tokens.by_digest("d1") == token
    assert await here.tokens.by_digest("d2") is None
    await elsewhere.tokens.create(replace(token, id=new_id(), folders=None), "d2")
    assert await here.tokens.by_digest("d2") is not None
    assert await elsewhere.tokens.revoke(ann.id, token.id)
    revoked = await here.tokens.by_digest("d1")
    assert revoked is not None and revoked.revoked_at is not None
    assert await here.tokens.revoke(ann.id, (await here.tokens.by_digest("d2") or token).id)
    assert (await here.tokens.by_digest("d2") or token).revoked_at is not None


async def test_what_becomes_of_a_token_is_known_in_every_thread_that_asks(ann: Library) -> None:
    tokens, kept = ann.store.tokens, await ann.token(digest="d1")

    def is_good() -> bool:
        """As a program does that runs a loop in a thread of its own."""
        found = asyncio.run(tokens.by_digest("d1"))
        return found is not None and found.revoked_at is None

    assert await asyncio.to_thread(is_good)
    assert (await tokens.by_digest("d1") or kept).revoked_at is None
    await tokens.revoke(ann.id, kept.id)
    with ThreadPoolExecutor(1) as another:
        assert not another.submit(is_good).result()


async def test_activity_is_newest_first_and_moves_last_use(ann: Library, bob: Library) -> None:
    tokens, token = ann.store.tokens, await ann.token(digest="d1")
    start = now()
    events = [
        Event(
            ann.id,
            token.id,
            f"action {n}",
            "item" if n else None,
            n != 1,
            start + timedelta(seconds=n),
        )
        for n in range(3)
    ]
    stranger = Event(bob.id, token.id, "not bob's token", None, True, start)
    await tokens.record([events[2], events[0], events[1], stranger])
    assert await tokens.activity(ann.id, token.id, 10) == events[::-1]
    assert await tokens.activity(ann.id, token.id, 1) == [events[2]]
    assert await tokens.activity(bob.id, token.id, 10) == []
    assert await tokens.by_digest("d1") == replace(token, last_used_at=events[2].at)
    await tokens.record([])


async def test_the_log_keeps_the_newest_thousand_lines(ann: Library) -> None:
    token, start = await ann.token(), now()
    events = [
        Event(ann.id, token.id, str(n), None, True, start + timedelta(milliseconds=n))
        for n in range(1005)
    ]
    await ann.store.tokens.record(events[:900])
    await ann.store.tokens.record(events[900:])
    kept = await ann.store.tokens.activity(ann.id, token.id, 5000)
    assert [e.action for e in kept] == [str(n) for n in reversed(range(5, 1005))]


def _naming(tx: Tx, name: str) -> set[str]:
    """The columns of all tables that have a name in some row."""
    columns = (
        """SELECT m.name, c.name FROM sqlite_master AS m, pragma_table_info(m.name) AS c
           WHERE m.type = 'table'"""
        if tx.engine == "sqlite"
        else """SELECT table_name::text, column_name::text FROM information_schema.columns
                WHERE table_schema = current_schema()"""
    )
    return {
        f"{table}.{column}"
        for table, column in tx.tuples(columns)
        if tx.one(f"SELECT 1 FROM {table} WHERE CAST({column} AS TEXT) = :name", name=name)
    }


async def test_a_person_goes_with_their_library_once_it_is_empty_and_theirs_alone(
    store: Store, ann: Library, bob: Library
) -> None:
    await bob.folder("work")
    item = await bob.add("something")
    await bob.token(digest="bob's own")
    await ann.token(digest="bob's in ann's", person_id=bob.id)
    invitation = Invitation(
        new_id(), bob.id, Role.VIEWER, None, bob.id, now(), now() + timedelta(days=1)
    )
    await store.members.invite(invitation, "i")
    [guest] = [person for person in await store.people.all() if person.id == ann.id]
    await store.members.accept(invitation, guest, None, new=False)
    await store.accounts.open_session(WebSession("a", ann.id, bob.id, now() + timedelta(days=1)))
    with pytest.raises(Conflict, match="other members"):
        await store.people.delete(bob.id)
    await store.members.remove(bob.id, ann.id)
    with pytest.raises(Conflict, match="added"):
        await store.people.delete(bob.id)
    await store.items.delete(bob.scope(), item.id)
    with pytest.raises(Conflict, match="added"):  # it is in the trash
        await store.people.delete(bob.id)
    assert await store.trash.delete_some(bob.id) == 1
    await store.people.delete(bob.id)
    assert await store._db.read(_naming, bob.id) == set()
    assert [person.id for person in await store.people.all()] == [ann.id]
    for digest in ("bob's own", "bob's in ann's"):
        assert await store.tokens.by_digest(digest) is None
    assert await store.folders.list_folders(bob.scope()) == []
    session = await store.accounts.session("a")
    assert session is not None and session[0].library_id == ann.id, (
        "who was there once is not signed out"
    )
