"""Wake: a signal ends a wait, here or in another process; without one a wait just ends."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from commonplace.adapters import redis_backend
from commonplace.adapters.coordination import make_wake
from commonplace.ports import Wake
from commonplace.settings import Settings

pytestmark = pytest.mark.anyio
LONG = 120.0  # no wait lasts as long unless something is broken


@pytest.fixture(params=["local", "redis"])
async def make(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Callable[[], Wake]]:
    monkeypatch.setattr(
        redis_backend, "ANSWER_SECONDS", 30.0
    )  # a busy machine is not a Redis that hangs
    url = request.getfixturevalue("redis_url") if request.param == "redis" else ""
    async with AsyncExitStack() as stack:

        def one() -> Wake:
            wake = make_wake(Settings(data_dir=Path("unused"), redis_url=url))
            stack.push_async_callback(wake.close)
            return wake

        yield one


async def ended_within(
    waiting: "asyncio.Task[None]", signal: Callable[[], object], seconds: float
) -> bool:
    """Signals until the waiting one hears it: it may not have begun to listen at the first."""
    deadline = time.monotonic() + seconds
    while not waiting.done() and time.monotonic() < deadline:
        await signal()  # type: ignore[misc]
        await asyncio.wait([waiting], timeout=0.05)
    return waiting.done()


async def test_a_signal_ends_the_wait(make: Callable[[], Wake]) -> None:
    wake = make()
    waiting = asyncio.create_task(wake.wait(LONG))
    assert await ended_within(waiting, wake.signal, LONG / 2)
    await waiting


async def test_without_a_signal_the_wait_ends_by_itself(make: Callable[[], Wake]) -> None:
    wake = make()
    began = time.monotonic()
    await wake.wait(0.2)
    assert time.monotonic() - began > 0.15


async def test_a_signal_while_busy_is_heard_at_the_next_wait(make: Callable[[], Wake]) -> None:
    wake = make()
    await wake.wait(0.05)  # listening from now on
    assert await wake.signal()
    began = time.monotonic()
    await wake.wait(LONG)
    assert time.monotonic() - began < LONG / 2


async def test_several_workers_may_wait_on_one(make: Callable[[], Wake]) -> None:
    wake = make()
    workers = [asyncio.create_task(wake.wait(LONG)) for _ in range(3)]
    for worker in workers:
        assert await ended_within(worker, wake.signal, LONG / 2)
    await asyncio.gather(*workers)


async def test_redis_carries_signals_between_processes(redis_url: str) -> None:
    settings = Settings(data_dir=Path("unused"), redis_url=redis_url)
    here, there = make_wake(settings), make_wake(settings)
    waiting = asyncio.create_task(there.wait(LONG))
    assert await ended_within(waiting, here.signal, LONG / 2)
    await waiting
    await here.close()
    await there.close()


async def test_a_lost_redis_only_makes_workers_poll() -> None:
    wake = make_wake(Settings(data_dir=Path("unused"), redis_url="redis://127.0.0.1:1/0"))
    assert not await wake.signal()
    began = time.monotonic()
    await wake.wait(LONG)  # this process hears itself all the same
    await wake.wait(0.2)
    assert 0.15 < time.monotonic() - began < LONG / 2
    await wake.close()


async def test_a_redis_that_hangs_keeps_nobody_waiting() -> None:
    asked = 0

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        await reader.read()
        writer.close()

    async with await asyncio.start_server(hang, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        wake = make_wake(Settings(data_dir=Path("unused"), redis_url=f"redis://127.0.0.1:{port}/0"))
        assert not any([await wake.signal() for _ in range(100)])
        assert asked <= 2
        await wake.close()
