"""A start checks all pages of a SQLite database, unless they were checked and nothing happened since."""

import os
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from commonplace.database import clean_close, sqlite
from commonplace.errors import Damaged
from commonplace.settings import Settings
from commonplace.store import FILE, make_store

pytestmark = pytest.mark.anyio


async def starts(data_dir: Path, *, checked: bool = False) -> list[str]:
    """Open a store as `serve` does, and close it. Returns the checks of all pages."""
    done = []
    before = sqlite._check

    def check(tx: sqlite.SqliteTx) -> None:
        done.append("check")
        before(tx)

    sqlite._check = check
    store = make_store(Settings(data_dir=data_dir))
    try:
        await store.open()
        await store.check(trusting=not checked)
    finally:
        await store.close()
        sqlite._check = before
    return done


def write(data_dir: Path) -> None:
    with apsw.Connection(str(data_dir / FILE)) as connection:
        connection.execute("CREATE TABLE other (n)")
    connection.close()


def note(data_dir: Path) -> Path:
    return data_dir / clean_close.NAME


async def test_all_pages_are_checked_once(data_dir: Path) -> None:
    assert await starts(data_dir) == ["check"]
    assert await starts(data_dir) == [] == await starts(data_dir)
    assert await starts(data_dir, checked=True) == ["check"]  # doctor and backup trust nothing


@pytest.mark.parametrize(
    "happens",
    [
        write,
        lambda data_dir: note(data_dir).unlink(),  # as after a crash
        lambda data_dir: note(data_dir).write_text("{}"),
        lambda data_dir: os.utime(data_dir / FILE),
    ],
    ids=["write", "crash", "garbled note", "restored file"],
)
async def test_what_happens_in_between_is_checked(
    data_dir: Path, happens: Callable[[Path], None]
) -> None:
    await starts(data_dir)
    happens(data_dir)
    assert await starts(data_dir) == ["check"]
    assert await starts(data_dir) == []


async def test_it_is_checked_again_after_a_week(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await starts(data_dir)
    monkeypatch.setattr(clean_close, "TRUSTED_SECONDS", 0)
    assert await starts(data_dir) == ["check"]


async def test_nothing_is_known_while_it_is_open_and_after_damage(data_dir: Path) -> None:
    await starts(data_dir)
    store = make_store(Settings(data_dir=data_dir))
    await store.open()
    assert not note(data_dir).exists()

    def fail(tx: sqlite.SqliteTx) -> None:
        raise apsw.CorruptError

    with pytest.raises(Damaged):
        await store._db.read(fail)
    await store.close()
    assert not note(data_dir).exists()
    assert await starts(data_dir) == ["check"]
