"""Units of work in threads: told to whoever waits, run to the end for whoever left."""

import asyncio
import threading

import pytest

from commonplace.thread_pool import ThreadPool

pytestmark = pytest.mark.anyio


async def test_answers_and_failures_come_back_from_other_threads() -> None:
    threads = ThreadPool(2, "test")
    names = await asyncio.gather(
        *(threads.run(lambda: threading.current_thread().name) for _ in range(20))
    )
    assert set(names) <= {"test-0", "test-1"}
    with pytest.raises(ZeroDivisionError):
        await threads.run(lambda: 1 // 0)
    assert await threads.run(lambda: "still there") == "still there"
    threads.close()


async def test_work_is_done_though_nobody_waits_any_more() -> None:
    threads, begun, go_on, done = ThreadPool(1, "test"), threading.Event(), threading.Event(), []

    def work() -> None:
        begun.set()
        go_on.wait(10)
        done.append("first")

    waiting = asyncio.create_task(threads.run(work))
    behind = asyncio.create_task(threads.run(lambda: done.append("second")))
    await asyncio.to_thread(begun.wait, 10)
    for task in (waiting, behind):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    go_on.set()
    threads.close()
    assert done == ["first", "second"]


def test_a_loop_that_is_closed_meanwhile_does_not_end_the_thread() -> None:
    threads, go_on = ThreadPool(1, "test"), threading.Event()

    async def leave() -> None:
        waiting = asyncio.create_task(threads.run(lambda: go_on.wait(10)))
        await asyncio.wait([waiting], timeout=0.01)

    asyncio.run(leave())
    go_on.set()
    assert asyncio.run(threads.run(lambda: 7)) == 7
    threads.close()


async def test_who_comes_after_the_end_is_told_and_does_not_wait_for_ever() -> None:
    threads = ThreadPool(1, "test")
    assert await threads.run(lambda: 7) == 7
    threads.close()
    with pytest.raises(RuntimeError, match="closed"):
        await asyncio.wait_for(threads.run(lambda: 7), 60)
    never_used = ThreadPool(1, "test")
    never_used.close()
    with pytest.raises(RuntimeError, match="closed"):
        await asyncio.wait_for(never_used.run(lambda: 7), 60)
