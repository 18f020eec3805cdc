"""Idempotency keys in the store, on both engines."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from commonplace.adapters.coordination import LocalWake
from commonplace.core.jobs.worker import Worker
from commonplace.model import Capture, Job, new_id, now
from commonplace.store import Store, idempotency
from commonplace.store.captures import insert_capture
from commonplace.store.idempotency import StoredAnswer
from tests.contract.library import Library

pytestmark = pytest.mark.anyio


class NoJobs:
    at_once = 1

    async def run(self, worker: str, jobs: Sequence[Job]) -> None:
        raise AssertionError("no jobs are queued")


def move_clock(monkeypatch: pytest.MonkeyPatch, by: timedelta) -> None:
    monkeypatch.setattr(idempotency, "now", lambda: now() + by)


async def test_the_first_call_holds_the_claim_and_later_ones_get_its_answer(
    store: Store, ann: Library
) -> None:
    keys, call = store.idempotency, (ann.id, "token", "k")
    assert await keys.claim(*call, "digest") is None
    assert await keys.claim(*call, "digest") == StoredAnswer("digest")
    await keys.finish(*call, 201, '{"id": "ä"}')
    for digest in ("digest", "another"):
        assert await keys.claim(*call, digest) == StoredAnswer("digest", 201, '{"id": "ä"}')


async def test_a_key_belongs_to_its_owner_and_library(
    store: Store, ann: Library, bob: Library
) -> None:
    for call in ((ann.id, "token"), (ann.id, "other"), (bob.id, "token")):
        assert await store.idempotency.claim(*call, "k", "digest") is None
    assert await store.idempotency.claim(ann.id, "token", "other", "digest") is None


async def test_of_calls_at_once_one_holds_the_claim(store: Store, ann: Library) -> None:
    claims = [store.idempotency.claim(ann.id, "token", "k", f"digest {n}") for n in range(12)]
    found = await asyncio.gather(*claims)
    assert found.count(None) == 1
    winner = StoredAnswer(f"digest {found.index(None)}")
    assert [answer for answer in found if answer] == [winner] * 11


async def test_a_call_that_failed_may_be_repeated(store: Store, ann: Library) -> None:
    keys, call = store.idempotency, (ann.id, "token", "k")
    assert await keys.claim(*call, "digest") is None
    await keys.release(*call)
    assert await keys.claim(*call, "another") is None
    await keys.finish(*call, 200, "{}")
    await keys.release(*call)
    await keys.finish(*call, 500, "late")
    assert await keys.claim(*call, "third") == StoredAnswer("another", 200, "{}")


async def test_answers_expire_after_a_day(
    store: Store, ann: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = store.idempotency
    for key in ("a", "b"):
        assert await keys.claim(ann.id, "token", key, "digest") is None
        await keys.finish(ann.id, "token", key, 200, "{}")
    move_clock(monkeypatch, timedelta(hours=23, minutes=59))
    assert await keys.claim(ann.id, "token", "a", "digest") == StoredAnswer("digest", 200, "{}")
    move_clock(monkeypatch, timedelta(hours=24, seconds=1))
    assert await keys.claim(ann.id, "token", "a", "later") is None
    left = await store._db.read(lambda tx: tx.all("SELECT * FROM idempotency_keys"))
    assert [row["key"] for row in left] == ["a"]  # also "b" was deleted


async def test_workers_delete_answers_even_if_no_other_call_follows(
    store: Store, ann: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    for owner, age in (("old", timedelta(hours=24, seconds=1)), ("new", timedelta(hours=23))):
        move_clock(monkeypatch, -age)
        assert await store.idempotency.claim(ann.id, owner, "k", "digest") is None
        await store.idempotency.finish(ann.id, owner, "k", 200, '{"title": "deleted since"}')
    move_clock(monkeypatch, timedelta())
    await Worker(store, LocalWake(), {"embed": NoJobs()}).run_once()
    left = await store._db.read(lambda tx: tx.all("SELECT * FROM idempotency_keys"))
    assert [row["owner"] for row in left] == ["new"]


async def test_a_claim_whose_process_died_is_taken_over(
    store: Store, ann: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = store.idempotency
    for key in ("a", "b"):
        assert await keys.claim(ann.id, "token", key, "digest") is None
    move_clock(monkeypatch, timedelta(minutes=9))
    assert await keys.claim(ann.id, "token", "a", "digest") == StoredAnswer("digest")
    move_clock(monkeypatch, timedelta(minutes=10, seconds=1))
    assert await keys.claim(ann.id, "token", "a", "later") is None
    assert await keys.claim(ann.id, "token", "a", "later") == StoredAnswer("later")
    await keys.finish(ann.id, "token", "b", 200, "{}")  # slow, but nobody took it over
    assert await keys.claim(ann.id, "token", "b", "later") == StoredAnswer("digest", 200, "{}")


async def test_keys_are_deleted_with_the_library_and_with_their_owner(
    store: Store, ann: Library, bob: Library
) -> None:
    token = await ann.token()
    for library, owner in ((ann, "token"), (bob, ann.id), (bob, token.id), (bob, bob.id)):
        assert await store.idempotency.claim(library.id, owner, "k", "digest") is None
    await store.people.delete(ann.id)
    left = await store._db.read(lambda tx: tx.all("SELECT * FROM idempotency_keys"))
    assert [(row["library_id"], row["owner"]) for row in left] == [(bob.id, bob.id)]


async def test_a_backup_carries_the_answers_of_calls_and_captures(
    store: Store, ann: Library, tmp_path: Path
) -> None:
    item = await ann.add("said so")
    capture = Capture(new_id(), ann.id, item.id, "title", "said so", "me", "k")
    capture = replace(capture, answer={"conflicts": ["ä"]})
    await store._db.write(insert_capture, capture)
    assert await store.captures.of_item(ann.scope(), item.id) == capture
    assert await store.idempotency.claim(ann.id, "token", "k", "digest") is None
    await store.idempotency.finish(ann.id, "token", "k", 200, "{}")
    await store.dump(tmp_path / "backup")
    await store.load(tmp_path / "backup", replace=True)
    assert await store.captures.by_key(ann.id, "me", "k") == capture
    answer = await store.idempotency.claim(ann.id, "token", "k", "digest")
    assert answer == StoredAnswer("digest", 200, "{}")
