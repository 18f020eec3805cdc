"""What SQLite does for one item does not grow with the library: counted in steps of its machine, which no other load changes."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from commonplace.adapters.store import make_store
from commonplace.model import Content, Entry, Folder, Item, ItemRef, Person, Scope, Section, new_id, new_public_id, now
from commonplace.settings import Settings

pytestmark = pytest.mark.anyio


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One for each step of any connection: which thread reads is not for us to say."""
    counted: list[int] = []

    def connect(*where: Any, **how: Any) -> sqlite3.Connection:
        connection = real(*where, **how)
        connection.set_progress_handler(lambda: counted.append(1), 1)
        return connection

    real = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", connect)
    return counted


async def steps_of_reading_one(items: int, folder: Path, steps: list[int]) -> int:
    store = make_store(Settings(data_dir=folder))
    await store.open()
    person = Person(new_id(), "a", "a@example.com", now())
    await store.people.create(person)
    whole, folders = Scope(person.id), [Folder(new_id(), person.id, f"folder {n}", now()) for n in range(20)]
    for one in folders:
        await store.folders.create(one)
    kept = [Item(new_id(), person.id, new_public_id(), new_id(), "document", "text", f"note {n}", folders=(folders[n % 20].id,))
            for n in range(items)]
    await store.items.put([Entry(item, Content(item.content_id, f"{person.id}:{item.id}", "words"), (Section(0, "words"),)) for item in kept],
                          scope=whole, stamp="none")
    await store.items.get(whole, ItemRef(id=kept[0].id))
    steps.clear()
    assert (await store.items.get(whole, ItemRef(id=kept[1].id))).folders == (folders[1].id,)
    taken = len(steps)
    await store.close()
    return taken


async def test_reading_one_item_takes_as_many_steps_in_a_large_library(tmp_path: Path, steps: list[int]) -> None:
    few = await steps_of_reading_one(40, tmp_path / "few", steps)
    many = await steps_of_reading_one(1_200, tmp_path / "many", steps)
    assert 0 < many < few + 2_000, (few, many)  # a thread that has no connection yet makes one, in about a thousand; each filing read is eight
