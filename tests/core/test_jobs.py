"""What workers do with what imports bring."""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from commonplace.adapters.embed.wordllama import StaticEmbedder
from commonplace.adapters.summarize.extractive import LocalTransformer
from commonplace.core.transfer.markdown_folder import import_folder
from commonplace.errors import EmbeddingFailed, StorageFailed
from commonplace.model import ItemFilter, Job, JobState, Transformed
from tests.core.workshop import Workshop, open_workshop

pytestmark = pytest.mark.anyio


async def import_notes(shop: Workshop, folder: Path, count: int) -> None:
    for n in range(count):
        (folder / f"n{n}.md").write_text(
            f"# Note {n}\n\nOtters number {n} hold hands while they sleep on the river."
        )
    await import_folder(
        shop.app.bulk_import, shop.app.folders, shop.owner, folder, lambda done, total: None
    )


async def test_what_is_found_by_meaning_comes_before_what_is_described(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StaticEmbedder, "quick", False)
    async with open_workshop(tmp_path / "data") as shop:
        (tmp_path / "notes").mkdir()
        await import_notes(shop, tmp_path / "notes", 150)
        taken: list[str] = []
        lease = shop.app.store.jobs.lease

        async def listen(*args: Any, **kwargs: Any) -> list[Job]:
            jobs = await lease(*args, **kwargs)
            taken.extend(dict.fromkeys(job.kind for job in jobs))
            return jobs

        monkeypatch.setattr(shop.app.store.jobs, "lease", listen)
        working = asyncio.create_task(shop.app.worker.run())
        while (await shop.app.store.jobs.counts()).keys() & {"queued", "running"}:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        working.cancel()
        assert taken[:3] == ["embed"] * 3 and set(taken[3:]) == {"transform"}


async def test_nothing_is_described_while_more_is_coming(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_workshop(tmp_path / "data") as shop:
        (tmp_path / "notes").mkdir()
        await import_notes(shop, tmp_path / "notes", 3)
        coming, seen = [True] * 3, []

        async def has_new_jobs(kind: str, since: Any) -> bool:
            items, _ = await shop.app.store.items.list_page(
                shop.owner.scope, ItemFilter(), limit=9, offset=0
            )
            seen.append(any(item.summary for item in items))
            return bool(coming) and coming.pop()

        monkeypatch.setattr(shop.app.store.jobs, "has_new_jobs", has_new_jobs)
        working = asyncio.create_task(shop.app.worker.run())
        while (await shop.app.store.jobs.counts()).keys() & {"queued", "running"}:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        working.cancel()
        assert seen[:4] == [False] * 4


async def test_a_quick_embedder_that_is_down_leaves_its_work_to_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(self: StaticEmbedder, texts: Sequence[Sequence[str]]) -> list[Any]:
        raise EmbeddingFailed("no")

    async with open_workshop(tmp_path / "data") as shop:
        (tmp_path / "notes").mkdir()
        with monkeypatch.context() as patched:
            patched.setattr(StaticEmbedder, "documents", fail)
            await import_notes(shop, tmp_path / "notes", 3)
        assert await shop.app.store.sections.coverage(
            shop.owner.scope, shop.app.embedder.stamp
        ) == (0, 3)
        await shop.app.worker.run_once()
        assert await shop.app.store.sections.coverage(
            shop.owner.scope, shop.app.embedder.stamp
        ) == (3, 3)
        (tmp_path / "notes/n1.md").write_text("# Note 1\n\nHares box in spring.")
        await import_notes(shop, tmp_path / "notes", 0)
        assert await shop.app.store.sections.coverage(
            shop.owner.scope, shop.app.embedder.stamp
        ) == (3, 3)
        assert not (await shop.app.store.jobs.count_open("embed", shop.owner.scope))[0]


async def test_one_text_that_cannot_be_described_keeps_no_other_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    describe = LocalTransformer.transform

    async def fail(self: LocalTransformer, title: str, sections: Sequence[str]) -> Transformed:
        if title == "Note 3":
            raise RuntimeError("no")
        return await describe(self, title, sections)

    async with open_workshop(tmp_path / "data") as shop:
        (tmp_path / "notes").mkdir()
        await import_notes(shop, tmp_path / "notes", 10)
        gone = (
            await shop.app.store.items.list_page(
                shop.owner.scope, ItemFilter(text="Note 5"), limit=1, offset=0
            )
        )[0][0]
        monkeypatch.setattr(LocalTransformer, "transform", fail)
        monkeypatch.setattr(shop.app.store.items, "set_derived", _after_deleting(shop, gone.id))
        await shop.app.worker.run_once()
        items, _ = await shop.app.store.items.list_page(
            shop.owner.scope, ItemFilter(), limit=20, offset=0
        )
        assert {item.title for item in items if not item.key_points} == {"Note 3"} and len(
            items
        ) == 9
        [left] = await shop.app.store.jobs.list_jobs(
            shop.owner.scope, states=[JobState.QUEUED], limit=20
        )
        assert (left.kind, left.attempts, left.error) == (
            "transform",
            1,
            "Unexpected RuntimeError. See the server's log for details.",
        )


async def test_what_takes_longer_than_a_lease_is_not_given_to_another_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    describe, begun, go_on, renewed = (
        LocalTransformer.transform,
        asyncio.Event(),
        asyncio.Event(),
        asyncio.Event(),
    )

    async def slow(self: LocalTransformer, title: str, sections: Sequence[str]) -> Transformed:
        begun.set()
        await go_on.wait()
        return await describe(self, title, sections)

    async with open_workshop(tmp_path / "data") as shop:
        (tmp_path / "notes").mkdir()
        await import_notes(shop, tmp_path / "notes", 3)
        jobs, extend = shop.app.store.jobs, shop.app.store.jobs.extend
        outages = [StorageFailed("The database is busy.")]

        async def noting(*args: Any) -> None:
            if outages:
                raise outages.pop()
            await extend(*args)
            renewed.set()

        monkeypatch.setattr(LocalTransformer, "transform", slow)
        monkeypatch.setattr(jobs, "extend", noting)
        lease = partial(jobs.lease, seconds=-1)  # over at once, until it is renewed
        monkeypatch.setattr("commonplace.core.jobs.worker.RENEW_SECONDS", 0.01)
        monkeypatch.setattr(
            jobs, "lease", lambda worker, kind, limit, seconds: lease(worker, kind, limit=limit)
        )
        working = asyncio.create_task(shop.app.worker.run_once())
        async with asyncio.timeout(20):
            await begun.wait()
            await renewed.wait()
        assert await jobs.lease("another", "transform", limit=9, seconds=60) == []
        go_on.set()
        await working
        assert await jobs.counts() == {"done": 3}


def _after_deleting(shop: Workshop, item_id: str) -> Any:
    """`annotate`, but an item is deleted by somebody before the first is written."""
    annotate, deleted = shop.app.store.items.set_derived, []

    async def late(*args: Any) -> None:
        if not deleted:
            deleted.append(item_id)
            await shop.app.store.items.delete(shop.owner.scope, item_id)
        await annotate(*args)

    return late
