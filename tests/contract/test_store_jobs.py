"""The queue: leases, expiry, retries, several workers."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest

from commonplace.errors import NotFound
from commonplace.model import ItemRef, Job, JobState, Subscription, new_id, now
from commonplace.store import Store
from commonplace.store.queues.job_leases import CRASHED, CRASHES
from tests.contract.library import STAMP, Library, packed, unit

pytestmark = pytest.mark.anyio


async def queued(
    library: Library, count: int = 1, kind: str = "embed", late: float = 0
) -> list[Job]:
    """Jobs of so many items, the first the oldest."""
    jobs = []
    for n in range(count):
        item = await library.add(f"text {new_id()}")
        at = now() + timedelta(seconds=late, milliseconds=n - count)
        jobs.append(
            Job(
                id=new_id(),
                library_id=library.id,
                item_id=item.id,
                kind=kind,
                run_after=at,
                payload={"n": n},
            )
        )
        await library.store.items.update(
            library.scope(),
            item.id,
            {},
            expected_revision=None,
            sections=None,
            stamp=STAMP,
            jobs=[jobs[-1]],
        )
    return jobs


async def state(library: Library, job: Job) -> Job:
    return await library.store.jobs.get(library.scope(), job.id)


async def test_a_job_is_leased_once_oldest_first_and_finished_by_its_holder(ann: Library) -> None:
    first, second = await queued(ann, 2)
    jobs = ann.store.jobs
    assert (await state(ann, first)).state is JobState.QUEUED
    taken = await jobs.lease("w1", "embed", limit=1, seconds=60)
    assert [(j.id, j.state, j.attempts, j.payload) for j in taken] == [
        (first.id, JobState.RUNNING, 1, {"n": 0})
    ]
    assert [j.id for j in await jobs.lease("w2", "embed", limit=9, seconds=60)] == [second.id]
    assert await jobs.lease("w3", "embed", limit=9, seconds=60) == []
    await jobs.finish("w1", [first, second])
    assert (await state(ann, first)).state is JobState.DONE
    assert (await state(ann, second)).state is JobState.RUNNING, "w1 does not hold it"
    assert await jobs.counts() == {"done": 1, "running": 1}


async def test_a_lease_takes_jobs_of_one_kind_only(ann: Library) -> None:
    embed, transcribe = (await queued(ann, 1))[0], (await queued(ann, 1, "transcribe"))[0]
    taken = [
        await ann.store.jobs.lease("w", kind, limit=9, seconds=60)
        for kind in ("embed", "transcribe", "embed")
    ]
    assert [[j.id for j in jobs] for jobs in taken] == [[embed.id], [transcribe.id], []]


async def test_a_job_waits_for_its_time(ann: Library) -> None:
    await queued(ann, 1, late=3600)
    assert await ann.store.jobs.lease("w", "embed", limit=9, seconds=60) == []


async def test_a_lease_that_ran_out_is_given_to_another(ann: Library) -> None:
    job, jobs = (await queued(ann))[0], ann.store.jobs
    await jobs.lease("slow", "embed", limit=1, seconds=-1)
    taken = await jobs.lease("fresh", "embed", limit=1, seconds=60)
    assert [(j.id, j.attempts) for j in taken] == [(job.id, 2)]
    await jobs.finish("slow", [job])
    await jobs.fail("slow", job, "too late", None)
    await jobs.extend("slow", [job], -1)
    assert (await state(ann, job)).state is JobState.RUNNING
    assert await jobs.lease("third", "embed", limit=1, seconds=60) == [], (
        "the one who lost the lease could not shorten it"
    )
    await jobs.finish("fresh", [job])
    assert (await state(ann, job)).state is JobState.DONE


async def test_extending_keeps_a_lease(ann: Library) -> None:
    job, jobs = (await queued(ann))[0], ann.store.jobs
    await jobs.lease("w", "embed", limit=1, seconds=-1)
    await jobs.extend("w", [job], 60)
    assert await jobs.lease("other", "embed", limit=1, seconds=60) == []


async def test_a_failure_is_tried_again_at_its_time_or_never(ann: Library) -> None:
    job, jobs = (await queued(ann))[0], ann.store.jobs
    await jobs.lease("w", "embed", limit=1, seconds=60)
    later = now() + timedelta(hours=1)
    await jobs.fail("w", job, "no answer", later)
    waiting = await state(ann, job)
    assert (waiting.state, waiting.error, waiting.run_after) == (
        JobState.QUEUED,
        "no answer",
        later,
    )
    assert await jobs.lease("w", "embed", limit=1, seconds=60) == []
    other = (await queued(ann))[0]
    await jobs.lease("w", "embed", limit=1, seconds=60)
    await jobs.fail("w", other, "broken", now())
    assert [j.attempts for j in await jobs.lease("w", "embed", limit=1, seconds=60)] == [2]
    await jobs.fail("w", other, "broken for good", None)
    assert (await state(ann, other)).state is JobState.FAILED
    assert await jobs.lease("w", "embed", limit=1, seconds=60) == []
    assert await jobs.counts() == {"queued": 1, "failed": 1}


async def test_two_workers_never_hold_one_job(ann: Library) -> None:
    wanted = {job.id for job in await queued(ann, 30)}
    held: list[str] = []

    async def work(name: str) -> None:
        while taken := await ann.store.jobs.lease(name, "embed", limit=3, seconds=60):
            held.extend(job.id for job in taken)
            await ann.store.jobs.finish(name, taken)

    await asyncio.gather(*(work(f"w{n}") for n in range(6)))
    # SKIP LOCKED may leave a worker empty-handed while others hold all; one more round takes what that left.
    await work("last")
    assert sorted(held) == sorted(wanted)


async def test_a_job_is_seen_through_its_items_scope(ann: Library, bob: Library) -> None:
    work, home = await ann.folder("work"), await ann.folder("home")
    item = await ann.add("text", folder=work, in_kb=False)
    job = Job(id=new_id(), library_id=ann.id, item_id=item.id, kind="transcribe")
    await ann.store.items.update(
        ann.scope(), item.id, {}, expected_revision=None, sections=None, stamp=STAMP, jobs=[job]
    )
    for scope in (ann.scope(), ann.scope(work), ann.scope(home, work)):
        assert (await ann.store.jobs.get(scope, job.id)).id == job.id
    for scope in (ann.scope(home), ann.scope(kb_only=True), bob.scope()):
        with pytest.raises(NotFound):
            await ann.store.jobs.get(scope, job.id)


async def test_embedding_is_queued_once_for_what_lacks_it(ann: Library, bob: Library) -> None:
    vector = unit(range(1, 17))
    done = await ann.add("done", vectors=[vector])
    old = await ann.add("old", vectors=[vector], stamp="old/16")
    bare = await bob.add("bare\n\nbare too")
    await ann.add("waiting", job=True)
    await ann.add("outside", in_kb=False)
    jobs = ann.store.jobs
    assert await jobs.enqueue_embedding(STAMP) == 2
    assert await jobs.enqueue_embedding(STAMP) == 0
    taken = await jobs.lease("w", "embed", limit=9, seconds=60)
    assert {j.item_id for j in taken} >= {old.id, bare.id}
    assert done.id not in {j.item_id for j in taken}
    await ann.store.sections.set_vectors(
        STAMP, {bob.id: [(s, packed(vector)) for s in await bob.section_ids(bare)]}
    )
    await jobs.finish("w", taken)
    assert await jobs.enqueue_embedding(STAMP) == 2, (
        "`old` and `waiting` were finished without a vector"
    )


async def test_whether_anybody_works_is_told_by_what_was_taken_up(ann: Library) -> None:
    began = now()
    await queued(ann)
    assert not await ann.store.jobs.has_activity(ann.id, began)
    [job] = await ann.store.jobs.lease("w1", "embed", limit=1, seconds=60)
    assert await ann.store.jobs.has_activity(ann.id, began)
    await ann.store.jobs.finish("w1", [job])
    assert await ann.store.jobs.has_activity(ann.id, began)
    assert not await ann.store.jobs.has_activity(ann.id, now() + timedelta(seconds=60))


async def test_what_came_lately_is_told_until_it_is_taken_up(ann: Library) -> None:
    began, jobs = now(), ann.store.jobs
    item = await ann.add("One")
    await jobs.enqueue(
        [
            Job(new_id(), ann.id, item.id, "transform"),
            Job(new_id(), ann.id, item.id, "remove", run_after=now() + timedelta(hours=1)),
        ]
    )
    assert await jobs.has_new_jobs("transform", began)
    assert (
        not await jobs.has_new_jobs("transform", now())
        and not await jobs.has_new_jobs("embed", began)
        and not await jobs.has_new_jobs("remove", began)
    )
    await jobs.lease("w1", "transform", limit=1, seconds=60)
    assert not await jobs.has_new_jobs("transform", began)


async def test_jobs_in_scope_are_listed_and_taken_out_of_the_queue(
    ann: Library, bob: Library
) -> None:
    jobs = ann.store.jobs
    item, other = await ann.add("One"), await ann.add("Two")
    theirs = await bob.add("Theirs")
    made = [
        Job(new_id(), each.library_id, each.id, "remove", run_after=now() + timedelta(hours=1))
        for each in (item, other, theirs)
    ]
    await jobs.enqueue(made)
    listed = await jobs.list_jobs(ann.scope(), states=[JobState.QUEUED], kinds=["remove"], limit=10)
    assert {job.id for job in listed} == {job.id for job in made[:2]}
    assert [
        job.id
        for job in await jobs.list_jobs(
            ann.scope(), states=[JobState.QUEUED], kinds=["remove"], item_ids=[item.id], limit=10
        )
    ] == [made[0].id]
    assert (
        await jobs.list_jobs(ann.scope(), states=[JobState.FAILED], kinds=["remove"], limit=10)
        == []
    )
    assert await jobs.withdraw(ann.scope(), [item.id, theirs.id], "other kind") == 0
    assert await jobs.withdraw(ann.scope(), [item.id, theirs.id], "remove") == 1
    assert (
        len(await jobs.list_jobs(bob.scope(), states=[JobState.QUEUED], kinds=["remove"], limit=10))
        == 1
    )


async def test_a_job_that_ends_its_workers_is_given_up_and_harms_no_other(ann: Library) -> None:
    jobs = await queued(ann, 4)
    poison, lease = jobs[1].id, ann.store.jobs.lease
    assert len(await lease("first", "embed", limit=9, seconds=-1)) == 4, (
        "which dies with all of them"
    )
    for n in range(20):
        for taken in await lease(f"w{n}", "embed", limit=9, seconds=-1):
            if taken.id != poison:
                await ann.store.jobs.finish(f"w{n}", [taken])
    assert await ann.store.jobs.counts() == {"done": 3, "failed": 1}
    given_up = await state(ann, jobs[1])
    assert given_up.attempts == CRASHES and given_up.error == CRASHED
    await ann.store.jobs.retry(ann.scope(), given_up.item_id)
    assert [job.attempts for job in await lease("fixed", "embed", limit=9, seconds=60)] == [1]


async def test_a_recording_that_ends_its_workers_is_shown_as_failed(ann: Library) -> None:
    job = (await queued(ann, 1, "transcribe"))[0]
    await ann.store.items.update(
        ann.scope(),
        job.item_id,
        {"transcription_status": "running"},
        expected_revision=None,
        sections=None,
        stamp=STAMP,
        jobs=[],
    )
    for n in range(CRASHES + 1):
        await ann.store.jobs.lease(f"w{n}", "transcribe", limit=1, seconds=-1)
    assert (await state(ann, job)).state is JobState.FAILED
    assert (
        await ann.store.items.get(ann.scope(), ItemRef(id=job.item_id))
    ).transcription_status == "failed"


async def test_jobs_go_on_after_the_clock_was_set_back_by_a_day(ann: Library) -> None:
    waiting, held = await queued(ann, 2)
    jobs, day = ann.store.jobs, timedelta(days=1)
    await jobs.lease("other", "embed", limit=1, seconds=60)
    await jobs.fail(
        "other", waiting, "no answer", now() + day
    )  # as a clock that is ahead would have it
    await jobs.lease("lost", "embed", limit=1, seconds=int(day.total_seconds()))
    taken = [
        *await jobs.lease("w", "embed", limit=9, seconds=60),
        *await jobs.lease("w", "embed", limit=9, seconds=60),
    ]
    assert {job.id for job in taken} == {held.id, waiting.id}


async def test_what_waits_is_counted_up_to_a_bound_and_the_reason_is_found(
    ann: Library, bob: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("commonplace.store.jobs.COUNTED", 3)
    jobs = ann.store.jobs
    assert await jobs.count_open("embed", ann.scope()) == (0, None)
    await queued(ann, 6)
    await queued(bob, 2)
    [first] = await jobs.lease("w", "embed", limit=1, seconds=60)
    await jobs.fail("w", first, "It is down.", now() + timedelta(seconds=60), counted=False)
    assert await jobs.count_open("embed") == (4, "It is down.")
    assert await jobs.count_open("embed", ann.scope()) == (4, "It is down.")
    assert await jobs.count_open("embed", bob.scope()) == (2, None)


async def test_what_is_retried_is_as_young_as_a_new_job(ann: Library) -> None:
    """A source that cannot be reached is tried for a day from then on."""
    [job] = await queued(ann)
    await ann.store._db.write(lambda tx: tx.run("UPDATE jobs SET created_at = 0"))
    await ann.store.jobs.lease("w", "embed", limit=1, seconds=60)
    await ann.store.jobs.fail("w", job, "No answer.", None)
    [again] = await ann.store.jobs.retry(ann.scope(), job.item_id)
    assert again.created_at > now() - timedelta(minutes=5)


async def test_items_without_vectors_are_looked_for_a_few_at_a_time(
    ann: Library, bob: Library
) -> None:
    for library in (ann, bob):
        for n in range(3):
            await library.add(f"Note {n}")
    jobs, after, found = ann.store.jobs, ("", ""), []
    for _ in range(4):
        queued, after = await jobs.enqueue_missing(after, 2)
        found.append(queued)
    assert found == [2, 2, 2, 0] and after == ("", "")


async def open_queues(library: Library) -> list[tuple[str, str]]:
    return await library.store._db.read(
        lambda tx: tx.tuples("SELECT library_id, kind FROM job_queues ORDER BY library_id, kind")
    )


async def test_libraries_take_turns_whatever_one_has_queued(ann: Library, bob: Library) -> None:
    await queued(ann, 5)
    await queued(bob, 2)
    taken = [
        job.library_id
        for _ in range(7)
        for job in await ann.store.jobs.lease("w", "embed", limit=1, seconds=60)
    ]
    assert sorted(taken[:4]) == sorted([ann.id, bob.id] * 2) and taken[4:] == [ann.id] * 3


async def test_a_lease_fills_up_from_several_libraries(ann: Library, bob: Library) -> None:
    await queued(ann, 2)
    await queued(bob, 2)
    taken = await ann.store.jobs.lease("w", "embed", limit=3, seconds=60)
    assert len(taken) == 3 and {job.library_id for job in taken} == {ann.id, bob.id}
    await ann.store.jobs.extend("w", taken, -1)
    assert len(await ann.store.jobs.lease("x", "embed", limit=3, seconds=60)) == 1
    await ann.store.jobs.finish("w", taken)
    assert (await ann.store.jobs.counts())["done"] == 2, "one was taken over"


async def test_two_replicas_share_the_jobs_of_many_libraries(
    open_store: Callable[[], Awaitable[Store]],
) -> None:
    stores = [await open_store(), await open_store()]
    libraries = [await Library.create(stores[0], f"lib{n}") for n in range(12)]
    wanted = [job.id for library in libraries for job in await queued(library, 3)]
    held: list[str] = []

    async def work(store: Store, name: str) -> None:
        for _ in range(len(wanted)):
            taken = await store.jobs.lease(name, "embed", limit=2, seconds=60)
            held.extend(job.id for job in taken)
            await store.jobs.finish(name, taken)

    await asyncio.gather(*(work(store, f"w{n}") for n, store in enumerate(stores * 2)))
    assert sorted(held) == sorted(wanted)


async def test_a_queue_is_forgotten_when_its_jobs_are_done(ann: Library, bob: Library) -> None:
    jobs = ann.store.jobs
    await queued(ann, 2)
    [late] = await queued(bob, 1, late=3600)
    taken = await jobs.lease("w", "embed", limit=9, seconds=-1)
    assert await jobs.has_open("embed") and await open_queues(ann)
    await jobs.finish("w", taken)
    await jobs.lease("w", "embed", limit=9, seconds=60)
    assert await open_queues(ann) == [(bob.id, "embed")]
    await jobs.withdraw(bob.scope(), [late.item_id], "embed")
    assert not await jobs.has_open("embed")


async def test_jobs_that_are_restored_from_the_trash_or_a_backup_are_found(
    ann: Library, tmp_path: Path
) -> None:
    items, lease = ann.store.items, ann.store.jobs.lease
    [job] = await queued(ann)
    await items.delete(ann.scope(), job.item_id)
    assert await lease("w", "embed", limit=9, seconds=60) == []
    await items.restore(ann.scope(), ItemRef(id=job.item_id), now() - timedelta(days=1))
    assert [each.id for each in await lease("w", "embed", limit=9, seconds=-1)] == [job.id]
    await ann.store.dump(tmp_path / "backup")
    await ann.store.load(tmp_path / "backup", replace=True)
    assert [each.id for each in await lease("w", "embed", limit=9, seconds=60)] == [job.id]


async def test_a_librarys_index_is_made_by_one_worker_at_a_time(ann: Library, bob: Library) -> None:
    jobs = ann.store.jobs
    own = [Job(new_id(), ann.id, None, "index") for _ in range(3)]
    await jobs.enqueue([*own, Job(new_id(), bob.id, None, "index")])
    taken = await jobs.lease("w1", "index", limit=9, seconds=60)
    assert sorted(job.library_id for job in taken) == sorted([ann.id, bob.id])
    assert await jobs.lease("w2", "index", limit=9, seconds=60) == []
    for left in (2, 1, 0):
        [held] = [job for job in taken if job.library_id == ann.id]
        await jobs.finish("w1", [held])
        taken = await jobs.lease("w1", "index", limit=9, seconds=60)
        assert len(taken) == min(left, 1)


async def test_feeds_are_leased_by_turns_of_their_libraries(ann: Library, bob: Library) -> None:
    feeds, at = ann.store.feeds, now()
    for library, count in ((ann, 3), (bob, 1)):
        for n in range(count):
            url = f"https://feeds.example/{n}"
            feed = Subscription(new_id(), library.id, url, "", library.id, poll_at=at)
            await feeds.create(feed)
    taken = [await feeds.lease(60) for _ in range(5)]
    assert taken[4] is None
    assert {feed.library_id for feed in taken[:2] if feed} == {ann.id, bob.id}
    assert len({(feed.library_id, feed.id) for feed in taken if feed}) == 4
