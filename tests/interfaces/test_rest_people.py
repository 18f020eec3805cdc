"""Folders and tokens over REST: what the owner of a library arranges."""

from typing import Any

import anyio
import httpx
import pytest

from tests.interfaces.house import House

pytestmark = pytest.mark.anyio


async def make_token(client: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    response = await client.post("/api/v1/tokens", json={"name": "helper", **body})
    assert response.status_code == 201, response.text
    return dict(response.json())


async def test_folders_are_made_renamed_and_deleted(owner: httpx.AsyncClient) -> None:
    made = await owner.post("/api/v1/folders", json={"name": "Straße"})
    assert (made.status_code, made.json()["item_count"]) == (201, 0)
    taken = await owner.post("/api/v1/folders", json={"name": "STRASSE"})
    assert (taken.status_code, taken.json()["error"]) == (409, "name_taken")
    path = f"/api/v1/folders/{made.json()['id']}"
    assert (await owner.patch(path, json={"name": "STRASSE"})).json()["name"] == "STRASSE"
    assert (await owner.patch(path, json={"name": "red"})).json()["error"] == "name_taken"
    assert (await owner.delete(path)).json() == {"ok": True}
    assert (await owner.delete(path)).status_code == 404
    assert [f["name"] for f in (await owner.get("/api/v1/folders")).json()["folders"]] == [
        "Blue",
        "Green",
        "Red",
    ]


async def test_folders_are_nested_and_moved(house: House, owner: httpx.AsyncClient) -> None:
    red, blue = house.folders["Red"], house.folders["Blue"]
    made = (await owner.post("/api/v1/folders", json={"name": "red", "parent_id": red})).json()
    assert made["parent_id"] == made["folder"]["parent_id"] == red
    path = f"/api/v1/folders/{made['id']}"
    assert (await owner.patch(path, json={"name": "Deep"})).json()["parent_id"] == red
    moved = (await owner.patch(path, json={"parent_id": blue})).json()
    assert (moved["name"], moved["parent_id"]) == ("Deep", blue)
    for body in ({"name": None}, {"parent_id": made["id"]}, {"parent_id": 3}):
        assert (await owner.patch(path, json=body)).status_code == 422
    circle = await owner.patch(f"/api/v1/folders/{blue}", json={"parent_id": made["id"]})
    assert (circle.status_code, circle.json()["error"]) == (422, "invalid_request")
    for parent in ("nowhere", house.folders["Theirs"]):
        unknown = await owner.patch(path, json={"parent_id": parent})
        assert (unknown.status_code, unknown.json()["error"]) == (404, "not_found")
    async with house.client("one_folder") as one:
        await owner.patch(f"/api/v1/folders/{red}", json={"parent_id": made["id"]})
        [seen] = (await one.get("/api/v1/folders")).json()["folders"]
        assert (seen["id"], seen["parent_id"]) == (red, None)
        assert (await one.get(f"/api/v1/folders/{red}")).json()["parent_id"] is None
        refused = await one.patch(f"/api/v1/folders/{red}", json={"parent_id": blue})
        assert refused.status_code == 403
    assert (await owner.delete(f"/api/v1/folders/{blue}")).status_code == 200
    tops = [f for f in (await owner.get("/api/v1/folders")).json()["folders"] if not f["parent_id"]]
    assert [f["name"] for f in tops] == ["Deep", "Green"]
    assert (await owner.patch(path, json={"parent_id": None})).json()["parent_id"] is None


async def test_deleting_a_folder_takes_its_own_items_along_only_when_asked(
    house: House, owner: httpx.AsyncClient
) -> None:
    alone, _ = await house.add("Alone", folder="Green")
    shared, _ = await house.add("Shared", folder="Green")
    spared, _ = await house.add("Spared", folder="Blue")
    await house.app.folders.file(house.owner, shared, [house.folders["Red"]])
    assert (await owner.delete(f"/api/v1/folders/{house.folders['Blue']}")).status_code == 200
    cascade = await owner.delete(
        f"/api/v1/folders/{house.folders['Green']}", params={"cascade_items": True}
    )
    assert cascade.status_code == 200
    left = {item["id"] for item in (await owner.get("/api/v1/items")).json()["items"]}
    assert left == {shared, spared}
    assert alone not in left


async def test_deleting_a_tokens_last_folder_revokes_it(
    house: House, owner: httpx.AsyncClient
) -> None:
    async with house.client("one_folder") as one, house.client("two_folder") as two:
        assert (await owner.delete(f"/api/v1/folders/{house.folders['Red']}")).status_code == 200
        assert (await one.get("/api/v1/folders")).status_code == 401
        assert [f["name"] for f in (await two.get("/api/v1/folders")).json()["folders"]] == ["Blue"]


async def test_a_secret_is_shown_once(owner: httpx.AsyncClient) -> None:
    made = await make_token(owner)
    assert made["token"].startswith("sk_")
    assert len(made["token"]) == 46
    listed = await owner.get("/api/v1/tokens")
    assert made["token"] not in listed.text
    [entry] = [token for token in listed.json()["tokens"] if token["id"] == made["id"]]
    assert entry == {key: value for key, value in made.items() if key != "token"}


@pytest.mark.parametrize(
    ("body", "capabilities"),
    [
        ({}, ["read"]),
        ({"write": True}, ["read", "write"]),
        ({"write": False}, ["read"]),
        ({"capabilities": ["write"]}, ["read", "write"]),
        ({"capabilities": ["read"]}, ["read"]),
    ],
)
async def test_capabilities_can_be_said_in_two_ways(
    owner: httpx.AsyncClient, body: dict[str, Any], capabilities: list[str]
) -> None:
    assert (await make_token(owner, **body))["capabilities"] == capabilities


async def test_scope_and_expiry_are_fixed_when_the_token_is_made(
    house: House, owner: httpx.AsyncClient
) -> None:
    red = house.folders["Red"]
    made = await make_token(owner, folder_ids=[red], kb_only=True, expires_days=None)
    assert (made["folders"], made["kb_only"], made["expires_at"]) == ([red], True, None)
    assert (await make_token(owner))["expires_at"] > (await make_token(owner, expires_days=364))[
        "expires_at"
    ]
    for folder in ("nowhere", house.folders["Theirs"]):
        refused = await owner.post("/api/v1/tokens", json={"name": "x", "folder_ids": [folder]})
        assert (refused.status_code, refused.json()["error"]) == (404, "not_found")


async def test_a_folder_named_like_the_id_of_another_does_not_take_its_place(
    house: House, owner: httpx.AsyncClient
) -> None:
    red = house.folders["Red"]
    await owner.post("/api/v1/folders", json={"name": red})
    assert (await make_token(owner, folder_ids=[red]))["folders"] == [red]


async def test_a_revoked_token_is_refused_at_once(house: House, owner: httpx.AsyncClient) -> None:
    made = await make_token(owner, write=True)
    async with house.client(token=made["token"]) as client:
        assert (await client.get("/api/v1/items")).status_code == 200
        assert (await owner.delete(f"/api/v1/tokens/{made['id']}")).json() == {"ok": True}
        assert (await client.get("/api/v1/items")).status_code == 401
    assert (await owner.delete(f"/api/v1/tokens/{made['id']}")).status_code == 404


async def test_activity_is_written_again_after_a_surprise(
    house: House, owner: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed, written = anyio.Event(), anyio.Event()

    async def record(events: object) -> None:
        if failed.is_set():
            written.set()
        failed.set()
        raise RuntimeError("a surprise")

    with monkeypatch.context() as patch, anyio.fail_after(10):
        patch.setattr(house.app.store.tokens, "record", record)
        await owner.get("/api/v1/items")
        await failed.wait()
        await owner.get("/api/v1/items")
        await written.wait()


async def test_activity_tells_what_a_token_did_and_was_refused(
    house: House, owner: httpx.AsyncClient
) -> None:
    made = await make_token(owner)
    async with house.client(token=made["token"]) as client:
        await client.get("/api/v1/items")
        await client.delete("/api/v1/folders/no")
    events = (await owner.get(f"/api/v1/tokens/{made['id']}/activity")).json()["events"]
    assert [(event["action"], event["target"], event["ok"]) for event in events] == [
        ("delete_folder", "no", False),
        ("list", None, True),
    ]
    [entry] = [
        token
        for token in (await owner.get("/api/v1/tokens")).json()["tokens"]
        if token["id"] == made["id"]
    ]
    assert entry["last_used_at"] == events[0]["at"]


async def test_activity_that_is_being_written_is_waited_for(
    house: House, owner: httpx.AsyncClient
) -> None:
    made = await make_token(owner)
    async with house.client(token=made["token"]) as client:
        await client.get("/api/v1/items")
    record, late = house.app.store.tokens.record, [0.5]

    async def slowly(events: Any) -> None:
        await anyio.sleep(late.pop() if late else 0)
        await record(events)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(house.app.store.tokens, "record", slowly)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(house.app.access.flush)
            await anyio.sleep(0.01)
            events = (await owner.get(f"/api/v1/tokens/{made['id']}/activity")).json()["events"]
    assert [event["action"] for event in events] == ["list"]
