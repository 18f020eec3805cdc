"""Contents that are shared, written down by one and waited for by others; and what that costs whom."""

import asyncio
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from commonplace.errors import Conflict, NotFound
from commonplace.model import Annotation, Content, Item, ItemRef, Job, JobState, new_id, now
from commonplace.store import Store
from commonplace.store.versions import KEPT
from tests.contract.library import STAMP, Library, cut, unit

pytestmark = pytest.mark.anyio

KEY = "url:https://example.org/"
SOON = timedelta(seconds=60)


async def recording(library: Library) -> tuple[Item, Job]:
    """An item whose words are still to be written down, and the job for it."""
    item = await library.add("", key=KEY, kind="url", transcription_status="queued")
    job = Job(id=new_id(), library_id=library.id, item_id=item.id, kind="transcribe")
    await library.store.items.update(
        library.scope(), item.id, {}, expected_revision=None, sections=None, stamp=STAMP, jobs=[job]
    )
    return item, job


async def state(library: Library, item: Item, job: Job) -> tuple[Any, ...]:
    found, status = (
        await library.store.jobs.get(library.scope(), job.id),
        await library.store.items.get(library.scope(), ref(item)),
    )
    return found.state, found.error, status.transcription_status


def ref(item: Item) -> ItemRef:
    return ItemRef(id=item.id)


async def test_one_of_many_claims_it_and_may_claim_it_longer(ann: Library) -> None:
    item, _ = await recording(ann)
    contents = ann.store.contents
    won = await asyncio.gather(*(contents.claim(item, f"job {n}", now() + SOON) for n in range(8)))
    assert sum(won) == 1
    winner = f"job {won.index(True)}"
    assert await contents.claim(item, winner, now() + SOON)
    assert (await ann.store.items.get(ann.scope(), ref(item))).transcription_status == "running"
    await contents.release(item, winner)
    assert await contents.claim(item, "another", now() - SOON)
    assert await contents.claim(item, "a third, after the second's time", now() + SOON)


async def test_what_was_said_is_everybodys_and_those_who_waited_go_on(
    ann: Library, bob: Library
) -> None:
    (mine, _), (theirs, waiting) = await recording(ann), await recording(bob)
    assert mine.content_id == theirs.content_id
    store = ann.store
    await store.jobs.lease("w", "transcribe", limit=9, seconds=60)
    await store.jobs.postpone("w", waiting, now() + SOON)
    assert (await store.jobs.get(bob.scope(), waiting.id)).attempts == 0
    await store.contents.set_progress(mine, 0.25)
    assert (await store.jobs.get(bob.scope(), waiting.id)).progress == 0.25
    assert await store.jobs.running_share() == 0.25, "of the one that is running"
    await store.contents.set_text(
        mine, "quartz", [{"at": 0, "locator": {"seconds": 1}}], {"title": "T"}
    )
    said = await store.contents.get(ann.id, mine.content_id)
    assert (said.text, said.marks[0].locator, said.about) == (
        "quartz",
        {"seconds": 1},
        {"title": "T"},
    )
    assert waiting.id in [
        job.id for job in await store.jobs.lease("w2", "transcribe", limit=9, seconds=60)
    ]
    assert not await store.contents.claim(mine, "late", now() + SOON), (
        "there is nothing left to write down"
    )


async def test_giving_up_fails_all_who_wait_and_they_can_try_again(
    ann: Library, bob: Library
) -> None:
    (mine, job), (theirs, waiting) = await recording(ann), await recording(bob)
    other, _ = await ann.put("feldspar", job=True)
    await ann.store.contents.fail(mine, "no sound")
    assert await state(ann, mine, job) == (JobState.FAILED, "no sound", "failed")
    assert await state(bob, theirs, waiting) == (JobState.FAILED, "no sound", "failed")
    assert (await ann.store.jobs.counts())["queued"] == 1, "jobs of other kinds go on"
    assert [one.id for one in await bob.store.jobs.retry(bob.scope(), theirs.id)] == [waiting.id]
    assert await state(bob, theirs, waiting) == (JobState.QUEUED, None, "queued")
    assert await state(ann, mine, job) == (JobState.FAILED, "no sound", "failed")
    assert await ann.store.jobs.retry(ann.scope(), other.id) == []


async def test_passages_and_vectors_are_known_once_all_of_them_are_there(
    ann: Library, bob: Library
) -> None:
    sections = ann.store.sections
    item = await ann.add("quartz\n\nmica", title="Rocks", key=KEY, kind="url")
    content = await ann.store.contents.get(ann.id, item.content_id)
    known = partial(sections.of_content, bob.id, content)
    assert await known("Rocks", STAMP) == []
    one, two = await ann.section_ids(item)
    await sections.set_vectors(STAMP, {ann.id: [(one, bytes(32))]})
    assert await known("Rocks", STAMP) == []
    await sections.set_vectors(STAMP, {ann.id: [(two, bytes(32))]})
    assert [(s.text, s.vector) for s in await known("Rocks", STAMP)] == [
        ("quartz", bytes(32)),
        ("mica", bytes(32)),
    ]
    assert await known("Rocks", "another/16") == []
    assert await known("Stones", STAMP) == []


async def test_an_address_is_one_item_and_what_it_said_to_others_first_counts(
    ann: Library, bob: Library
) -> None:
    mine = await ann.add("quartz", title="Rocks", key=KEY, kind="url")
    assert (await ann.put("quartz", title="Other", key=KEY, kind="url"))[0].id == mine.id
    with pytest.raises(Conflict):
        await bob.put("quartz, but edited", title="Rocks", key=KEY, kind="url")
    content, item = await bob.store.items.find_by_key(bob.scope(), KEY, "document")
    assert content is not None and (content.text, item) == ("quartz", None)
    content, item = await ann.store.items.find_by_key(ann.scope(), KEY, "document")
    assert item is not None and item.id == mine.id
    assert await ann.store.items.find_by_key(
        ann.scope(), "url:https://example.org/other", "document"
    ) == (None, None)


async def renew(library: Library, item: Item, text: str) -> Item:
    return await library.store.items.replace_content(
        library.scope(),
        item.id,
        Content(new_id(), KEY, text),
        {"title": "New"},
        sections=cut(text),
        stamp=STAMP,
        jobs=(),
    )


async def test_renewing_keeps_what_was_said_before(ann: Library, bob: Library) -> None:
    item = await ann.add("quartz", title="Rocks", key=KEY, kind="url")
    after = await renew(ann, item, "mica")
    assert (after.title, await ann.store.items.text(after)) == ("New", "mica")
    assert (await ann.found("quartz"), await ann.found("mica")) == ([], ["New"])
    await renew(ann, after, "mica")
    [version] = await ann.store.versions.of_item(ann.scope(), item.id)
    assert (version.revision, version.title, version.text, version.replaced_at) == (
        1,
        "Rocks",
        "",
        after.updated_at,
    )
    assert (await ann.store.versions.get(ann.scope(), item.id, 1)).text == "quartz"
    assert await bob.store.versions.of_item(bob.scope(), item.id) == []
    with pytest.raises(NotFound):
        await bob.store.versions.get(bob.scope(), item.id, 1)
    with pytest.raises(NotFound):
        await ann.store.versions.get(ann.scope(await ann.folder("Elsewhere")), item.id, 1)
    with pytest.raises(NotFound):
        await ann.store.versions.get(ann.scope(), item.id, 2)


async def test_versions_go_with_their_item_and_the_oldest_of_many_before(ann: Library) -> None:
    item = await ann.add("text 0", key=KEY, kind="url")
    first = item.content_id
    for n in range(1, KEPT + 3):
        item = await renew(ann, item, f"text {n}")
    assert [v.revision for v in await ann.store.versions.of_item(ann.scope(), item.id)] == list(
        range(KEPT + 2, 2, -1)
    )
    with pytest.raises(NotFound):
        await ann.store.contents.get(ann.id, first)
    await ann.store.items.delete(ann.scope(), item.id, permanent=True)
    left = await ann.store._db.read(lambda tx: tx.one("SELECT count(*) AS n FROM contents"))
    assert left is not None and left["n"] == 0


async def test_versions_are_kept_for_a_year(ann: Library) -> None:
    item = await ann.add("text 0", key=KEY, kind="url")
    first = item.content_id
    item = await renew(ann, item, "text 1")
    await ann.store.versions.prune(item.updated_at)
    assert len(await ann.store.versions.of_item(ann.scope(), item.id)) == 1
    await ann.store.versions.prune(item.updated_at + timedelta(seconds=1))
    assert await ann.store.versions.of_item(ann.scope(), item.id) == []
    with pytest.raises(NotFound):
        await ann.store.contents.get(ann.id, first)
    assert await ann.store.items.text(item) == "text 1"


async def test_renewing_leaves_others_what_they_have(ann: Library, bob: Library) -> None:
    mine, theirs = (
        await ann.add("quartz", key=KEY, kind="url"),
        await bob.add("quartz", key=KEY, kind="url"),
    )
    after = await renew(ann, mine, "mica")
    assert after.content_id != theirs.content_id
    assert (await bob.store.items.text(theirs), await bob.found("quartz")) == (
        "quartz",
        ["Untitled"],
    )
    content, _ = await ann.store.items.find_by_key(ann.scope(), KEY, "document")
    assert content is not None and content.text == "mica"
    assert (await renew(bob, theirs, "mica")).content_id == after.content_id, (
        "the same text is the same content again"
    )


async def test_annotations_keep_vectors_and_revision(ann: Library) -> None:
    item = await ann.add("quartz\n\nmica", vectors=[unit([1] * 16), unit([2] * 16)])
    await ann.store.items.set_derived(
        [Annotation(item, {"summary": "Rocks.", "tags": ("a",)}, (("one",), ("two",)))]
    )
    after = await ann.store.items.get(ann.scope(), ref(item))
    assert (after.summary, after.tags, after.revision) == ("Rocks.", ("a",), item.revision)
    assert [s.key_points for s in await ann.store.sections.of_item(item)] == [("one",), ("two",)]
    assert await ann.store.sections.coverage(ann.scope(), STAMP) == (2, 2)


async def test_an_annotation_that_comes_late_leaves_what_somebody_chose(ann: Library) -> None:
    item = await ann.add("quartz")
    chosen = {"tags": ("mine",), "category": "Rocks", "metadata": {"notes": ["keep"]}}
    await ann.store.items.update(
        ann.scope(), item.id, chosen, expected_revision=None, sections=None, stamp=STAMP, jobs=()
    )
    made = {
        "summary": "A rock.",
        "tags": ("derived",),
        "category": "Other",
        "auto_tags": ("derived",),
        "metadata": {},
    }
    await ann.store.items.set_derived([Annotation(item, made)])
    after = await ann.store.items.get(ann.scope(), ref(item))
    assert {name: getattr(after, name) for name in made} == chosen | {
        "summary": "A rock.",
        "auto_tags": (),
    }


async def test_minutes_are_reserved_within_the_cap_counted_once_and_settled(
    ann: Library, bob: Library
) -> None:
    quotas = ann.store.quotas
    jobs = [Job(id=new_id(), library_id=ann.id, item_id="", kind="transcribe") for _ in range(8)]
    granted = await asyncio.gather(
        *(quotas.reserve(job, ann.id, "2031-05", 40, 100) for job in jobs)
    )
    assert sum(granted) == 2
    first = jobs[granted.index(True)]
    assert await quotas.reserve(first, ann.id, "2031-05", 50, 100), (
        "what it had before does not count against it"
    )
    assert await quotas.used_seconds(ann.id, ann.id, "2031-05") == 90
    await quotas.set_seconds(first, 12.5)
    assert await quotas.used_seconds(ann.id, ann.id, "2031-05") == 52.5
    assert (
        await quotas.used_seconds(ann.id, ann.id, "2031-06")
        == await quotas.used_seconds(bob.id, bob.id, "2031-05")
        == 0
    )
    assert await quotas.reserve(
        Job(new_id(), ann.id, "", "transcribe"), ann.id, "2031-05", 1e6, 0
    ), "0 is no cap"


async def test_a_source_is_the_newest_text_that_a_library_has_and_ends_with_the_last(
    ann: Library, bob: Library, store: Store
) -> None:
    async def source() -> str | None:
        cy = await Library.create(store)
        content, _ = await cy.store.items.find_by_key(cy.scope(), KEY, "document")
        return content.text if content else None

    mine = await ann.add("quartz", key=KEY, kind="url")
    theirs = await bob.add("quartz", key=KEY, kind="url")
    assert mine.content_id == theirs.content_id
    mine = await renew(ann, mine, "mica")
    assert await source() == "mica"
    assert (await bob.store.items.find_by_key(bob.scope(), KEY, "document"))[1] == theirs, (
        "who has an older text has the source"
    )
    await ann.store.items.delete(ann.scope(), mine.id, permanent=True)
    assert await source() == "quartz"
    await bob.store.items.delete(bob.scope(), theirs.id, permanent=True)
    assert await source() is None
    for table in ("contents", "sources", "source_libraries", "transcribing"):
        assert await store._db.read(lambda tx, t=table: tx.scalar(f"SELECT count(*) FROM {t}")) == 0


async def test_libraries_that_add_a_source_at_once_have_one_content(store: Store) -> None:
    libraries = [await Library.create(store) for _ in range(6)]
    items = await asyncio.gather(
        *(library.add("quartz", key=KEY, kind="url") for library in libraries)
    )
    assert len({item.content_id for item in items}) == 1
    await asyncio.gather(
        *(
            library.store.items.delete(library.scope(), item.id, permanent=True)
            for library, item in zip(libraries, items, strict=True)
        )
    )
    assert await store._db.read(lambda tx: tx.scalar("SELECT count(*) FROM sources")) == 0


async def test_private_text_is_never_a_source(ann: Library, bob: Library) -> None:
    mine, theirs = await ann.add("quartz"), await bob.add("quartz")
    assert mine.content_id != theirs.content_id
    with pytest.raises(NotFound):
        await bob.store.contents.get(bob.id, mine.content_id)
    assert await ann.store._db.read(lambda tx: tx.scalar("SELECT count(*) FROM sources")) == 0


async def test_addresses_that_redirect_lead_to_the_content_as_long_as_there_is_one(
    ann: Library, tmp_path: Path
) -> None:
    async def at_end() -> str | None:
        content, _ = await ann.store.items.find_by_key(
            ann.scope(), "url:https://short.example/", "document"
        )
        return content.text if content else None

    item = await ann.add("quartz", key=KEY, kind="url")
    assert await at_end() is None
    content = await ann.store.contents.get(ann.id, item.content_id)
    await ann.store.contents.redirect("url:https://short.example/", content)
    assert await at_end() == "quartz"
    await ann.store.dump(tmp_path / "backup")
    item = await renew(ann, item, "mica")
    assert await at_end() == "mica"
    await ann.store.load(tmp_path / "backup", replace=True)
    assert await at_end() == "quartz"
    await ann.store.items.delete(ann.scope(), item.id, permanent=True)
    assert await at_end() is None
