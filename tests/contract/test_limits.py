"""Limits: what every store of counts must do."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from commonplace.adapters.limits import make_limits
from commonplace.ports import Limits
from commonplace.settings import Settings

pytestmark = pytest.mark.anyio
Make = Callable[[], Limits]


@pytest.fixture(params=["memory", "redis"])
async def make(request: pytest.FixtureRequest) -> AsyncIterator[Make]:
    """Makes instances as several servers with the same settings would."""
    url = request.getfixturevalue("redis_url") if request.param == "redis" else ""
    async with AsyncExitStack() as stack:
        def one() -> Limits:
            limits = make_limits(Settings(data_dir=Path("unused"), redis_url=url))
            stack.push_async_callback(limits.close)
            return limits

        yield one


@pytest.fixture
def key() -> str:
    return uuid.uuid4().hex


async def test_there_is_room_for_as_many_as_were_agreed(make: Make, key: str) -> None:
    limits = make()
    assert [await limits.hit(key, 3, 60) for _ in range(3)] == [None] * 3
    wait = await limits.hit(key, 3, 60)
    assert wait is not None
    assert 55 < wait <= 60


async def test_keys_are_counted_apart(make: Make, key: str) -> None:
    limits = make()
    assert await limits.hit(f"{key}:a", 1, 60) is None
    assert await limits.hit(f"{key}:b", 1, 60) is None
    assert await limits.hit(f"{key}:a", 1, 60) is not None


async def test_after_the_wait_there_is_room_again(make: Make, key: str) -> None:
    limits = make()
    assert await limits.hit(key, 1, 1) is None
    wait = await limits.hit(key, 1, 1)
    assert wait is not None
    await asyncio.sleep(wait + 0.05)
    assert await limits.hit(key, 1, 1) is None


async def test_a_crowd_gets_no_more_than_was_agreed(make: Make, key: str) -> None:
    limits = make()
    answers = await asyncio.gather(*(limits.hit(key, 10, 60) for _ in range(50)))
    assert answers.count(None) == 10


async def test_servers_share_counts_on_redis_only(make: Make, key: str, request: pytest.FixtureRequest) -> None:
    one, other = make(), make()
    assert await one.hit(key, 1, 60) is None
    shared = await other.hit(key, 1, 60) is not None
    assert shared == (request.node.callspec.params["make"] == "redis")


async def test_a_lost_redis_counts_here_instead_of_refusing_everybody(key: str, caplog: pytest.LogCaptureFixture) -> None:
    limits = make_limits(Settings(data_dir=Path("unused"), redis_url="redis://127.0.0.1:1/0"))
    assert await limits.hit(key, 1, 60) is None
    assert await limits.hit(key, 1, 60) is not None
    assert "Redis" in caplog.text
    await limits.close()
