"""What processes hold in memory keeps up with the database: in whatever order writes end, however far behind it is."""

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from commonplace.database.transaction import Tx
from commonplace.search_index import change_log, library_index
from commonplace.settings import Settings
from commonplace.store import Store, make_store
from tests.contract.library import STAMP, Library, unit

pytestmark = pytest.mark.anyio


@pytest.fixture
def on_postgres(data_dir: object, postgres_url: str, postgres_schema: str) -> Settings:
    return Settings(database_url=postgres_url, database_schema=postgres_schema)


async def test_a_write_that_began_first_and_ended_last_is_not_missed(on_postgres: Settings) -> None:
    store, other = make_store(on_postgres), make_store(on_postgres)
    await store.open()
    await other.open()
    ann = await Library.create(store)
    noted, go_on = threading.Event(), threading.Event()

    def slow(tx: Tx) -> None:
        tx.run("UPDATE items SET title = title WHERE id = :id", id=item.id)
        other._index.refile(
            tx, ann.id, item.id
        )  # a number and a transaction older than what comes next
        noted.set()
        assert go_on.wait(30)
        tx.run("UPDATE sections SET title = 'changed' WHERE item_id = :id", id=item.id)
        tx.run("DELETE FROM section_terms WHERE item_id = :id", id=item.id)

    item = await ann.add("zirconium", title="slow")
    assert await ann.found("zirconium") == ["slow"]
    writing = asyncio.create_task(other._db.write(slow))
    await asyncio.to_thread(noted.wait, 30)
    for n in range(3):
        await ann.add(f"hafnium {n}", title=f"quick {n}")
        assert len(await ann.found("hafnium")) == n + 1
    assert await ann.found("zirconium") == ["slow"]
    go_on.set()
    await writing
    assert await ann.found("zirconium") == [], "what the slow write did is seen once it has ended"
    assert len(await ann.found("hafnium")) == 3
    await store.close()
    await other.close()


async def test_whoever_is_too_far_behind_reads_everything_anew(
    ann: Library, open_store: Callable[[], Awaitable[Store]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_log, "KEPT", 3)
    monkeypatch.setattr(change_log, "_PRUNED_EVERY", 1)
    other = Library(await open_store(), ann.id)
    items = [
        await ann.add(f"quartz {n}", title=f"t{n}", vectors=[unit(range(1, 17))]) for n in range(3)
    ]
    for round in range(3):
        assert len(await other.found("quartz")) == len(items)
        assert len(
            await other.store.sections.nearest(ann.scope(), unit(range(1, 17)), STAMP, 100)
        ) == len(items)
        items += [
            await ann.add(
                f"quartz {round} {n}", title=f"t{round} {n}", vectors=[unit(range(1, 17))]
            )
            for n in range(12)
        ]
        await ann.store.items.delete(ann.scope(), items.pop(round).id)
    assert len(await other.found("quartz")) == len(await ann.found("quartz")) == len(items)


async def test_a_database_that_was_moved_to_another_server_is_read_once(
    on_postgres: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(on_postgres)
    await store.open()
    ann = await Library.create(store)
    await ann.add("quartz", title="moved")
    await store._db.write(
        lambda tx: tx.run("UPDATE changes SET xid = xid + 1000000000")
    )  # as a server that did more had them
    read = []
    reload = library_index.LibraryIndex._reload
    monkeypatch.setattr(
        library_index.LibraryIndex, "_reload", lambda self, tx: (read.append(1), reload(self, tx))
    )
    for _ in range(3):
        assert await ann.found("quartz") == ["moved"]
    assert len(read) == 1
    await ann.add("quartz", title="new")
    assert sorted(await ann.found("quartz")) == ["moved", "new"]
    await store.close()
