"""What every test may ask for. Postgres and Redis are in tests/services.py."""

import asyncio
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from commonplace.settings import Settings
from commonplace.store import make_store

# How long one example takes says more about the machine than about the code.
hypothesis.settings.register_profile("here", deadline=None)
hypothesis.settings.load_profile("here")

pytest_plugins = ["tests.services"]


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def no_settings_from_outside() -> Iterator[None]:
    """A developer's own COMMONPLACE_* must not change what the tests see."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("COMMONPLACE_")]:
            patch.delenv(name)
        yield


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SQLite's file after a first start. Copying it takes a tenth of the time."""
    settings = Settings(data_dir=tmp_path_factory.mktemp("first"))

    async def start() -> None:
        store = make_store(settings)
        await store.open()
        await store.close()

    asyncio.run(start())
    [file] = settings.data_dir.glob("*.sqlite3")
    return file


@pytest.fixture
def data_dir(new_data_dir: Path, empty_database: Path) -> Path:
    """The folder of a library server that was started once, and of which nothing was asked."""
    new_data_dir.mkdir()
    shutil.copy(empty_database, new_data_dir)
    return new_data_dir


@pytest.fixture
def new_data_dir(tmp_path: Path) -> Path:
    """An empty folder for one library server; it does not exist yet, as on a first start."""
    return tmp_path / "data"
