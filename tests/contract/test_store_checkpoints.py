"""A process that starts on what another one kept in a file answers as if it had read all rows, whatever became of either."""

import asyncio
import gzip
import os
import shutil
import stat
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings, strategies as st

from commonplace.model import EVERYTHING
from commonplace.search_index import (
    change_log,
    checkpoint_writer,
    library_index,
    postings,
)
from commonplace.settings import Settings
from commonplace.store import Store, make_store
from tests.contract.library import STAMP, Library, packed, unit
from tests.contract.oracle import Oracle
from tests.contract.world import World, operations

pytestmark = pytest.mark.anyio
UP = unit([1, *[0] * 15])


@pytest.fixture
def place(data_dir: Path) -> Settings:
    """Only SQLite has an index in memory."""
    return Settings(data_dir=data_dir)


@pytest.fixture(autouse=True)
def at_every_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("commonplace.store.CHECKPOINT_SECTIONS", 1)
    monkeypatch.setattr(library_index, "KEEP_SHARE", 0)


@pytest.fixture
def read_all(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Libraries, each time that one is read row by row."""
    read: list[str] = []
    reload = library_index.LibraryIndex._reload
    monkeypatch.setattr(
        library_index.LibraryIndex,
        "_reload",
        lambda self, tx: (read.append(self._library_id), reload(self, tx)),
    )
    return read


@asynccontextmanager
async def process(place: Settings) -> AsyncIterator[Store]:
    store = make_store(place)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def found(place: Settings, library: Library) -> list[str]:
    """By another process: titles that have the word, all of which are as near as can be."""
    async with process(place) as store:
        other = Library(store, library.id)
        titles = await other.found("quartz")
        near = await store.sections.nearest(library.scope(), UP, STAMP, 100)
        passages = await store.sections.passages(library.scope(), [hit.section_id for hit in near])
        assert sorted(p.title for p in passages) == sorted(titles)
        assert all(hit.score > 0.99 for hit in near)
        return sorted(titles)


async def quartz(library: Library, *titles: str) -> None:
    for title in titles:
        await library.add(f"quartz {title}", title=title, vectors=[UP])


def file_of(place: Settings, library: Library) -> Path:
    return place.data_dir / "search_index" / f"{library.id}.index"


async def write(library: Library, sql: str) -> None:
    await library.store._db.write(lambda tx: tx.run(sql))


@pytest.mark.slow
@given(steps=operations, kept=st.lists(st.booleans(), min_size=10, max_size=10))
@settings(max_examples=settings.default.max_examples // 3)
async def test_it_answers_as_the_oracle_does_after_any_changes_between_two_starts(
    place: Settings,
    store: Store,
    read_all: list[str],
    steps: list[tuple[str, int, int]],
    kept: list[bool],
) -> None:
    read_all.clear()
    world = await World.create(store, Oracle(), seed=len(steps))
    await world.add(3, 0)
    for step, keeps in zip([("add", 1, 1), *steps], [True, *kept], strict=False):
        await world.apply(*step)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(library_index, "KEEP_SHARE", 0 if keeps else 100)
            async with process(place) as other:
                await world.check(other)
    assert len(read_all) == 1, "only by the first of them"


async def test_what_came_and_went_between_two_starts_is_seen(
    place: Settings, ann: Library, read_all: list[str]
) -> None:
    await quartz(ann, "a", "b", "c")
    assert await found(place, ann) == ["a", "b", "c"]
    gone = await ann.add("quartz d", title="d", vectors=[UP])
    assert await found(place, ann) == ["a", "b", "c", "d"]
    await ann.store.items.delete(ann.scope(), gone.id)
    await quartz(ann, "e")
    assert await found(place, ann) == ["a", "b", "c", "e"]
    assert read_all == [ann.id]


@pytest.fixture
async def kept(place: Settings, ann: Library) -> bytes:
    await quartz(ann, "a", "b")
    await found(place, ann)
    await quartz(ann, "c")
    return file_of(place, ann).read_bytes()


DAMAGED: list[Callable[[bytes, int], bytes]] = [
    lambda kept, at: kept[:at],
    lambda kept, at: kept[at:],
    lambda kept, at: kept + kept[at:],
    lambda kept, at: kept[:at] + bytes([kept[at] ^ 1 << at % 8]) + kept[at + 1 :],
    lambda kept, at: kept[:at] + bytes(len(kept) - at),
    lambda kept, at: bytes(at),
    lambda kept, at: b"\xff" * at,
]


@given(damage=st.sampled_from(DAMAGED), where=st.integers(0, 10**6))
async def test_a_damaged_file_is_left_unused(
    place: Settings,
    ann: Library,
    kept: bytes,
    read_all: list[str],
    damage: Callable[[bytes, int], bytes],
    where: int,
) -> None:
    damaged = damage(kept, where % len(kept))
    file_of(place, ann).write_bytes(damaged)
    read_all.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library_index.LibraryIndex, "checkpoint_state", lambda *_: None)
        assert await found(place, ann) == ["a", "b", "c"]
    if len(damaged) < len(kept):
        assert read_all == [ann.id] or damaged == kept


async def test_a_file_of_another_library_is_left_unused(
    place: Settings, ann: Library, bob: Library, kept: bytes
) -> None:
    await quartz(bob, "z")
    assert await found(place, bob) == ["z"]
    file_of(place, bob).write_bytes(kept)
    assert await found(place, bob) == ["z"]


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM checkpoints",
        "UPDATE checkpoints SET migrations = migrations - 1",
    ],
)
async def test_a_file_that_the_database_does_not_know_or_is_ahead_of_is_left_unused(
    place: Settings, ann: Library, bob: Library, kept: bytes, read_all: list[str], change: str
) -> None:
    read_all.clear()
    await quartz(bob, "z")
    await write(ann, change)
    assert await found(place, ann) == ["a", "b", "c"]
    assert read_all == [ann.id]


async def test_only_what_was_forgotten_of_the_library_itself_leaves_its_file_unused(
    place: Settings,
    ann: Library,
    bob: Library,
    kept: bytes,
    read_all: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(change_log, "KEPT", 3)
    monkeypatch.setattr(change_log, "_PRUNED_EVERY", 1)
    assert await found(place, ann) == ["a", "b", "c"]
    read_all.clear()
    await quartz(bob, *"zyxwvu")
    assert (await found(place, ann), read_all) == (["a", "b", "c"], [])
    await quartz(ann, "d")
    await quartz(bob, *"tsrqpo")
    assert (await found(place, ann), read_all) == (["a", "b", "c", "d"], [ann.id])


async def test_an_older_copy_of_the_database_is_not_answered_for_by_a_newer_file(
    data_dir: Path,
) -> None:
    """The numbers of sections and changes are the same in both, and mean other things."""
    place = Settings(data_dir=data_dir)
    async with process(place) as store:
        ann = await Library.create(store)
        await quartz(ann, "a")
    assert await found(place, ann) == ["a"]
    shutil.copytree(data_dir, data_dir.parent / "copy")
    for told, added in (("with its file", "b"), ("with the file of what came after", "c")):
        async with process(place) as store:
            await quartz(Library(store, ann.id), added)
        assert await found(place, ann) == ["a", added], told
        newer = file_of(place, ann).read_bytes()
        shutil.rmtree(data_dir)
        shutil.copytree(data_dir.parent / "copy", data_dir)
        if added == "b":
            file_of(place, ann).write_bytes(newer)


async def test_vectors_of_another_embedder_are_read_from_the_rows(
    place: Settings, ann: Library, kept: bytes
) -> None:
    other = unit([1, 2])
    item = await ann.add("topaz", title="t", vectors=[other], stamp="other/2")
    async with process(place) as store:
        near = await store.sections.nearest(ann.scope(), other, "other/2", 10)
        assert [hit.section_id for hit in near] == await ann.section_ids(item)
    assert await found(place, ann) == ["a", "b", "c"]


async def test_nothing_that_was_deleted_stays_in_the_file(
    place: Settings, ann: Library, read_all: list[str]
) -> None:
    secret = unit(range(1, 17))
    await quartz(ann, *"abcdefgh")
    item = await ann.add("zirconium", title="gone", vectors=[secret])
    async with process(place) as store:
        await store.sections.nearest(ann.scope(), UP, STAMP, 1)
    assert packed(secret) in file_of(place, ann).read_bytes()
    await ann.store.items.delete(ann.scope(), item.id)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library_index, "KEEP_SHARE", 100)
        assert await found(place, ann) == list("abcdefgh")
    assert packed(secret) not in file_of(place, ann).read_bytes()
    assert await found(place, ann) == list("abcdefgh")
    assert len(read_all) == 1


@pytest.mark.parametrize("common", [1, 10**6], ids=["as bits", "one by one"])
async def test_what_is_left_is_found_by_its_own_words(
    place: Settings, ann: Library, read_all: list[str], monkeypatch: pytest.MonkeyPatch, common: int
) -> None:
    monkeypatch.setattr(postings, "LARGE_RUN", common)
    words = [f"stone{n}" for n in range(12)]
    items = [await ann.add(f"quartz {word}\n\n{word} again", title=word) for word in words]
    for gone in (None, 3, 0, 5, -1):
        if gone is not None:
            await ann.store.items.delete(ann.scope(), items.pop(gone).id)
            words.pop(gone)
        async with process(place) as store:
            other = Library(store, ann.id)
            assert [await other.found(word) for word in words] == [[word, word] for word in words]
            assert sorted(await other.found("quartz")) == sorted(words)
    assert len(read_all) == 1


async def test_a_library_that_goes_takes_its_file_along(
    place: Settings, ann: Library, kept: bytes
) -> None:
    assert stat.S_IMODE(file_of(place, ann).stat().st_mode) == 0o600
    for item in (await ann.store.items.list_page(ann.scope(), EVERYTHING, limit=9, offset=0))[0]:
        await ann.store.items.delete(ann.scope(), item.id, permanent=True)
    await ann.store.people.delete(ann.id)
    assert not file_of(place, ann).exists()


async def test_without_a_folder_to_write_to_it_is_done_without(
    place: Settings, ann: Library, read_all: list[str]
) -> None:
    (place.data_dir / "search_index").write_text("no folder")
    await quartz(ann, "a")
    assert await found(place, ann) == await found(place, ann) == ["a"]
    assert len(read_all) == 2


async def test_the_last_of_a_disk_is_left_to_rows(
    place: Settings, ann: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    await quartz(ann, "a")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10))
    assert await found(place, ann) == ["a"]
    assert os.listdir(place.data_dir / "search_index") == []


async def test_a_store_whose_rows_are_gone_is_closed_like_any_other(
    place: Settings, ann: Library
) -> None:
    await quartz(ann, "a")
    async with process(place) as store:
        await store.sections.nearest(ann.scope(), UP, STAMP, 1)
        await write(ann, "ALTER TABLE checkpoints RENAME TO gone")
    await write(ann, "ALTER TABLE gone RENAME TO checkpoints")
    assert os.listdir(place.data_dir / "search_index") == []


async def test_small_libraries_are_not_kept(
    place: Settings, ann: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    await quartz(ann, "a")
    for least in (0, 2):
        monkeypatch.setattr("commonplace.store.CHECKPOINT_SECTIONS", least)
        await found(place, ann)
        assert not file_of(place, ann).exists()


async def test_processes_may_write_at_once(
    place: Settings,
    ann: Library,
    read_all: list[str],
    open_store: Callable[[], Awaitable[Store]],
) -> None:
    await quartz(ann, "a", "b")
    stores = [await open_store() for _ in range(4)]
    for store in stores:
        await store.sections.nearest(ann.scope(), UP, STAMP, 1)
    await asyncio.gather(*(store.close() for store in stores))
    read_all.clear()
    assert await found(place, ann) == ["a", "b"]
    assert read_all == []
    assert os.listdir(place.data_dir / "search_index") == [file_of(place, ann).name]


async def test_it_is_written_while_the_process_runs_and_goes_when_nobody_writes_it_anew(
    place: Settings, ann: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_writer, "SECONDS", 0.01)
    monkeypatch.setattr(checkpoint_writer, "TIDY_SECONDS", 0.01)
    file = file_of(place, ann)

    async def until(there: bool) -> None:
        end = time.monotonic() + 20
        while file.exists() != there:
            assert time.monotonic() < end
            await asyncio.sleep(0.01)

    await quartz(ann, "a")
    async with process(place) as store:
        await store.sections.nearest(ann.scope(), UP, STAMP, 1)
        await until(there=True)
    for changed in (False, True):
        if changed:
            await quartz(ann, "b")
        os.utime(file, (0, 0))
        async with process(place):
            await until(there=False) if changed else await asyncio.sleep(0.1)
        assert file.exists() != changed


async def test_what_changes_while_it_is_written_is_read_again(
    place: Settings, ann: Library, read_all: list[str]
) -> None:
    item = await ann.add("quartz\n\nquartz", title="a", vectors=[UP, unit([0, 1, *[0] * 14])])
    other = await ann.add("quartz", title="b", vectors=[UP])
    near = await ann.store.sections.nearest(ann.scope(), UP, STAMP, 10)
    assert len(near) == 3
    index, checkpoints = ann.store._index, ann.store._index._checkpoints
    holding = index._libraries[ann.id].checkpoint_state(False)
    arrays, first = iter(holding.arrays), []
    while not first or not first[-1][0].endswith("has"):
        first.append(next(arrays))
    await ann.store.items.delete(ann.scope(), other.id)
    await ann.store.sections.set_vectors(
        STAMP, {ann.id: [(n, packed(UP)) for n in await ann.section_ids(item)]}
    )
    await ann.add("quartz", title="c", vectors=[UP])
    assert len(await ann.found("quartz")) == 3
    draft = checkpoints.write(replace(holding, arrays=[*first, *arrays]))
    await ann.store._db.write(checkpoints.register, draft)
    checkpoints.publish(draft)
    read_all.clear()
    assert await found(place, ann) == ["a", "a", "c"]
    assert read_all == []


async def test_a_restored_backup_is_searched_as_it_is(
    place: Settings, ann: Library, kept: bytes, tmp_path: Path
) -> None:
    await ann.store.dump(tmp_path / "backup")
    await quartz(ann, "later")
    assert await found(place, ann) == ["a", "b", "c", "later"]
    async with process(place) as store:
        await store.load(tmp_path / "backup", replace=True)
    assert await found(place, ann) == ["a", "b", "c"]
    assert b"checkpoints" not in gzip.decompress((tmp_path / "backup").read_bytes())
