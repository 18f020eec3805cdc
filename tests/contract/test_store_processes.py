"""Opening a database, several processes on it, and losing the server."""

import asyncio
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import apsw
import psutil
import psycopg
import pytest

from commonplace.database.sqlite import MARKER
from commonplace.errors import ConfigurationError, StorageFailed
from commonplace.model import Person, new_id, now
from commonplace.settings import Settings
from commonplace.store import Store, make_store
from tests.contract.library import Library
from tests.contract.test_store_schema import versions
from tests.services import running_postgres

pytestmark = pytest.mark.anyio


def writer(place: Settings, clients: int, rounds: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tests.contract.writer",
            str(place.data_dir),
            place.database_url,
            place.database_schema,
            str(clients),
            str(rounds),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process: subprocess.Popen[str]) -> list[str]:
    out, error = process.communicate(timeout=240)
    assert process.returncode == 0, error
    return out.split()


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())}


async def test_nobody_else_can_read_a_new_library(new_data_dir: Path) -> None:
    before = os.umask(0o022)
    store = make_store(Settings(data_dir=new_data_dir))
    try:
        await store.open()
        await Library.create(store)
        assert modes(new_data_dir) == {
            new_data_dir.name: 0o700,
            MARKER: 0o600,
            **{f"commonplace.sqlite3{end}": 0o600 for end in ("", "-wal", "-shm")},
        }
    finally:
        os.umask(before)
        await store.close()


@pytest.mark.slow
async def test_four_processes_may_set_up_one_database_at_once(new_place: Settings) -> None:
    processes = [writer(new_place, clients=1, rounds=1) for _ in range(4)]
    for process in processes:
        assert len(finished(process)) == 1
    assert versions(new_place) == [100]
    store = make_store(new_place)
    await store.open()
    assert len(await store.people.all()) == 4
    await store.close()


@pytest.mark.slow
async def test_32_writers_in_three_processes_never_find_it_locked(
    place: Settings, store: Store
) -> None:
    processes = [writer(place, clients, rounds=5) for clients in (11, 11, 10)]
    lines = [line for process in processes for line in finished(process)]
    assert len([line for line in lines if line.startswith("+")]) == 160
    libraries = [Library(store, person.id) for person in await store.people.all()]
    assert (
        sum([len(await library.found("one")) for library in libraries]) == 160 - 64
    )  # every second was deleted again


async def test_people_made_at_once_under_one_address_are_one(store: Store) -> None:
    answers = await asyncio.gather(
        *(store.people.create(Person(new_id(), "Ann", "ann@example.com", now())) for _ in range(8)),
        return_exceptions=True,
    )
    assert sum(answer is None for answer in answers) == 1
    assert {type(answer).__name__ for answer in answers} == {"NoneType", "NameTaken"}


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:s3cret@127.0.0.1:1/db",
        "postgresql://ann:s3cret@127.0.0.1:x/db",
        "postgresql://ann:s3%cret@127.0.0.1/db",
        "mysql://ann:s3cret@127.0.0.1/db",
    ],
)
async def test_a_server_that_cannot_be_used_is_named_by_its_setting_without_the_password(
    data_dir: Path, url: str
) -> None:
    with pytest.raises(ConfigurationError, match="COMMONPLACE_DATABASE_URL") as refusal:
        store = make_store(Settings(data_dir=data_dir, database_url=url))
        try:
            await store.open()
        finally:
            await store.close()
    assert "s3" not in str(refusal.value)


@pytest.fixture
def no_database(data_dir: Path) -> Path:
    file = data_dir / "commonplace.sqlite3"
    file.write_bytes(b"something else entirely " * 100)
    return file


async def test_a_file_that_is_no_database_is_refused(no_database: Path) -> None:
    store = make_store(Settings(data_dir=no_database.parent))
    with pytest.raises(ConfigurationError, match="not a Commonplace database"):
        await store.open()
    await store.close()
    with no_database.open("rb") as file:
        assert file.read().startswith(b"something else")


@pytest.fixture
def own_server(data_dir: Path) -> Iterator[tuple[Settings, int]]:
    with running_postgres() as (url, pid):
        yield Settings(data_dir=data_dir, database_url=url), pid


@pytest.mark.slow
async def test_lost_connections_are_opened_again_and_a_lost_server_is_told(
    own_server: tuple[Settings, int],
) -> None:
    place, pid = own_server
    store = make_store(replace(place, database_schema="lost"))
    await store.open()
    ann = await Library.create(store)
    await ann.add("quartz", title="T")
    with psycopg.connect(place.database_url, autocommit=True) as connection:
        for attempt in range(2):
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
            if attempt == 0:
                assert await ann.found("quartz") == ["T"]
            else:
                await ann.add("feldspar", title="U")
    assert await ann.found("feldspar") == ["U"]
    server = psutil.Process(pid)
    server.kill()
    server.wait(timeout=10)
    with pytest.raises(StorageFailed, match="Postgres"):
        await ann.found("quartz")
    await store.close()


async def test_an_engine_that_can_lose_pages_is_refused(
    new_data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.51.2")
    store = make_store(Settings(data_dir=new_data_dir))
    with pytest.raises(
        ConfigurationError,
        match=r"SQLite 3\.51\.2 can lose committed data; 3\.51\.3 or newer is needed",
    ):
        await store.open()
    await store.close()


async def test_the_engine_is_a_current_one_and_maps_no_file_into_memory(ann: Library) -> None:
    engine = await ann.store.describe()
    if engine["engine"] == "sqlite":
        assert tuple(map(int, engine["version"].split("."))) >= (3, 51, 3)
        mapped = {Path(one.path).name for one in psutil.Process().memory_maps()}
        assert "commonplace.sqlite3" not in mapped  # the -shm beside it always is
