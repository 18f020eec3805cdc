"""What is kept in memory of a library stays whole: when reading it breaks off, and when an older look comes in late."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from commonplace.database.transaction import Tx
from commonplace.model import ItemRef, Scope, Scored
from commonplace.ports import Matches, Question
from commonplace.search_index import filters, library_index
from commonplace.store import Store
from commonplace.text.query_terms import parse_query
from tests.contract.library import STAMP, Library, packed, unit

pytestmark = pytest.mark.anyio
UP = unit([1, *[0] * 15])
IN_MEMORY = pytest.mark.parametrize("place", ["sqlite"], indirect=True)


class Seen:
    """Chooses everything, and remembers what there was to choose from."""

    found: Matches

    def __call__(self, found: Matches) -> list[Scored]:
        self.found = found
        return [Scored(section_id, 1.0) for section_id in found.ids.tolist()]


class Breaking:
    """A transaction whose connection is lost in the middle of a long answer."""

    def __init__(self, tx: Tx, at: str) -> None:
        self._tx, self._at, self.engine, self.recall = tx, at, tx.engine, tx.recall
        self.all, self.one = tx.all, tx.one

    def batches(self, sql: str, size: int, /, **values: Any) -> Iterator[list[Any]]:
        for found in self._tx.batches(sql, size, **values):
            yield found
            if self._at in sql:
                raise ConnectionError


@IN_MEMORY
@pytest.mark.parametrize("at", ["section_terms", "FROM vectors"])
@pytest.mark.parametrize("again", ["the first time", "later"])
async def test_reading_that_breaks_off_is_begun_again(
    ann: Library, monkeypatch: pytest.MonkeyPatch, at: str, again: str
) -> None:
    monkeypatch.setattr(library_index, "_ROWS", 4)
    items = [await ann.add(f"quartz {n}", title=f"t{n}", vectors=[UP]) for n in range(20)]

    async def found() -> tuple[int, int]:
        near = await ann.store.sections.nearest(ann.scope(), UP, STAMP, 100)
        return len(await ann.found("quartz")), len(near)

    if again == "later":
        assert await found() == (20, 20)
        monkeypatch.setattr(library_index, "DEAD_SHARE", 0)
        monkeypatch.setattr(library_index, "DEAD_ROWS", 0)
        await ann.store.items.delete(ann.scope(), items.pop().id)
    with pytest.raises(ConnectionError):
        await ann.store._db.read(
            lambda tx: ann.store._index.matches(
                Breaking(tx, at), ann.scope(), Question(None, UP, STAMP, 100), None
            )
        )
    assert await found() == (len(items), len(items))


@IN_MEMORY
async def test_scopes_are_remembered_only_as_far_as_there_is_room(
    ann: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [await ann.folder(f"f{n}") for n in range(6)]
    item = await ann.add("quartz", title="everywhere", folder=folders[0], vectors=[UP])
    await ann.store.items.file(ann.scope(), ItemRef(id=item.id), folders, token_id=None)
    await ann.store.sections.nearest(ann.scope(), UP, STAMP, 1)
    monkeypatch.setattr(filters, "POOL_BYTES", 40)
    for folder in folders * 2:
        assert await ann.found("quartz", ann.scope(folder)) == ["everywhere"]
        remembered = ann.store._index._libraries[ann.id]._snapshot.pools
        assert 0 < len(remembered) < len(folders)


class Held:
    """A transaction that has begun, and goes on when it is told to."""

    def __init__(
        self,
        run: Callable[..., Awaitable[Any]],
        first: Callable[[Tx], Any],
        then: Callable[[Tx], Any],
    ) -> None:
        self._run, self._first, self._then = run, first, then
        self._begun, self._go_on = threading.Event(), threading.Event()

    async def begin(self) -> "Held":
        def work(tx: Tx) -> None:
            self._first(tx)
            self._begun.set()
            assert self._go_on.wait(30)
            self._then(tx)

        self._task = asyncio.create_task(self._run(work))  # type: ignore[arg-type]
        assert await asyncio.to_thread(self._begun.wait, 30)
        return self

    async def end(self) -> None:
        self._go_on.set()
        await self._task


def look(library: Library, question: Question) -> Held:
    """A search in the library as it is when it begins."""
    return Held(
        library.store._db.read,
        lambda tx: tx.one("SELECT count(*) AS n FROM items"),
        lambda tx: library.store._index.matches(tx, library.scope(), question, None),
    )


async def test_vectors_are_not_lost_to_a_search_that_began_before_they_came(ann: Library) -> None:
    await ann.add("quartz", title="early", vectors=[UP])
    older = await look(ann, Question(None, UP, STAMP, 10)).begin()
    await ann.add("quartz", title="late", vectors=[UP])
    assert len(await ann.found("quartz")) == 2, "read without vectors, as they were not asked for"
    await older.end()
    assert len(await ann.store.sections.nearest(ann.scope(), UP, STAMP, 10)) == 2


@pytest.mark.usefixtures("plan")
async def test_searches_see_all_that_stands_while_much_else_changes(
    ann: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows come, go and get other vectors in the arrays that searches on other threads are reading."""
    monkeypatch.setattr(library_index, "DEAD_SHARE", 0)
    monkeypatch.setattr(library_index, "DEAD_ROWS", 12)
    folder, other = await ann.folder("a"), await ann.folder("b")
    standing = [
        await ann.add(f"quartz {n}", title=f"s{n}", folder=folder, vectors=[UP]) for n in range(12)
    ]
    moving = await ann.add("quartz moves", title="moving", folder=folder, vectors=[UP])
    sections, items, deleted, done = (
        ann.store.sections,
        ann.store.items,
        set[int](),
        asyncio.Event(),
    )

    async def search(scope: Scope) -> int:
        count = 0
        while not done.is_set():
            gone = set(deleted)
            seen = Seen()
            brought = await sections.search(
                scope, Question(parse_query("quartz"), UP, STAMP, 100), seen, 100
            )
            found, loaded = seen.found, {passage.section_id for _, passage in brought}
            assert wanted <= loaded and not gone & loaded
            near = {
                int(i) for i, cosine in zip(found.ids, found.cosines, strict=True) if cosine > 0.99
            }
            assert wanted <= near
            assert wanted <= {
                int(i) for i, score in zip(found.ids, found.keyword, strict=True) if score > 0
            }
            assert not gone & {int(i) for i in found.ids}
            count += 1
        return count

    wanted = {i for item in (*standing, moving) for i in await ann.section_ids(item)}
    searching = [
        asyncio.create_task(search(scope))
        for scope in (ann.scope(), ann.scope(folder), ann.scope(folder, other)) * 2
    ]
    for n in range(25):
        brief = await ann.add(
            f"quartz {n}\n\nquartz", title=f"b{n}", folder=other, vectors=[UP, unit(range(1, 17))]
        )
        ids = await ann.section_ids(brief)
        await items.file(ann.scope(), ItemRef(id=moving.id), [other], token_id=None)
        await sections.set_vectors(
            STAMP, {ann.id: [(i, packed(UP)) for i in await ann.section_ids(moving)]}
        )
        await items.unfile(ann.scope(), ItemRef(id=moving.id), other)
        await items.delete(ann.scope(), brief.id)
        deleted |= set(ids)
    done.set()
    assert min(await asyncio.gather(*searching)) > 0


async def test_a_search_sees_what_others_did_since(
    ann: Library, open_store: Callable[[], Awaitable[Store]]
) -> None:
    elsewhere, folder = Library(await open_store(), ann.id), await ann.folder("a")
    question = Question(parse_query("quartz"), UP, STAMP, 100)

    async def found(scope: Scope, limit: int = 100) -> list[str]:
        return sorted(
            passage.title
            for _, passage in await ann.store.sections.search(scope, question, Seen(), limit)
        )

    first = await ann.add("quartz", title="first", folder=folder, vectors=[UP])
    for _ in range(2):
        assert await found(ann.scope()) == await found(ann.scope(folder)) == ["first"]
    await elsewhere.add("quartz too", title="second", vectors=[UP])
    for _ in range(2):
        assert await found(ann.scope()) == ["first", "second"]
        assert await found(ann.scope(folder)) == ["first"]
        assert len(await found(ann.scope(), 1)) == 1
    await elsewhere.store.items.delete(ann.scope(), first.id)
    for _ in range(2):
        assert await found(ann.scope()) == ["second"]
        assert await found(ann.scope(folder)) == []


@IN_MEMORY
async def test_nobody_else_waits_while_a_shelf_is_being_read(ann: Library) -> None:
    await ann.add("quartz", title="one", vectors=[UP])
    question, reading, ticks = Question(parse_query("quartz"), UP, STAMP, 10), threading.Event(), 0

    async def search() -> int:
        return len(await ann.store.sections.search(ann.scope(), question, Seen(), 10))

    assert await search() == 1
    [index] = ann.store._index.libraries()
    guard = index._guard
    guard.acquire()
    threading.Timer(0.3, lambda: (reading.set(), guard.release())).start()
    searching = asyncio.create_task(search())
    while not reading.is_set():
        await asyncio.sleep(0.01)
        ticks += 1
    assert await searching == 1 and ticks > 5


async def test_items_of_the_same_moment_are_told_apart(ann: Library) -> None:
    """Their ids begin alike."""
    moment, folder = "01980c5e-93a4-7b1c", await ann.folder("a")
    first = await ann.add(
        "quartz", id=f"{moment}-8a11-aaaaaaaaaaaa", title="first", folder=folder, vectors=[UP]
    )
    await ann.add("quartz too", id=f"{moment}-8a22-bbbbbbbbbbbb", title="second", vectors=[UP])
    assert await ann.found("quartz", ann.scope(folder)) == ["first"]
    await ann.store.items.delete(ann.scope(), first.id)
    assert await ann.found("quartz") == ["second"]


async def test_rows_that_a_failed_read_left_unread_do_not_disturb_the_next(store: Store) -> None:
    left: list[Iterator[list[Any]]] = []

    def fail(tx: Tx) -> None:
        left.append(tx.batches("SELECT 1 AS n UNION ALL SELECT 2", 1))
        next(left[0])
        raise OSError("no space left")

    def read(tx: Tx) -> int:
        tx.scalar("SELECT 1")
        left.clear()  # freed while somebody else has the connection
        return int(tx.scalar("SELECT 2"))

    with pytest.raises(OSError, match="no space"):
        await store._db.read(fail)
    assert await store._db.read(read) == 2
