"""A house for each test, or one with the settings that a test asks for."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import httpx
import pytest

from tests.faces.house import House, open_house

OpenHouse = Callable[..., AbstractAsyncContextManager[House]]


@pytest.fixture
async def house(data_dir: Path) -> AsyncIterator[House]:
    async with open_house(data_dir) as opened:
        yield opened


@pytest.fixture
def house_with(data_dir: Path) -> OpenHouse:
    """`async with house_with(rate_reads_per_hour=3) as house`: all other limits are off."""
    return lambda **settings: open_house(data_dir, **settings)


@pytest.fixture
async def owner(house: House) -> AsyncIterator[httpx.AsyncClient]:
    async with house.client("owner") as client:
        yield client
