"""Limits: what every store of counts must do."""

import asyncio
import os
import signal
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from commonplace.adapters import redis_backend
from commonplace.adapters.coordination import make_limits
from commonplace.ports import Limits, Window
from commonplace.settings import Settings
from tests.services import running_redis

pytestmark = pytest.mark.anyio
Make = Callable[[], Limits]


@pytest.fixture(params=["memory", "redis"])
async def make(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Make]:
    """Makes instances as several servers with the same settings would."""
    monkeypatch.setattr(
        redis_backend, "ANSWER_SECONDS", 30.0
    )  # a busy machine is not a Redis that hangs
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
    windows = [await limits.hit(key, 3, 60) for _ in range(3)]
    assert windows == [Window(True, left, 60.0) for left in (2, 1, 0)]
    refused = await limits.hit(key, 3, 60)
    assert (refused.allowed, refused.remaining) == (False, 0)
    assert 55 < refused.reset <= 60


async def test_a_look_counts_nothing(make: Make, key: str) -> None:
    limits = make()
    assert [await limits.peek(key, 2, 60) for _ in range(3)] == [Window(True, 2, 0.0)] * 3
    await limits.hit(key, 2, 60)
    for _ in range(3):
        window = await limits.peek(key, 2, 60)
        assert (window.allowed, window.remaining) == (True, 1)
        assert 55 < window.reset <= 60
    await limits.hit(key, 2, 60)
    for _ in range(3):
        window = await limits.peek(key, 2, 60)
        assert (window.allowed, window.remaining) == (False, 0)
        assert 55 < window.reset <= 60


async def test_the_first_use_leaves_the_window_before_the_last(make: Make, key: str) -> None:
    limits = make()
    await limits.hit(key, 3, 60)
    await asyncio.sleep(0.3)
    await limits.hit(key, 3, 60)
    all_free = (await limits.peek(key, 3, 60)).reset
    await limits.hit(key, 3, 60)
    one_free = (await limits.peek(key, 3, 60)).reset
    assert one_free + 0.2 < all_free


async def test_keys_are_counted_apart(make: Make, key: str) -> None:
    limits = make()
    assert (await limits.hit(f"{key}:a", 1, 60)).allowed
    assert (await limits.hit(f"{key}:b", 1, 60)).allowed
    assert not (await limits.hit(f"{key}:a", 1, 60)).allowed


async def test_after_the_wait_there_is_room_again(make: Make, key: str) -> None:
    limits = make()
    assert (await limits.hit(key, 1, 1)).allowed
    refused = await limits.hit(key, 1, 1)
    assert not refused.allowed
    await asyncio.sleep(refused.reset + 0.05)
    assert await limits.peek(key, 1, 1) == Window(True, 1, 0.0)
    assert (await limits.hit(key, 1, 1)).allowed


async def test_a_crowd_gets_no_more_than_was_agreed(make: Make, key: str) -> None:
    limits = make()
    windows = await asyncio.gather(*(limits.hit(key, 10, 60) for _ in range(50)))
    assert sum(window.allowed for window in windows) == 10


async def test_servers_share_counts_on_redis_only(
    make: Make, key: str, request: pytest.FixtureRequest
) -> None:
    one, other = make(), make()
    assert (await one.hit(key, 1, 60)).allowed
    shared = not (await other.hit(key, 1, 60)).allowed
    assert shared == (request.node.callspec.params["make"] == "redis")


async def test_a_lost_redis_counts_here_instead_of_refusing_everybody(
    key: str, caplog: pytest.LogCaptureFixture
) -> None:
    limits = make_limits(Settings(data_dir=Path("unused"), redis_url="redis://127.0.0.1:1/0"))
    assert (await limits.hit(key, 1, 60)).allowed
    assert not (await limits.peek(key, 1, 60)).allowed
    assert not (await limits.hit(key, 1, 60)).allowed
    assert "Redis" in caplog.text
    await limits.close()


# -- a Redis that does not do its work must not keep anybody from theirs


@asynccontextmanager
async def bad_redis(answer: bytes = b"") -> AsyncIterator[tuple[Limits, list[int]]]:
    """Limits on a server that accepts connections and gives this answer, or none; and the connections there were."""
    came: list[int] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.append(1)
        while await reader.read(65536):
            writer.write(answer)
        writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        limits = make_limits(
            Settings(data_dir=Path("unused"), redis_url=f"redis://127.0.0.1:{port}/0")
        )
        yield limits, came
        await limits.close()


@pytest.mark.parametrize("answer", [b"", b"-ERR out of order\r\n", b"rubbish"])
async def test_a_redis_that_hangs_is_asked_once_and_then_left_alone(
    answer: bytes, key: str
) -> None:
    async with bad_redis(answer) as (limits, came):
        windows = [await limits.hit(key, 150, 60) for _ in range(200)]
        assert sum(window.allowed for window in windows) == 150, "this server counts by itself"
        assert len(came) <= 2


async def test_after_the_pause_one_call_tries_again(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bad_redis() as (limits, came):
        await limits.hit(key, 100, 60)
        before = len(came)
        monkeypatch.setattr(redis_backend, "PAUSE_SECONDS", 1000.0)
        monkeypatch.setattr(
            redis_backend.time, "monotonic", lambda now=redis_backend.time.monotonic: now() + 31
        )
        windows = await asyncio.gather(*(limits.hit(key, 100, 60) for _ in range(50)))
        assert all(window.allowed for window in windows)
        assert 1 <= len(came) - before <= 2  # one retry


async def test_a_stopped_redis_is_missed_and_found_again(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_backend, "PAUSE_SECONDS", 0.3)
    with running_redis() as (url, process):
        one, other = (
            make_limits(Settings(data_dir=Path("unused"), redis_url=url)) for _ in range(2)
        )
        assert await until_shared(one, other)
        os.kill(process, signal.SIGSTOP)
        try:
            assert all([(await limits.hit(key, 1, 60)).allowed for limits in (one, other)])
            async with asyncio.timeout(60):
                again = [await limits.hit(key, 1, 60) for limits in (one, other)]
                assert not any(window.allowed for window in again)
        finally:
            os.kill(process, signal.SIGCONT)
        assert await until_shared(one, other), "limits hold for all servers again"
        await one.close()
        await other.close()


async def until_shared(one: Limits, other: Limits) -> bool:
    """Whether one server comes to know what the other has counted."""
    for _ in range(200):
        key = uuid.uuid4().hex
        if (await one.hit(key, 1, 60)).allowed and not (await other.hit(key, 1, 60)).allowed:
            return True
        await asyncio.sleep(0.05)
    return False
