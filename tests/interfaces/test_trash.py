"""Deleting moves to the trash, whoever deletes by whatever interface, and restoring undoes it."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from commonplace.core.transfer.markdown_folder import export_folder
from commonplace.model import Json, no_advance
from tests.interfaces.house import House, call_tool, open_house, rpc

pytestmark = pytest.mark.anyio


@pytest.fixture
async def house(data_dir: Path) -> AsyncIterator[House]:
    async with open_house(data_dir) as opened:
        yield opened


async def ok(answer: Any) -> Any:
    response = await answer
    assert response.is_success, response.text
    return response.json()


async def in_trash(client: httpx.AsyncClient) -> list[str]:
    found = await ok(client.get("/api/v1/trash"))
    assert found["total"] == len(found["items"])
    return [entry["title"] for entry in found["items"]]


async def remember(client: httpx.AsyncClient, title: str, **more: Any) -> Json:
    body = {"title": title, "content": f"{title}: the pilot waits by the buoy.", **more}
    return dict(await ok(client.post("/api/v1/memory/remember", json=body)))


async def test_every_delete_moves_to_the_trash(house: House) -> None:
    async with house.client("owner") as owner:
        ids = {name: (await house.add(name))[0] for name in ("rest", "entities", "manage")}
        ids["cascade"], _ = await house.add("cascade", folder="Red")
        await ok(owner.delete(f"/api/v1/items/{ids['rest']}"))
        await ok(owner.delete(f"/api/entities/{ids['entities']}"))
        told = await call_tool(owner, "manage", {"action": "delete", "entity_id": ids["manage"]})
        assert told["result"]["structuredContent"]["success"]
        await ok(owner.delete(f"/api/v1/folders/{house.folders['Red']}?cascade_items=true"))
        assert await in_trash(owner) == ["cascade", "manage", "entities", "rest"]
        for item_id in ids.values():
            assert (await owner.get(f"/api/v1/items/{item_id}")).status_code == 404
            assert (await owner.delete(f"/api/v1/items/{item_id}")).status_code == 404
            restored = await ok(owner.post(f"/api/v1/trash/{item_id}/restore"))
            assert restored["id"] == item_id
            assert (await owner.post(f"/api/v1/trash/{item_id}/restore")).status_code == 404
        assert await in_trash(owner) == []
        assert (await ok(owner.get("/api/v1/items")))["total"] == 4


async def test_an_entry_says_what_it_was_and_how_long_it_stays(house: House) -> None:
    item_id, _ = await house.add("One", folder="Red")
    async with house.client("owner") as owner, house.client("one_folder") as one:
        before = await ok(owner.get(f"/api/v1/items/{item_id}"))
        await ok(one.delete(f"/api/v1/items/{before['public_id']}"))
        [entry] = (await ok(owner.get("/api/v1/trash")))["items"]
        assert (entry["id"], entry["title"], entry["type"]) == (item_id, "One", "document")
        assert entry["deleted_by"] == "one"
        kept = datetime.fromisoformat(entry["expires_at"]) - datetime.fromisoformat(
            entry["deleted_at"]
        )
        assert kept == timedelta(days=30)
        await ok(one.post(f"/api/v1/trash/document_{before['public_id']}/restore"))
        assert await ok(owner.get(f"/api/v1/items/{item_id}")) == before
        await ok(owner.delete(f"/api/v1/items/{item_id}"))
        [entry] = (await ok(one.get("/api/v1/trash")))["items"]
        assert entry["deleted_by"] is None  # out of its scope


async def test_lists_have_pages(house: House) -> None:
    async with house.client("owner") as owner:
        for n in range(3):
            await ok(owner.delete(f"/api/v1/items/{(await house.add(str(n)))[0]}"))
        first = await ok(owner.get("/api/v1/trash?per_page=2"))
        assert ([e["title"] for e in first["items"]], first["total"]) == (["2", "1"], 3)
        second = await ok(owner.get(first["next"]))
        assert [e["title"] for e in second["items"]] == ["0"]


async def test_only_tokens_of_the_whole_library_delete_for_good(house: House) -> None:
    ids = [(await house.add(str(n), folder="Red"))[0] for n in range(4)]
    async with house.client("owner") as owner, house.client("one_folder") as one:
        address = f"/api/v1/items/{ids[0]}?permanent=true"
        assert (await one.delete(address)).json()["error"] == "forbidden_scope"
        await ok(owner.delete(address))
        assert await in_trash(owner) == []
        for item_id in ids[1:]:
            await ok(one.delete(f"/api/v1/items/{item_id}"))
        for refused in (f"/api/v1/trash/{ids[1]}", "/api/v1/trash"):
            assert (await one.delete(refused)).json()["error"] == "forbidden_scope"
        await ok(owner.delete(f"/api/v1/trash/{ids[1]}"))
        assert (await owner.delete(f"/api/v1/trash/{ids[1]}")).status_code == 404
        assert await ok(owner.delete("/api/v1/trash")) == {"ok": True, "deleted": 2}
        assert await in_trash(owner) == await in_trash(one) == []
        for item_id in ids:
            assert (await owner.post(f"/api/v1/trash/{item_id}/restore")).status_code == 404


async def test_a_token_sees_what_was_in_its_scope_and_nothing_of_what_others_still_have(
    house: House,
) -> None:
    both, _ = await house.add("Both", folder="Red")
    await house.app.folders.file(house.owner, both, [house.folders["Blue"]])
    green, _ = await house.add("Green", folder="Green")
    async with (
        house.client("owner") as owner,
        house.client("one_folder") as one,
        house.client("two_folder") as two,
    ):
        await ok(owner.delete(f"/api/v1/items/{green}"))
        before = await ok(owner.get(f"/api/v1/items/{both}"))
        start = (await ok(owner.get("/api/v1/events")))["next"]
        await ok(one.delete(f"/api/v1/items/{both}"))
        assert (await ok(owner.get(f"/api/v1/items/{both}")))["folder_ids"] == [
            house.folders["Blue"]
        ]
        assert (await one.get(f"/api/v1/items/{both}")).status_code == 404
        assert await in_trash(one) == ["Both"]
        assert await in_trash(two) == []
        assert await in_trash(owner) == ["Green"]
        for client in (one, two):
            assert (await client.post(f"/api/v1/trash/{green}/restore")).status_code == 404
        restored = await ok(one.post(f"/api/v1/trash/{both}/restore"))
        assert restored["folder_ids"] == [house.folders["Red"]]
        seen = (await ok(one.get("/api/v1/events", params={"after": start})))["events"]
        assert [e["type"] for e in seen] == ["item.restored"]  # as if nobody else had it
        told = (await ok(owner.get("/api/v1/events", params={"after": start})))["events"]
        assert [e["type"] for e in told] == ["item.changed", "item.changed", "item.restored"]
        after = await ok(owner.get(f"/api/v1/items/{both}"))
        assert (after["folder_ids"], await in_trash(one)) == (before["folder_ids"], [])


async def test_what_belongs_to_it_comes_back(house: House) -> None:
    async with house.client("owner") as owner:
        project = await ok(
            owner.post(
                "/api/entities?sync=true",
                json={"entity_type": "project", "title": "Harbour", "content": "The harbour."},
            )
        )
        kept = await remember(owner, "Pilots", idempotency_key="k", project=project["id"])
        await ok(owner.patch(f"/api/entities/{kept['id']}", json={"content": "No pilots."}))
        note = await house.app.annotations.add(house.owner, kept["id"], "Really?")
        addresses = [
            f"/api/v1/items/{kept['id']}",
            f"/api/v1/items/{kept['id']}/versions",
            f"/api/v1/memory/captures/{kept['id']}",
            f"/api/entities/{kept['id']}/relations",
            f"/api/v1/items/{note.id}",
        ]
        before = [await ok(owner.get(address)) for address in addresses]
        await ok(owner.delete(f"/api/v1/items/{kept['id']}"))
        for address in addresses:
            assert (await owner.get(address)).status_code == 404
        assert await in_trash(owner) == ["Pilots"]
        search = {"query": "pilots", "mode": "keyword"}
        assert (await ok(owner.post("/api/v1/search", json=search)))["results"] == []
        item = before[0]["id"]
        await ok(owner.post(f"/api/v1/trash/{item}/restore"))
        assert [await ok(owner.get(address)) for address in addresses] == before
        found = (await ok(owner.post("/api/v1/search", json=search)))["results"]
        assert item in {hit["item_id"] for hit in found}
        again = await remember(owner, "Pilots", idempotency_key="k", project=project["id"])
        assert again["id"] == kept["id"]


async def test_adding_the_same_again_makes_a_new_item(house: House) -> None:
    async with house.client("owner") as owner:
        text = {"kind": "text", "title": "Twice", "text": "The zebra grazes by the river."}
        key = {"Idempotency-Key": "once"}
        first = await ok(owner.post("/api/v1/ingest", json=text, headers=key))
        kept = await remember(owner, "Pilots", idempotency_key="k")
        await ok(owner.delete(f"/api/v1/items/{first['user_item_id']}"))
        await ok(owner.delete(f"/api/v1/items/{kept['id']}"))
        second = await ok(owner.post("/api/v1/ingest", json=text, headers=key))
        assert second["user_item_id"] != first["user_item_id"]
        again = await remember(owner, "Pilots", idempotency_key="k")
        assert again["id"] != kept["id"]
        for item_id in (first["user_item_id"], kept["id"]):
            await ok(owner.post(f"/api/v1/trash/{item_id}/restore"))
        assert (await ok(owner.get("/api/v1/items")))["total"] == 4
        assert (await remember(owner, "Pilots", idempotency_key="k"))["id"] == again["id"]


async def test_a_published_disk_is_private_at_once_and_stays_so(house: House) -> None:
    item_id, _ = await house.add("Shared")
    async with house.client("owner") as owner, house.client("stranger") as stranger:
        await ok(owner.post(f"/api/v1/disks/{item_id}/publish", json={}))
        await ok(stranger.get(f"/api/v1/disks/{item_id}"))
        await ok(owner.delete(f"/api/v1/items/{item_id}"))
        assert (await stranger.get(f"/api/v1/disks/{item_id}")).status_code == 404
        restored = await ok(owner.post(f"/api/v1/trash/{item_id}/restore"))
        assert restored["visibility"] == "private"
        assert (await stranger.get(f"/api/v1/disks/{item_id}")).status_code == 404


async def test_an_epic_follows_tasks_that_go_and_come_back(house: House) -> None:
    async with house.client("owner") as owner:

        async def make(kind: str, title: str, **more: Any) -> str:
            body = {"entity_type": kind, "title": title, "content": title, **more}
            return str((await ok(owner.post("/api/entities?sync=true", json=body)))["id"])

        of = {"project": await make("project", "Harbour")}
        epic = await make("epic", "Dredging", **of)
        done, left = [await make("task", title, epic=epic, **of) for title in ("a", "b")]

        async def status() -> str:
            return str((await ok(owner.get(f"/api/epics/{epic}")))["status"])

        for action in ("start", "complete"):
            await ok(owner.post(f"/api/tasks/{done}/{action}", json={}))
        before = await status()
        await ok(owner.delete(f"/api/entities/{left}"))
        assert await status() == "completed" != before
        await ok(owner.post(f"/api/v1/trash/{left}/restore"))
        assert await status() == before
        tasks = await ok(owner.get("/api/tasks", params={"epic": epic}))
        assert {task["title"] for task in tasks["tasks"]} == {"a", "b"}


async def test_events_tell_of_it_to_those_who_see_it(house: House) -> None:
    item_id, _ = await house.add("One", folder="Red")
    async with house.client("owner") as owner, house.client("one_folder") as one:
        start = (await ok(owner.get("/api/v1/events")))["next"]
        await ok(owner.delete(f"/api/v1/items/{item_id}"))
        seen = (await ok(one.get("/api/v1/events", params={"after": start})))["events"]
        assert [(e["type"], e["item_id"]) for e in seen] == [("item.deleted", item_id)]
        await ok(owner.post(f"/api/v1/trash/{item_id}/restore"))
        types = [
            [
                e["type"]
                for e in (await ok(c.get("/api/v1/events", params={"after": start})))["events"]
            ]
            for c in (owner, one)
        ]
        assert types == [["item.deleted", "item.restored"], ["item.restored"]]


async def test_nothing_of_it_is_counted_or_exported(house: House, tmp_path: Path) -> None:
    item_id, _ = await house.add("One", folder="Red")
    async with house.client("owner") as owner:
        stats = await rpc(owner, "resources/read", {"uri": "commonplace://stats"})
        await ok(owner.delete(f"/api/v1/items/{item_id}"))
        assert await rpc(owner, "resources/read", {"uri": "commonplace://stats"}) != stats
        await export_folder(
            house.app.library,
            house.app.versions,
            house.app.folders,
            house.owner,
            tmp_path / "export",
            no_advance,
        )
        assert not any("zebra" in f.read_text() for f in (tmp_path / "export").rglob("*.md"))
        folders = (await ok(owner.get("/api/v1/folders")))["folders"]
        assert {folder["item_count"] for folder in folders} == {0}


async def test_restoring_is_a_write_and_emptying_one_delete(data_dir: Path) -> None:
    limits: Json = {"rate_deletes_per_hour": 4, "rate_writes_per_hour": 2}
    async with open_house(data_dir, **limits) as house, house.client("owner") as owner:
        ids = [(await house.add(str(n)))[0] for n in range(3)]
        for item_id in ids:
            await ok(owner.delete(f"/api/v1/items/{item_id}"))
        for item_id in ids[:2]:
            await ok(owner.post(f"/api/v1/trash/{item_id}/restore"))
        limited = await owner.post(f"/api/v1/trash/{ids[2]}/restore")
        assert (limited.status_code, limited.json()["limit"]) == (429, "writes")
        await ok(owner.delete("/api/v1/trash"))
        limited = await owner.delete("/api/v1/trash")
        assert (limited.status_code, limited.json()["limit"]) == (429, "deletes")


async def test_without_days_everything_is_deleted_at_once(data_dir: Path) -> None:
    async with open_house(data_dir, trash_days=0) as house, house.client("owner") as owner:
        item_id, _ = await house.add("One")
        await house.add("Two", folder="Red")
        both, _ = await house.add("Both", folder="Red")
        await house.app.folders.file(house.owner, both, [house.folders["Blue"]])
        await ok(owner.delete(f"/api/v1/items/{item_id}"))
        async with house.client("one_folder") as one:
            await ok(one.delete(f"/api/v1/items/{both}"))
            assert await in_trash(one) == []
        await ok(owner.delete(f"/api/v1/folders/{house.folders['Red']}?cascade_items=true"))
        assert await in_trash(owner) == []
        left = await house.app.store._db.read(lambda tx: tx.column("SELECT text FROM contents"))
        assert [text.partition(":")[0] for text in left] == ["Both"]


async def test_a_worker_deletes_what_has_expired(house: House) -> None:
    item_id, _ = await house.add("One")
    await house.app.library.delete(house.owner, item_id)

    def age(tx: Any) -> None:
        tx.run("UPDATE trash SET deleted_at = deleted_at - :days", days=31 * 86_400 * 10**6)

    await house.app.store._db.write(age)
    async with house.client("owner") as owner:
        assert await in_trash(owner) == []
        assert (await owner.post(f"/api/v1/trash/{item_id}/restore")).status_code == 404
    await house.app.worker.run_once()
    for table in ("trash", "trash_rows", "contents"):
        left = house.app.store._db.read
        assert await left(lambda tx, t=table: tx.scalar(f"SELECT count(*) FROM {t}")) == 0


async def test_agents_may_not_restore_without_the_capability(house: House) -> None:
    item_id, _ = await house.add("One")
    await house.app.library.delete(house.owner, item_id)
    async with house.client("reader") as reader:
        assert await in_trash(reader) == ["One"]
        refused = await reader.post(f"/api/v1/trash/{item_id}/restore")
        assert refused.json()["error"] == "capability_denied"
