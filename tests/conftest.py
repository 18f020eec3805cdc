"""What every test may ask for. Postgres and Redis are in tests/services.py."""

import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

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


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """An empty folder for one library server; it does not exist yet, as on a first start."""
    return tmp_path / "data"
