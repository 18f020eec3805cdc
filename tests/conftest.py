"""What every test may ask for. Postgres and Redis are in tests/services.py."""

import asyncio
import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import partialmethod
from pathlib import Path

import hypothesis
import pytest
from argon2 import PasswordHasher

from commonplace.settings import Settings
from commonplace.store import make_store
from tests.interfaces.house import UNTOUCHED

# How long one example takes says more about the machine than about the code.
for profile, examples in {"suite": 25, "torture": 500}.items():
    hypothesis.settings.register_profile(
        profile,
        deadline=None,
        max_examples=examples,
        suppress_health_check=[
            hypothesis.HealthCheck.too_slow,
            hypothesis.HealthCheck.function_scoped_fixture,
        ],
    )
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))

pytest_plugins = ["tests.services"]

# Seconds of each file; `make durations` writes it.
DURATIONS = Path(__file__).parent / "durations.json"
UNKNOWN = 10.0
MEMORY = Path("/dev/shm")  # most tests wait for the disk more than they compute
ENOUGH_MEMORY = 3 * 2**30  # bytes; a run takes about a third of that
SCRATCH = "commonplace-tests-"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-durations", action="store_true", help=f"write {DURATIONS.name}")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest, so that at the end no process waits for another."""
    known = json.loads(DURATIONS.read_text()) if DURATIONS.exists() else {}
    items.sort(key=lambda item: (-known.get(file_of(item.nodeid), UNKNOWN), file_of(item.nodeid)))


def file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0].removeprefix("tests/")


spent = Counter[str]()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    spent[file_of(report.nodeid)] += report.duration


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Give this run a folder for temporary files, in memory if there is enough of it."""
    if hasattr(config, "workerinput") or "TMPDIR" in os.environ:
        return  # a worker of xdist inherits TMPDIR
    parent = Path(tempfile.gettempdir())
    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= ENOUGH_MEMORY:
        parent = MEMORY
    for left in parent.glob(f"{SCRATCH}*"):  # by runs that failed or were killed
        if not Path("/proc", left.name.removeprefix(SCRATCH)).exists():
            shutil.rmtree(left, ignore_errors=True)
    folder = parent / f"{SCRATCH}{os.getpid()}"
    folder.mkdir(mode=0o755)  # Postgres runs as another user when we are root
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Remove the run's folder unless a test failed. The next run removes it then."""
    if session.config.getoption("record_durations"):
        DURATIONS.write_text(
            json.dumps({name: round(seconds, 1) for name, seconds in spent.most_common()}, indent=0)
            + "\n"
        )
    folder = Path(tempfile.gettempdir())
    if folder.name == f"{SCRATCH}{os.getpid()}" and exitstatus == 0:
        session.config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


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


@pytest.fixture(scope="session", autouse=True)
def cheap_passwords() -> Iterator[None]:
    """Hash passwords in a hundredth of the time, in this process."""
    cheap = partialmethod(PasswordHasher.__init__, time_cost=1, memory_cost=8, parallelism=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PasswordHasher, "__init__", cheap)
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
    os.utime(shutil.copy(empty_database, new_data_dir), (UNTOUCHED, UNTOUCHED))
    return new_data_dir


@pytest.fixture
def new_data_dir(tmp_path: Path) -> Path:
    """An empty folder for one library server; it does not exist yet, as on a first start."""
    return tmp_path / "data"
