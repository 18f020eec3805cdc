"""A house for each test, or one with the settings that a test asks for."""

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from uuid import UUID

import httpx
import pytest

from commonplace.model import now
from tests.interfaces.house import House, open_house

OpenHouse = Callable[..., AbstractAsyncContextManager[House]]


@pytest.fixture
async def house(data_dir: Path) -> AsyncIterator[House]:
    async with open_house(data_dir) as opened:
        yield opened


@pytest.fixture(params=["sqlite", "postgres"])
def either_engine(request: pytest.FixtureRequest) -> dict[str, str]:
    """The settings of a database: the test runs on both engines."""
    if request.param == "sqlite":
        return {}
    return {
        "database_url": request.getfixturevalue("postgres_url"),
        "database_schema": request.getfixturevalue("postgres_schema"),
    }


@pytest.fixture
def house_with(data_dir: Path) -> OpenHouse:
    """`async with house_with(rate_reads_per_hour=3) as house`: all other limits are off."""
    return lambda **settings: open_house(data_dir, **settings)


@pytest.fixture
async def owner(house: House) -> AsyncIterator[httpx.AsyncClient]:
    async with house.client("owner") as client:
        yield client


@dataclass
class Clock:
    """What time it is to the server: later than it is by `advance`."""

    ahead: timedelta = timedelta()

    def advance(self, **how_much: float) -> None:
        self.ahead += timedelta(**how_much)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    clocked = SimpleNamespace(
        now=lambda zone: datetime.now(zone) + clock.ahead, fromisoformat=datetime.fromisoformat
    )
    monkeypatch.setitem(now.__globals__, "datetime", clocked)
    return clock


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times and ids that grow with every call.

    Real ids of one millisecond sort by chance, and so did the folders of an item; the tokens of a
    context pack depend on the digits in its ids.
    """
    ticks, draws, parts = count(1), defaultdict[int, Iterator[int]](count), now.__globals__
    morning = datetime(2026, 1, 5, 9, tzinfo=UTC)
    monkeypatch.setitem(
        parts,
        "datetime",
        SimpleNamespace(
            now=lambda zone: morning + timedelta(milliseconds=next(ticks)),
            fromisoformat=datetime.fromisoformat,
        ),
    )
    monkeypatch.setitem(parts, "time", SimpleNamespace(time_ns=lambda: next(ticks) * 1_000_000))
    monkeypatch.setitem(parts, "secrets", SimpleNamespace(randbits=lambda bits: next(draws[bits])))
    monkeypatch.setitem(
        parts, "uuid", SimpleNamespace(UUID=UUID, uuid4=lambda: UUID(int=next(ticks)))
    )
