"""Captures by the beginning of their keys, and candidates: decided once, gone with what they quote, on both engines."""

import asyncio
from dataclasses import replace

import pytest

from commonplace.errors import Conflict, NotFound
from commonplace.model import (
    Candidate,
    CandidateState,
    Capture,
    Content,
    Item,
    ItemFilter,
    ItemRef,
    Proposal,
    Quote,
    new_id,
    new_public_id,
)
from commonplace.store.captures import insert_capture
from tests.contract.library import STAMP, Library

pytestmark = pytest.mark.anyio

SAID = Proposal("decision", "Use é", "We use é.", 0.8, "says so", (Quote(3, 12, "We use é."),))


async def queued(library: Library, source: Item, owner: str = "me") -> Candidate:
    candidate = Candidate(new_id(), library.id, source.id, owner, SAID)
    await library.store.candidates.put([candidate])
    return candidate


async def test_what_is_queued_comes_back_whole_to_whom_it_belongs(
    ann: Library, bob: Library
) -> None:
    source = await ann.add("notes", entity_type="session")
    mine, other = await queued(ann, source), await queued(ann, source, "somebody")
    candidates = ann.store.candidates
    assert await candidates.get(ann.id, None, mine.id) == mine
    assert await candidates.get(ann.id, "me", mine.id) == mine
    for library_id, owner in ((ann.id, "somebody"), (bob.id, None), (bob.id, "me")):
        with pytest.raises(NotFound):
            await candidates.get(library_id, owner, mine.id)
    assert (await candidates.list_page(ann.id, "me", "pending", limit=10, offset=0)) == ([mine], 1)
    assert {
        one.id for one in (await candidates.list_page(ann.id, None, None, limit=10, offset=0))[0]
    } == {mine.id, other.id}
    assert await candidates.list_page(bob.id, None, None, limit=10, offset=0) == ([], 0)
    await candidates.put([replace(mine, proposal=replace(SAID, title="Other"))])
    assert await candidates.get(ann.id, None, mine.id) == mine


async def test_a_candidate_is_decided_once(ann: Library) -> None:
    candidate = await queued(ann, await ann.add("notes"))
    candidates = ann.store.candidates
    assert (
        await candidates.change(ann.id, None, candidate.id, replace(SAID, title="Better"), None)
    ).proposal.title == "Better"
    decisions = await asyncio.gather(
        *(
            candidates.decide(ann.scope(), None, candidate.id, state)
            for state in (CandidateState.ACCEPTED, CandidateState.REJECTED) * 3
        ),
        return_exceptions=True,
    )
    assert sum(isinstance(one, Candidate) for one in decisions) == 1
    assert sum(isinstance(one, Conflict) for one in decisions) == 5
    with pytest.raises(Conflict):
        await candidates.change(ann.id, None, candidate.id, SAID, None)


async def test_a_candidate_goes_with_what_it_quotes_and_with_what_it_became(ann: Library) -> None:
    source, made = await ann.add("notes"), await ann.add("memory")
    first, second = await queued(ann, source), await queued(ann, source)
    await ann.store.candidates.decide(ann.scope(), None, first.id, CandidateState.ACCEPTED, made.id)
    await ann.store.items.delete(ann.scope(), made.id)
    assert (await ann.store.candidates.list_page(ann.id, None, None, limit=10, offset=0))[0] == [
        second
    ]
    await ann.store.items.delete(ann.scope(), source.id)
    assert await ann.store.candidates.list_page(ann.id, None, None, limit=10, offset=0) == ([], 0)


async def test_captures_are_found_by_how_their_keys_begin(ann: Library) -> None:
    async def keep(key: str, owner: str = "me") -> None:
        item = Item(new_id(), ann.id, new_public_id(), new_id(), "session", "text", key)
        await ann.store.items.add(
            item,
            Content(new_id(), new_id(), key),
            [],
            scope=ann.scope(),
            folder_id=None,
            stamp=STAMP,
            jobs=[],
            capture=Capture(new_id(), ann.id, item.id, key, key, owner, key),
            once=False,
        )

    for key in ("a:1", "a:1:x", "a:1:y", "a:10", "a%1:x"):
        await keep(key)
    await keep("a:1:z", "somebody")
    assert [one.text for one in await ann.store.captures.by_prefix(ann.id, "me", "a:1:")] == [
        "a:1:x",
        "a:1:y",
    ]
    with pytest.raises(Conflict):
        await keep("a:1")
    assert (await ann.store.items.list_page(ann.scope(), ItemFilter(), limit=20, offset=0))[
        1
    ] == 6  # nothing is left of what was refused


async def test_captures_are_looked_through_newest_first_and_only_in_scope(
    ann: Library, bob: Library
) -> None:
    folder = await ann.folder("work")

    async def keep(text: str, folder_id: str | None = None) -> None:
        item = Item(new_id(), ann.id, new_public_id(), new_id(), "decision", "text", text)
        await ann.store.items.add(
            item,
            Content(item.content_id, item.id, text),
            [],
            scope=ann.scope(),
            folder_id=folder_id,
            stamp=STAMP,
            jobs=(),
            capture=Capture(new_id(), ann.id, item.id, text, text, "me"),
            once=False,
        )

    for text in ("first", "second", "third"):
        await keep(text, folder if text == "second" else None)
    page = ann.store.captures.list_page
    found, total = await page(ann.scope(), limit=2, offset=0)
    assert ([one.text for one in found], total) == (["third", "second"], 3)
    assert [one.text for one in (await page(ann.scope(), limit=2, offset=2))[0]] == ["first"]
    found, total = await page(ann.scope(folder), limit=9, offset=0)
    assert ([one.text for one in found], total) == (["second"], 1)
    assert await page(bob.scope(), limit=9, offset=0) == ([], 0)


async def test_what_is_deleted_where_a_token_looks_is_forgotten_for_those_who_see_it_no_more(
    ann: Library,
) -> None:
    work, other = await ann.folder("work"), await ann.folder("other")
    blind, sighted = await ann.token(work), await ann.token(work, other)
    item = await ann.add("notes", folder=work)
    await ann.store.items.file(ann.scope(), ItemRef(id=item.id), [other], token_id=None)
    kept = [
        Capture(new_id(), ann.id, item.id, "said", "so", owner, "k")
        for owner in (blind.id, sighted.id, "me")
    ]
    for capture in kept:
        await ann.store._db.write(insert_capture, capture)
    await queued(ann, item, blind.id)
    left = [await queued(ann, item, owner) for owner in (sighted.id, "me")]
    await ann.store.items.delete(ann.scope(work), item.id)
    assert [await ann.store.captures.by_key(ann.id, capture.owner, "k") for capture in kept] == [
        None,
        *kept[1:],
    ]
    said = (await ann.store.captures.list_page(ann.scope(other), limit=9, offset=0))[0]
    assert {capture.id: replace(capture, idempotency_key="k") for capture in said} == {
        capture.id: capture for capture in kept
    }
    remaining = (await ann.store.candidates.list_page(ann.id, None, None, limit=9, offset=0))[0]
    assert {one.id for one in remaining} == {one.id for one in left}
