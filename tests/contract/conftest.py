"""The store's contract suite runs whole on both engines."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from commonplace.settings import Settings
from commonplace.store import Store, make_store
from tests.contract.large import use_indexes
from tests.contract.library import Library


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, data_dir: Path) -> Settings:
    """An empty database."""
    if request.param == "sqlite":
        return Settings(data_dir=data_dir)
    return Settings(
        data_dir=data_dir,
        database_url=request.getfixturevalue("postgres_url"),
        database_schema=request.getfixturevalue("postgres_schema"),
    )


@pytest.fixture(params=["sqlite", "postgres"])
def new_place(request: pytest.FixtureRequest, new_data_dir: Path) -> Settings:
    """Where there is no database yet."""
    if request.param == "sqlite":
        return Settings(data_dir=new_data_dir)
    return Settings(
        data_dir=new_data_dir,
        database_url=request.getfixturevalue("postgres_url"),
        database_schema=request.getfixturevalue("new_schema"),
    )


@pytest.fixture
async def open_store(place: Settings) -> AsyncIterator[Callable[[], Awaitable[Store]]]:
    """Opens any number of stores on the one database, as so many processes would."""
    stores: list[Store] = []

    async def another() -> Store:
        stores.append(make_store(place))
        await stores[-1].open()
        return stores[-1]

    yield another
    for store in stores:
        await store.close()


@pytest.fixture
async def store(open_store: Callable[[], Awaitable[Store]]) -> Store:
    return await open_store()


@pytest.fixture(params=["exact", "by indexes"])
def plan(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small libraries are compared row by row; here they are also searched as large ones are."""
    if request.param == "by indexes":
        use_indexes(monkeypatch)


@pytest.fixture
async def ann(store: Store) -> Library:
    return await Library.create(store, "ann")


@pytest.fixture
async def bob(store: Store) -> Library:
    return await Library.create(store, "bob")
