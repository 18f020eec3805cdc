"""A transaction pooler between server and Postgres: PgBouncer, as Supabase and Neon have one too."""

import asyncio
import os
import signal
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import httpx
import psycopg
import pytest

from commonplace.settings import Settings
from commonplace.store import make_store
from tests.contract.large import use_indexes
from tests.interfaces.house import House, call_tool, open_house
from tests.services import free_port, running_pgbouncer

pytestmark = pytest.mark.anyio

CLIENTS = 16
CALLS = int(os.environ.get("COMMONPLACE_TEST_POOLED_CALLS", "240"))  # 1,000 take half a minute


async def mixed(house: House, client: httpx.AsyncClient, n: int) -> int:
    """One of six calls; the answer's status."""
    title = f"Zebra {n}"
    if n % 6 == 0:
        return (await client.post("/api/v1/search", json={"query": title})).status_code
    if n % 6 == 1:
        return (await client.get("/api/v1/items", params={"q": "zebra"})).status_code
    if n % 6 == 2:
        kept = {"title": title, "content": f"We call zebra {n} shy.", "kind": "decision"}
        return 200 if "result" in await call_tool(client, "remember", kept) else 500
    body = {"kind": "text", "title": title, "text": f"The zebra {n} grazes by the river."}
    added = await client.post("/api/v1/ingest", json=body)
    if n % 6 == 3 or not added.is_success:
        return added.status_code
    address = f"/api/v1/items/{added.json()['user_item_id']}"
    if n % 6 == 4:
        return (await client.delete(address)).status_code
    return (await client.patch(address, json={"tags": [f"t{n}"]})).status_code


async def work(house: House, calls: int) -> Counter[int]:
    """So many calls by 16 clients, while a worker works."""
    statuses, numbers = Counter[int](), iter(range(calls))

    async def one() -> None:
        async with house.client("owner") as client:
            for n in numbers:
                statuses[await mixed(house, client, n) // 100] += 1

    working = asyncio.create_task(house.app.worker.run())
    await asyncio.gather(*(one() for _ in range(CLIENTS)))
    working.cancel()
    return statuses


async def test_mixed_calls_of_many_clients_have_no_errors(
    data_dir: Path, postgres_url: str, new_schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_indexes(monkeypatch)  # the index job too
    with running_pgbouncer(postgres_url) as (url, _):
        async with open_house(data_dir, database_url=url, database_schema=new_schema) as house:
            assert await work(house, CALLS) == {2: CALLS}
            states = await house.app.store.jobs.counts()
            assert not states.get("failed"), states
    with psycopg.connect(postgres_url) as connection:
        [found] = connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()
        assert not found


async def test_a_killed_pooler_is_survived_without_a_restart(
    data_dir: Path, postgres_url: str, new_schema: str
) -> None:
    with ExitStack() as poolers:
        url, pid = poolers.enter_context(running_pgbouncer(postgres_url, port := free_port()))
        async with open_house(data_dir, database_url=url, database_schema=new_schema) as house:
            assert await work(house, 2 * CLIENTS) == {2: 2 * CLIENTS}
            loaded = asyncio.create_task(work(house, 12 * CLIENTS))
            await asyncio.sleep(0.3)
            os.kill(pid, signal.SIGKILL)
            poolers.enter_context(running_pgbouncer(postgres_url, port))
            statuses = await loaded
            assert statuses.keys() <= {2, 5} and statuses[2] > CLIENTS
            assert await work(house, 4 * CLIENTS) == {2: 4 * CLIENTS}


@pytest.mark.parametrize(("own", "used"), [("64MB", "256MB"), ("384MB", "384MB")])
async def test_indexes_are_built_with_the_memory_that_the_operator_gives(
    data_dir: Path, postgres_url: str, new_schema: str, own: str, used: str
) -> None:
    url = f"{postgres_url}{'&' if '?' in postgres_url else '?'}options=-c%20maintenance_work_mem%3D{own}"
    store = make_store(Settings(data_dir=data_dir, database_url=url, database_schema=new_schema))
    await store.open()
    await store._db.define(
        f"CREATE TABLE {new_schema}.x AS SELECT current_setting('maintenance_work_mem') AS used"
    )
    found = await store._db.read(lambda tx: tx.scalar("SELECT used FROM x"))
    await store.close()
    assert found == used
