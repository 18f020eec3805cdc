"""Reads from a streaming replica of Postgres: never older than what the caller has written, and never an error."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from commonplace.app import make_asgi, open_app
from commonplace.database import replica as module
from commonplace.settings import Settings
from tests.interfaces.house import NO_LIMITS, House, open_house
from tests.services import StandBy, free_port, running_postgres, running_replica

pytestmark = pytest.mark.anyio


@dataclass
class Pair:
    primary: str
    replica: StandBy

    def settings(self) -> dict[str, Any]:
        return {"database_url": self.primary, "database_read_url": self.replica.url}


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with running_postgres() as (url, _), running_replica(url) as replica:
        yield Pair(url, replica)


@pytest.fixture
async def house(data_dir: Path, pair: Pair) -> AsyncIterator[House]:
    """A server that reads from a replica which has everything."""
    with psycopg.connect(pair.primary, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS commonplace CASCADE")
    async with open_house(data_dir, **pair.settings()) as house:
        await house.add("Zebra")
        pair.replica.catch_up(pair.primary)
        yield house


@asynccontextmanager
async def second_server(house: House, data_dir: Path, pair: Pair) -> AsyncIterator[House]:
    settings = Settings(data_dir=data_dir, embedder="static", **NO_LIMITS, **pair.settings())
    async with open_app(settings) as app:
        asgi = make_asgi(app)
        async with asgi.api.router.lifespan_context(asgi.api):
            yield replace(house, app=app, asgi=asgi)


async def found(client: httpx.AsyncClient, query: str) -> set[str]:
    answer = await client.post("/api/v1/search", json={"query": query})
    assert answer.status_code == 200, answer.text
    return {hit["disk_title"] for hit in answer.json()["results"]}


async def add(client: httpx.AsyncClient, title: str) -> str:
    body = {"kind": "text", "title": title, "text": f"{title}: the okapi hides in the forest."}
    answer = await client.post("/api/v1/ingest", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["user_item_id"])


async def test_searches_and_lists_are_read_from_the_replica(house: House, pair: Pair) -> None:
    async with house.client("owner") as owner:
        with psycopg.connect(pair.primary, autocommit=True) as connection:
            # What only the primary has: an answer without it comes from the replica.
            pair.replica.ask("SELECT pg_wal_replay_pause()")
            connection.execute("UPDATE commonplace.items SET title = 'Primary'")
            try:
                assert [i["title"] for i in (await owner.get("/api/v1/items")).json()["items"]] == [
                    "Zebra"
                ]
                assert await found(owner, "zebra river") == {"Zebra"}
            finally:
                pair.replica.ask("SELECT pg_wal_replay_resume()")


async def test_a_caller_sees_their_writes_at_once_through_any_server(
    house: House, data_dir: Path, pair: Pair
) -> None:
    async with second_server(house, data_dir, pair) as other:
        pair.replica.ask("SELECT pg_wal_replay_pause()")
        try:
            async with house.client("owner") as one, other.client("owner") as two:
                for n in range(10):
                    title = f"Okapi {n}"
                    item = await add(one, title)
                    assert title in await found(two, "okapi forest")
                    changed = await two.patch(f"/api/v1/items/{item}", json={"tags": [f"t{n}"]})
                    assert changed.status_code == 200
                    read = await one.get(f"/api/v1/items/{item}")
                    assert read.json()["tags"] == [f"t{n}"]
                folder = (await one.post("/api/v1/folders", json={"name": "New"})).json()["id"]
                assert folder in [
                    f["id"] for f in (await two.get("/api/v1/folders")).json()["folders"]
                ]
                await two.delete(f"/api/v1/items/{item}")
                assert (await one.get(f"/api/v1/items/{item}")).status_code == 404
                # Nobody else waits for these writes.
                before = pair.replica.ask("SELECT count(*) FROM commonplace.items")
                assert before == (1,)
        finally:
            pair.replica.ask("SELECT pg_wal_replay_resume()")


async def test_a_dead_replica_costs_no_errors_and_comes_back(
    house: House, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house.client("owner") as owner:
        assert await found(owner, "zebra river") == {"Zebra"}
        pair.replica.stop()
        try:
            assert await found(owner, "zebra river") == {"Zebra"}
            item = await add(owner, "Okapi")
            assert (await owner.get(f"/api/v1/items/{item}")).json()["title"] == "Okapi"
        finally:
            pair.replica.start()
        pair.replica.catch_up(pair.primary)
        monkeypatch.setattr(module.Replica, "answers", True)  # without the pause after a failure
        pair.replica.ask("SELECT pg_wal_replay_pause()")
        try:
            with psycopg.connect(pair.primary, autocommit=True) as connection:
                connection.execute("UPDATE commonplace.items SET title = 'Primary'")
            titles = {"Primary"}
            while "Primary" in titles:
                titles = {i["title"] for i in (await owner.get("/api/v1/items")).json()["items"]}
            assert titles == {"Zebra", "Okapi"}
        finally:
            pair.replica.ask("SELECT pg_wal_replay_resume()")


async def test_a_server_starts_while_its_replica_is_down(data_dir: Path, pair: Pair) -> None:
    gone = f"postgresql://postgres@127.0.0.1:{free_port()}/postgres"
    with psycopg.connect(pair.primary, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS commonplace CASCADE")
    async with (
        open_house(data_dir, **pair.settings() | {"database_read_url": gone}) as house,
        house.client("owner") as owner,
    ):
        await add(owner, "Okapi")
        assert await found(owner, "okapi forest") == {"Okapi"}


async def test_what_a_worker_has_told_is_there_to_be_read(house: House, pair: Pair) -> None:
    async with house.client("owner") as owner:
        [item] = (await owner.get("/api/v1/items")).json()["items"]
        events = (await owner.get("/api/v1/events")).json()
        pair.replica.catch_up(pair.primary)
        pair.replica.ask("SELECT pg_wal_replay_pause()")
        try:
            # As a worker: nobody has called it.
            found = await house.app.library.find(house.owner, item["id"])
            assert found is not None
            await house.app.store.items.update(
                house.owner.scope,
                found.id,
                {"title": "Read by now"},
                expected_revision=None,
                sections=None,
                stamp="",
                jobs=(),
            )
            answer = await owner.get("/api/v1/events", params={"after": events["next"]})
            assert [event["item_id"] for event in answer.json()["events"]] == [item["id"]]
            read = (await owner.get(f"/api/v1/items/{item['id']}")).json()
            assert read["title"] == "Read by now"
        finally:
            pair.replica.ask("SELECT pg_wal_replay_resume()")


async def test_what_is_unpublished_is_gone_for_others_at_once(house: House, pair: Pair) -> None:
    async with house.client("owner") as owner, house.client("stranger") as stranger:
        item = await add(owner, "Okapi")
        published = await owner.post(f"/api/v1/disks/{item}/publish", json={"summary": "Shy."})
        assert published.status_code == 200, published.text
        disk = published.json()["public_id"]
        pair.replica.catch_up(pair.primary)
        assert (await stranger.get(f"/api/v1/disks/{disk}")).status_code == 200
        pair.replica.ask("SELECT pg_wal_replay_pause()")
        try:
            assert (await owner.delete(f"/api/v1/disks/{disk}/publish")).is_success
            assert (await stranger.get(f"/api/v1/disks/{disk}")).status_code == 404
        finally:
            pair.replica.ask("SELECT pg_wal_replay_resume()")


async def test_a_replica_that_hangs_is_not_waited_for(
    house: House, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HANG_SECONDS", 0.3)
    async with house.client("owner") as owner:
        assert await found(owner, "zebra river") == {"Zebra"}
        with pair.replica.frozen():
            assert await found(owner, "zebra river") == {"Zebra"}
            assert await found(owner, "zebra river") == {"Zebra"}
        monkeypatch.setattr(module.Replica, "answers", True)
        assert await found(owner, "zebra river") == {"Zebra"}
