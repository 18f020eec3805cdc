"""Writes of many at once: each is kept, or fails, by itself, though they share a commit."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import apsw
import pytest

from commonplace.database.group_commit import GroupCommit
from commonplace.database.sqlite import SqliteDatabase
from commonplace.database.transaction import Tx
from commonplace.errors import NotFound
from commonplace.model import ItemFilter
from commonplace.store import Store
from tests.contract.library import Library

pytestmark = pytest.mark.anyio


async def test_one_that_fails_harms_no_other(ann: Library) -> None:
    store: Store = ann.store
    gone = await ann.add("gone")
    await store.items.delete(ann.scope(), gone.id)
    await ann.add("first")
    outcomes = await asyncio.gather(
        *(
            store.items.delete(ann.scope(), gone.id)
            if n % 5 == 0
            else ann.add(f"text {n}", title=f"{n}")
            for n in range(40)
        ),
        return_exceptions=True,
    )
    assert [isinstance(outcome, NotFound) for outcome in outcomes] == [
        n % 5 == 0 for n in range(40)
    ]
    items, total = await store.items.list_page(ann.scope(), ItemFilter(), limit=100, offset=0)
    assert total == 33 and {item.title for item in items} >= {f"{n}" for n in range(40) if n % 5}


class Diary:
    """A table of numbers, and a way to hold the writer while others queue behind it."""

    def __init__(self, path: Path) -> None:
        self.db, self.path, self.go_on = SqliteDatabase(path), path, threading.Event()

    def put(self, tx: Tx, n: int) -> int:
        if n < 0:
            raise ValueError(n)
        tx.run("INSERT INTO diary VALUES (:n)", n=n)
        return n

    def hold(self, tx: Tx) -> None:
        self.go_on.wait(10)

    def commits(self, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
        seen: list[Any] = []
        within: Callable[..., Any] = self.db._within
        monkeypatch.setattr(
            self.db, "_within", lambda *given: (seen.append(given), within(*given))[1]
        )
        return seen

    async def together(self, numbers: list[int]) -> list[Any]:
        waiting = [asyncio.create_task(self.db.write(self.hold))]
        waiting += [asyncio.create_task(self.db.write(self.put, n)) for n in numbers]
        await asyncio.sleep(0)
        self.go_on.set()
        return (await asyncio.gather(*waiting, return_exceptions=True))[1:]

    def kept(self) -> list[int]:
        with closing(apsw.Connection(str(self.path))) as connection:
            return [n for (n,) in connection.execute("SELECT n FROM diary ORDER BY rowid")]


@pytest.fixture
async def diary(tmp_path: Path) -> Any:
    made = Diary(tmp_path / "diary.sqlite3")
    await made.db.write(lambda tx: tx.run("CREATE TABLE diary (n INTEGER)"))
    await made.db.write(made.put, 0)  # by now it is known to be quick
    yield made
    await made.db.close()


async def test_what_waits_is_committed_together_and_in_order(
    diary: Diary, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = diary.commits(monkeypatch)
    assert await diary.together(list(range(1, 31))) == list(range(1, 31))
    assert len(commits) == 2 and diary.kept() == list(range(31))


async def test_of_those_committed_together_each_has_its_own_outcome(diary: Diary) -> None:
    outcomes = await diary.together([1, -2, 3])
    assert outcomes[0] == 1 and isinstance(outcomes[1], ValueError) and outcomes[2] == 3
    assert diary.kept() == [0, 1, 3]


async def test_what_takes_long_is_committed_alone(
    diary: Diary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("commonplace.database.group_commit.QUICK_SECONDS", 0.0)
    commits = diary.commits(monkeypatch)
    assert await diary.together([1, 2, 3]) == [1, 2, 3]
    assert len(commits) == 4


async def test_nobody_is_answered_before_their_own_write() -> None:
    """Loops in two threads may come to the queue in one order and to the thread in the other."""
    second = asyncio.Event()

    class Late:
        """Lets whoever comes first wait until the second was there."""

        def __init__(self) -> None:
            self.came = 0

        async def run(self, turn: Callable[[], None]) -> None:
            self.came += 1
            if self.came == 1:
                await second.wait()
            turn()
            second.set()

    group = GroupCommit(cast(Any, Late()), lambda work: work(None))
    assert await asyncio.gather(*(group.write(lambda tx, n: n, (n,), {}) for n in range(2))) == [
        0,
        1,
    ]
