"""Verbs that write several rows write all of them or none, on both engines."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest

from commonplace.app import open_app
from commonplace.core.items.drafts import Draft
from commonplace.core.memory.reflection import Notes
from commonplace.core.people.accounts import CLAIM
from commonplace.core.people.authorization import digest
from commonplace.core.services import Services
from commonplace.model import Caller, CandidateState, ItemFilter
from commonplace.settings import Settings
from commonplace.store import Store, make_store

pytestmark = pytest.mark.anyio

NOTES = "Alice: We decided to rotate the refresh tokens every 30 days."


class Crash(Exception):
    """The process ends here: nothing after this point happens."""


def crash_after(store: Store, writes: int) -> Callable[[], None]:
    """Let so many transactions commit, then none; the answer lets all through again."""
    db, left = store.items._db, writes
    write = db.write

    async def counted(work: Any, /, *args: Any, **kwargs: Any) -> Any:
        nonlocal left
        if left == 0:
            raise Crash
        left -= 1
        return await write(work, *args, **kwargs)

    db.write = counted  # type: ignore[method-assign]

    def restore() -> None:
        db.write = write  # type: ignore[method-assign]

    return restore


@asynccontextmanager
async def opened(place: Settings) -> AsyncIterator[tuple[Services, Store, Caller]]:
    store = make_store(place)
    async with open_app(place, own_store=store) as app:
        await app.people.ensure_owner()
        owner = await app.access.owner()
        assert owner is not None
        yield app, store, owner


async def test_a_note_is_never_outside_the_folders_of_its_item(place: Settings) -> None:
    async with opened(place) as (app, store, owner):
        folder = await app.folders.create(owner, "Red")
        about = (
            await app.library.add(
                owner, Draft("text", "Herons", "The heron stands by the weir at dawn.")
            )
        ).item
        await app.folders.file(owner, about.id, [folder.id])
        restore = crash_after(store, 1)
        with suppress(Crash):
            await app.annotations.add(owner, about.id, "Seen twice in May.")
        restore()
        for note in await app.annotations.of(owner, about.id):
            assert note.item.folders == (folder.id,)


async def test_an_accepted_candidate_and_its_memory_are_written_together(place: Settings) -> None:
    async with opened(place) as (app, store, owner):
        await app.reflection.reflect(owner, Notes(NOTES, "Token call", persist=True, review=True))
        [candidate], _ = await app.reflection.candidates(owner)
        before = (await app.library.page(owner, ItemFilter()))[1]
        restore = crash_after(store, 1)
        with suppress(Crash):
            await app.reflection.accept(owner, candidate.id, {"title": "Rotate tokens monthly"})
        restore()
        judged = await app.reflection.candidate(owner, candidate.id)
        assert judged.queued is not None
        added = (await app.library.page(owner, ItemFilter()))[1] - before
        if judged.queued.state is CandidateState.ACCEPTED:
            assert (added, judged.proposal.title) == (1, "Rotate tokens monthly")
        else:
            assert (added, judged.proposal.title) == (0, candidate.proposal.title)


async def test_a_candidate_that_was_rejected_meanwhile_leaves_no_memory(place: Settings) -> None:
    async with opened(place) as (app, _, owner):
        await app.reflection.reflect(owner, Notes(NOTES, "Token call", persist=True, review=True))
        [candidate], _ = await app.reflection.candidates(owner)
        before = (await app.library.page(owner, ItemFilter()))[1]
        keep = app.memory.keep

        async def after_the_rejection(*args: Any, **kwargs: Any) -> Any:
            await app.reflection.reject(owner, candidate.id)
            return await keep(*args, **kwargs)

        app.memory.keep = after_the_rejection  # type: ignore[method-assign]
        with pytest.raises(Exception, match="rejected already"):
            await app.reflection.accept(owner, candidate.id, {})
        assert (await app.library.page(owner, ItemFilter()))[1] == before


async def test_a_session_grows_with_its_capture(place: Settings) -> None:
    grown = f"{NOTES}\nBob: It turns out that the old client ignores the expiry header."
    async with opened(place) as (app, store, owner):
        wish = Notes(NOTES, "Token call", session_key="call-7", persist=True)
        await app.reflection.reflect(owner, wish)
        for writes in range(5):
            restore = crash_after(store, writes)
            with suppress(Crash):
                await app.reflection.reflect(owner, replace(wish, content=grown))
            restore()
            [(session, text)] = [
                (item, await store.items.text(item))
                for item in (await app.library.page(owner, ItemFilter()))[0]
                if item.entity_type == "session"
            ]
            capture = await app.memory.capture(owner, session.id)
            assert text == capture.text
            assert session.metadata["capture_hash"] == capture.hash
        assert text == grown
        done = await app.reflection.reflect(owner, replace(wish, content=grown))
        assert [one.proposal.kind for one in done.candidates] == ["decision", "claim"]
        assert (await app.library.page(owner, ItemFilter()))[1] + (
            await app.reflection.candidates(owner)
        )[1] == 3  # the session, and each candidate once


async def test_a_session_that_grows_at_once_grows_to_the_longest(place: Settings) -> None:
    lines = [f"We decided to paint shed {n} in colour {n}." for n in range(6)]
    async with opened(place) as (app, _, owner):
        done = await asyncio.gather(
            *(
                app.reflection.reflect(
                    owner,
                    Notes("\n\n".join(lines[:count]), "Sheds", session_key="sheds", persist=True),
                )
                for count in (3, 6, 1, 5, 2, 4)
            )
        )
        assert len({one.source.item.id for one in done if one.source}) == 1
        capture = await app.memory.capture(owner, done[0].source.item.id)  # type: ignore[union-attr]
        assert capture.text == "\n\n".join(lines)
        items = (await app.library.page(owner, ItemFilter()))[1]
        assert items + (await app.reflection.candidates(owner))[1] == 1 + len(lines)


async def test_a_claimed_link_and_the_password_are_written_together(place: Settings) -> None:
    async with opened(place) as (app, store, owner):
        secret = await app.accounts.first_invitation()
        assert secret is not None
        for writes in (0, 1):
            restore = crash_after(store, writes)
            with suppress(Crash):
                await app.accounts.claim(
                    secret, "Ada", "ada@example.org", "a long enough password", about=""
                )
            restore()
            spent = not (await store.accounts.check_secret(digest(secret), CLAIM))[0]
            assert spent == (await store.accounts.password_hash(owner.person_id) is not None)


async def test_a_new_password_and_signing_out_are_written_together(place: Settings) -> None:
    async with opened(place) as (app, store, owner):
        secret = await app.accounts.first_invitation()
        assert secret is not None
        session = await app.accounts.claim(
            secret, "Ada", "ada@example.org", "a long enough password", about=""
        )
        visitor = await app.accounts.visitor(session)
        assert visitor is not None
        await app.accounts.open_session(owner.person_id, "another browser")
        before = await store.accounts.password_hash(owner.person_id)
        restore = crash_after(store, 1)
        with suppress(Crash):
            await app.accounts.change_password(
                visitor, "a long enough password", "another long password"
            )
        restore()
        changed = await store.accounts.password_hash(owner.person_id) != before
        assert len(await store.accounts.sessions(owner.person_id)) == (1 if changed else 2)


async def test_a_person_and_their_token_are_written_together(place: Settings) -> None:
    async with opened(place) as (app, store, _):
        restore = crash_after(store, 1)
        with suppress(Crash):
            await app.people.create_with_token("Bob", "bob@example.org")
        restore()
        bob = await store.accounts.find_by_email("bob@example.org")
        assert bob is None or len(await store.tokens.of_library(bob.id)) == 1
