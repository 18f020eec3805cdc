"""Events over REST: what is told to whom, page by page and as a stream."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from commonplace.core.events import events as core
from commonplace.settings import Settings
from tests.contract.test_store_schema import run_sql
from tests.interfaces.house import House, call_tool
from tests.interfaces.live import live_house

PATH = "/api/v1/events"
TEXT = "The heron stands in the river and waits for fish."


async def page(client: httpx.AsyncClient, **query: Any) -> dict[str, Any]:
    response = await client.get(PATH, params=query)
    assert response.status_code == 200, response.text
    return dict(response.json())


async def told(client: httpx.AsyncClient, **query: Any) -> list[tuple[str, str]]:
    return [(each["type"], each["item_id"]) for each in (await page(client, **query))["events"]]


@pytest.mark.anyio
async def test_a_client_that_asks_again_and_again_hears_of_each_change_once(
    owner: httpx.AsyncClient,
) -> None:
    me = (await owner.get("/api/v1/me")).json()
    empty = await page(owner)
    assert empty["events"] == []
    added = await owner.post("/api/v1/ingest", json={"kind": "text", "title": "T", "text": TEXT})
    item_id = added.json()["user_item_id"]
    first = await page(owner, after=empty["next"])
    assert [each["type"] for each in first["events"]] == ["item.added", "item.ready"]
    for event in first["events"]:
        assert event.keys() == {"id", "type", "at", "item_id", "actor"}
        assert (event["item_id"], event["actor"]) == (item_id, me["token"]["id"])
    assert (await page(owner, after=first["next"]))["events"] == []
    await owner.patch(f"/api/v1/items/{item_id}", json={"title": "New"})
    await owner.post(f"/api/v1/disks/{item_id}/publish", json={})
    await owner.delete(f"/api/v1/items/{item_id}")
    later = [("item.changed", item_id), ("disk.published", item_id), ("item.deleted", item_id)]
    assert await told(owner, after=first["next"]) == later
    assert await told(owner, after=first["events"][-1]["id"]) == later, "ids are cursors"
    assert await told(owner, limit=1) == [("item.added", item_id)]
    ids = [each["id"] for each in (await page(owner))["events"]]
    assert len(set(ids)) == 5
    assert ids == [each["id"] for each in (await page(owner))["events"]]


@pytest.mark.anyio
async def test_work_and_candidates_are_events(owner: httpx.AsyncClient) -> None:
    project = await owner.post(
        "/api/entities?sync=true",
        json={"title": "River", "content": "A project.", "entity_type": "project"},
    )
    task = await owner.post(
        "/api/entities?sync=true",
        json={
            "title": "Count herons",
            "content": "At dawn.",
            "entity_type": "task",
            "project": project.json()["id"],
        },
    )
    before = (await page(owner))["next"]
    await call_tool(owner, "manage", {"action": "start_task", "entity_id": task.json()["id"]})
    assert {kind for kind, _ in await told(owner, after=before)} == {"task.changed"}
    before = (await page(owner))["next"]
    notes = {
        "content": "We decided to count the herons at dawn, because they are awake then.",
        "persist": True,
        "review": True,
    }
    reflected = await owner.post("/api/v1/memory/reflect", json=notes)
    assert reflected.status_code == 200, reflected.text
    kinds = [kind for kind, _ in await told(owner, after=before)]
    assert kinds == ["item.added", "item.ready", "memory.candidate"]


@pytest.mark.anyio
async def test_scoped_tokens_hear_only_of_their_items(
    house: House, owner: httpx.AsyncClient
) -> None:
    red, _ = await house.add("Red", folder="Red")
    blue, _ = await house.add("Blue", folder="Blue")
    loose, _ = await house.add("Loose", in_kb=False)
    await owner.delete(f"/api/v1/items/{red}")
    async with (
        house.client("one_folder") as one,
        house.client("two_folder") as two,
        house.client("kb_only") as kb,
        house.client("stranger") as stranger,
    ):
        assert {item for _, item in await told(one)} == {red}
        assert (await told(one))[-1] == ("item.deleted", red)
        assert {item for _, item in await told(two)} == {red, blue}
        assert loose not in {item for _, item in await told(kb)}
        assert await told(stranger) == []
        assert {each["actor"] for each in (await page(one))["events"]} == {None}
        cursor = (await page(one))["next"]
        await house.add("Elsewhere", folder="Blue")
        quiet = await page(one, after=cursor)
        assert quiet["events"] == []
        assert quiet["next"] not in (cursor, (await page(one, after=cursor))["next"]), (
            "the cursor does not tell whether something happened elsewhere"
        )
        foreign = await stranger.get(PATH, params={"after": cursor})
        assert (foreign.status_code, foreign.json()["error"]) == (422, "invalid_request")


@pytest.mark.anyio
@pytest.mark.parametrize(
    "query", [{"after": "x"}, {"after": "é" * 9}, {"limit": 0}, {"limit": 101}, {"before": "1"}]
)
async def test_wrong_questions_are_refused(owner: httpx.AsyncClient, query: dict[str, Any]) -> None:
    assert (await owner.get(PATH, params=query)).status_code == 422


# -- the stream


@pytest.fixture
def live(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, House]]:
    monkeypatch.setattr(core, "POLL_SECONDS", 0.02)
    with live_house(data_dir) as opened:
        yield opened


def client(live: tuple[str, House], name: str = "owner") -> httpx.Client:
    address, house = live
    headers = {"Authorization": f"Bearer {house.tokens[name]}"}
    return httpx.Client(base_url=address, headers=headers, timeout=30)


@contextmanager
def stream(
    asker: httpx.Client, last: str | None = None
) -> Iterator[tuple[httpx.Response, Iterator[str]]]:
    headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last} if last else {})
    with asker.stream("GET", PATH, headers=headers) as response:
        lines = response.iter_lines()
        if response.status_code == 200:
            assert next(lines) == ": keep-alive", "it is there before something happens"
        yield response, lines


def read(lines: Iterator[str], count: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        if name:
            fields[name] = value
        elif not line and "data" in fields:
            event = json.loads(fields["data"])
            assert (fields["event"], fields["id"]) == (event["type"], event["id"])
            found.append(event)
            fields = {}
            if len(found) == count:
                return found
    return found


def add(asker: httpx.Client, text: str = TEXT) -> str:
    body = {"kind": "text", "title": "T", "text": text}
    return str(asker.post("/api/v1/ingest", json=body).json()["user_item_id"])


def test_a_stream_tells_what_happens_and_resumes(live: tuple[str, House]) -> None:
    with client(live) as owner:
        early = add(owner, "Before anybody listens, there is a heron.")
        with stream(owner) as (response, lines):
            assert response.headers["content-type"].startswith("text/event-stream")
            item = add(owner)
            first, second = read(lines, 2)
            assert [first["type"], second["type"]] == ["item.added", "item.ready"]
            assert {first["item_id"], second["item_id"]} == {item}
        owner.delete(f"/api/v1/items/{item}")
        listed = owner.get(PATH).json()["events"]
        with stream(owner, first["id"]) as (_, lines):
            resumed = read(lines, 2)
        assert resumed == listed[-2:]
        assert [each["type"] for each in resumed] == ["item.ready", "item.deleted"]
        assert early in {each["item_id"] for each in listed}


def test_a_scoped_stream_hears_only_of_its_items(live: tuple[str, House]) -> None:
    with client(live) as owner, client(live, "one_folder") as one, stream(one) as (_, lines):
        add(owner, "Out of sight, the heron waits in the reeds.")
        mine = add(one)
        assert {each["item_id"] for each in read(lines, 2)} == {mine}


def test_a_stream_tells_the_progress_of_transcriptions(
    live: tuple[str, House], data_dir: Path
) -> None:
    with client(live) as owner, client(live, "one_folder") as one:
        item = add(owner)
        with stream(owner) as (_, lines), stream(one) as (_, others):
            run_sql(
                Settings(data_dir=data_dir),
                f"""INSERT INTO jobs (library_id, id, item_id, kind, state, attempts, run_after,
                    leased_until, progress, created_at, updated_at, payload)
                    SELECT library_id, 'j', id, 'transcribe', 'running', 1, 0, 9e15, 0.25, 0, 0, '{{}}'
                    FROM items WHERE id = '{item}'""",
            )
            assert (next(lines), json.loads(next(lines).removeprefix("data: "))["progress"]) == (
                "event: job.progress",
                0.25,
            )
            mine = add(one, "In the red folder a heron waits for nothing.")
            assert read(others, 1)[0]["item_id"] == mine


def test_a_stream_ends_with_its_token(
    live: tuple[str, House], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core, "HEARTBEAT_SECONDS", 0.05)
    with client(live) as owner, client(live, "two_folder") as two, stream(two) as (_, lines):
        assert next(lines) == ": keep-alive"
        token_id = two.get("/api/v1/me").json()["token"]["id"]
        assert owner.delete(f"/api/v1/tokens/{token_id}").status_code == 200
        assert {line for line in lines} <= {": keep-alive"}, "the iteration ends"


def test_streams_are_bounded(live: tuple[str, House], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "STREAMS_OF_ONE", 1)
    with client(live) as owner, client(live, "one_folder") as one:
        with stream(owner):
            with stream(owner) as (refused, _):
                assert refused.status_code == 429
            with stream(one) as (other, _):
                assert other.status_code == 200
        monkeypatch.setattr(core, "HEARTBEAT_SECONDS", 0.05)
        for _ in range(200):  # until the server has noticed that the first one is gone
            with stream(owner) as (again, _):
                if again.status_code == 200:
                    return
            threading.Event().wait(0.05)
        raise AssertionError("no room after the stream was closed")
