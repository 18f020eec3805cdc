"""kill -9 between an add's answer and its reading: each acknowledged add is there afterwards, once, and is read."""

import asyncio
import os
import random
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from commonplace.app import open_app
from commonplace.settings import Settings
from tests.contract.test_store_schema import run_sql
from tests.interfaces.command import Commands
from tests.interfaces.test_cli_processes import bearer, finish, serving

pytestmark = pytest.mark.slow

KILLS, ADDS = 3, 14
SECONDS = 120


def signed_in(data_dir: Path, place: dict[str, str]) -> tuple[str, str]:
    """The secret of a browser's session, and a token."""

    async def enter() -> tuple[str, str]:
        async with open_app(Settings(data_dir=data_dir, embedder="static", **place)) as app:  # type: ignore[arg-type]
            person, token = await app.people.create_with_token("Ada", "ada@example.org")
            return await app.accounts.open_session(person.id, "test"), token

    return asyncio.run(enter())


def add_all(address: str, session: str, first: int) -> list[str]:
    """What was acknowledged: files by their last byte, notes by their answer."""
    told: list[str] = []
    with httpx.Client(
        base_url=address, cookies={f"commonplace_{urlsplit(address).port}": session}, timeout=30
    ) as client:
        found = re.search(
            r'data-csrf="(\w+)"', client.get("/", headers={"Accept": "text/html"}).text
        )
        assert found
        headers = {"X-CSRF-Token": found[1], "Accept": "application/json"}
        for n in range(first, first + ADDS):
            text = f"Number {n}: the heron stands by the weir at dawn."
            if n % 2:
                answer = client.post("/add", data={"text": text}, headers=headers)
            else:
                body = {"name": f"{n}.txt", "type": "text/plain", "size": len(text)}
                url = client.post("/uploads", json=body, headers=headers).json()["url"]
                answer = client.put(url, content=text.encode())
            assert answer.status_code == 200, answer.text
            told.append(text)
    return told


def wait_until(address: str, token: str, enough: Callable[[int], bool]) -> list[str]:
    """The texts of all items, once enough of them are ready."""
    until = time.monotonic() + SECONDS
    with httpx.Client(base_url=address, headers=bearer(token), timeout=30) as client:
        while True:
            items = client.get("/api/v1/items", params={"per_page": 100}).json()["items"]
            if enough(sum(item["status"] == "ready" for item in items)):
                return [client.get(f"/api/v1/items/{item['id']}").json()["text"] for item in items]
            assert time.monotonic() < until, [
                (item["status"], item["status_reason"]) for item in items
            ]
            time.sleep(0.1)


@pytest.mark.timeout(400)
def test_what_was_acknowledged_is_read_after_a_kill(
    data_dir: Path, either_engine: dict[str, str]
) -> None:
    session, token = signed_in(data_dir, either_engine)
    settings = {"rate_requests_per_minute": "0", **either_engine}
    told: list[str] = []
    for n in range(
        KILLS
    ):  # without workers at first, so that all is unread; then at some point of reading
        with serving(Commands(data_dir, workers=str(min(n, 1)), **settings)) as (
            address,
            _,
            process,
        ):
            told += add_all(address, session, n * ADDS)
            if n:
                some = random.randrange(len(told))
                wait_until(address, token, lambda ready, some=some: ready >= some)  # type: ignore[misc]
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    place = Settings(data_dir=data_dir, **either_engine)  # type: ignore[arg-type]
    for lost in ("UPDATE jobs SET leased_until = 0", "UPDATE job_queues SET next_at = 0"):
        run_sql(place, lost)
    with serving(Commands(data_dir, workers="0", **settings)) as (address, _, process):
        worker = Commands(data_dir, **settings).start(
            "worker", start_new_session=True
        )  # another process reads
        try:
            assert sorted(wait_until(address, token, lambda ready: ready == len(told))) == sorted(
                told
            ), "each is there once"
        finally:
            worker.terminate()
            finish(worker)
