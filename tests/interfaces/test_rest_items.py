"""Items over REST: kept, listed, read, changed, filed, searched, deleted."""

from typing import Any

import httpx
import pytest

from tests.interfaces.house import LONG_TEXT, House

pytestmark = pytest.mark.anyio
TEXT = "The quick brown fox jumps over the lazy dog. ERR_QUIC_7731 is what it says."


async def keep(
    client: httpx.AsyncClient, title: str = "Fox", text: str = TEXT, **more: Any
) -> dict[str, Any]:
    response = await client.post(
        "/api/v1/ingest", json={"kind": "text", "title": title, "text": text, **more}
    )
    assert response.status_code in (200, 201), response.text
    return dict(response.json())


async def test_a_text_is_kept_once_and_can_be_read_at_once(owner: httpx.AsyncClient) -> None:
    first = await owner.post("/api/v1/ingest", json={"kind": "text", "title": "Fox", "text": TEXT})
    again = await owner.post("/api/v1/ingest", json={"kind": "text", "title": "Fox", "text": TEXT})
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    assert first.json()["status"] == "ready"
    assert first.json()["folder_id"] is None
    item = (await owner.get(f"/api/v1/items/{first.json()['user_item_id']}")).json()
    assert item["text"] == TEXT
    assert item["entity_id"] == f"document_{item['public_id']}"
    assert [section["index"] for section in item["sections"]] == [0]
    assert item["created_at"].endswith("Z")


async def test_what_was_kept_out_of_the_kb_enters_it_when_it_is_added_again(
    owner: httpx.AsyncClient,
) -> None:
    kept = await keep(owner, text=LONG_TEXT, in_kb=False)
    again = await keep(owner, text=LONG_TEXT)
    assert (again["user_item_id"], again["status"]) == (kept["user_item_id"], "ready")
    assert (await owner.get(f"/api/v1/jobs/{again['job_id']}")).json()["item_id"] == kept[
        "user_item_id"
    ]
    hits = (
        await owner.post("/api/v1/search", json={"query": "zebra river", "mode": "keyword"})
    ).json()["results"]
    assert {hit["item_id"] for hit in hits} == {kept["user_item_id"]}
    assert (await keep(owner, text=LONG_TEXT, in_kb=False))["job_id"] is None
    assert (await owner.get(f"/api/v1/items/{kept['user_item_id']}")).json()["in_kb"] is True


async def test_an_item_answers_to_all_its_names(owner: httpx.AsyncClient) -> None:
    item = (await owner.get(f"/api/v1/items/{(await keep(owner))['user_item_id']}")).json()
    for name in (item["id"], item["id"].upper(), item["public_id"], item["entity_id"]):
        assert (await owner.get(f"/api/v1/items/{name}")).json() == item
    assert (await owner.get(f"/api/v1/items/task_{item['public_id']}")).status_code == 404


async def test_lists_are_paged_newest_first_and_leave_the_archive_out(
    owner: httpx.AsyncClient,
) -> None:
    ids = [
        (await keep(owner, f"Note {n}", f"{TEXT} {n}", in_kb=n != 2))["user_item_id"]
        for n in range(5)
    ]
    await owner.patch(f"/api/v1/items/{ids[0]}", json={"archived": True, "tags": ["Old"]})
    page = (await owner.get("/api/v1/items", params={"per_page": 2, "page": 2})).json()
    assert [item["id"] for item in page["items"]] == [ids[2], ids[1]]
    assert (page["total"], page["page"], page["per_page"]) == (4, 2, 2)

    async def found(**params: Any) -> list[str]:
        return [
            item["id"] for item in (await owner.get("/api/v1/items", params=params)).json()["items"]
        ]

    assert await found(archived=True) == [ids[0]]
    assert await found(in_kb=False) == [ids[2]]
    assert await found(q="note 3") == [ids[3]]
    assert await found(q="%") == []


async def test_changes_bump_the_revision_and_lost_updates_are_refused(
    owner: httpx.AsyncClient,
) -> None:
    path = f"/api/v1/items/{(await keep(owner))['user_item_id']}"
    changed = await owner.patch(
        path, json={"title": "Vixen", "tags": ["animal", "animal"], "expected_revision": 1}
    )
    assert (changed.json()["title"], changed.json()["tags"], changed.json()["revision"]) == (
        "Vixen",
        ["animal"],
        2,
    )
    late = await owner.patch(path, json={"title": "Wolf", "expected_revision": 1})
    assert late.status_code == 409
    assert (late.json()["error"], late.json()["revision"]) == ("conflict", 2)
    assert (await owner.get(path)).json()["title"] == "Vixen"
    nothing = await owner.patch(path, json={})
    assert (nothing.status_code, nothing.json()["error"]) == (422, "invalid_request")


async def test_what_leaves_the_kb_is_not_found_until_it_is_back(owner: httpx.AsyncClient) -> None:
    path = f"/api/v1/items/{(await keep(owner))['user_item_id']}"

    async def hits() -> int:
        return len((await owner.post("/api/v1/search", json={"query": "fox"})).json()["results"])

    assert await hits() == 1
    await owner.patch(path, json={"in_kb": False})
    assert await hits() == 0
    await owner.patch(path, json={"in_kb": True})
    assert await hits() == 1
    assert (await owner.delete(path)).json() == {"ok": True}
    assert await hits() == 0
    assert (await owner.get(path)).status_code == 404


@pytest.mark.parametrize("mode", ["semantic", "keyword", "hybrid"])
async def test_search_answers_with_one_list(owner: httpx.AsyncClient, mode: str) -> None:
    kept = await keep(owner)
    await keep(
        owner, "Bread", "Flour, water, salt and a warm place are all that a loaf of bread needs."
    )
    answer = (
        await owner.post(
            "/api/v1/search", json={"query": "ERR_QUIC_7731 fox", "mode": mode, "limit": 1}
        )
    ).json()
    [result] = answer["results"]
    assert result == {
        "disk_public_id": result["disk_public_id"],
        "disk_title": "Fox",
        "section_index": 1,
        "similarity": result["score"],
        "key_points": result["key_points"],
        "redacted": False,
        "section_text": TEXT,
        "item_id": kept["user_item_id"],
        "score": result["score"],
        "url": None,
        "created_at": result["created_at"],
        "published_at": None,
        "origin": "agent",
        "added_by": "owner",
    }
    assert 0 < result["score"] <= 1
    assert (answer["query"], answer["mode"], answer["degraded"]) == (
        "ERR_QUIC_7731 fox",
        mode,
        None,
    )


async def test_filing_names_what_is_new_and_unfiling_what_is_not_there(
    house: House, owner: httpx.AsyncClient
) -> None:
    item = (await keep(owner))["user_item_id"]
    red, blue = house.folders["Red"], house.folders["Blue"]
    path = f"/api/v1/items/{item}/folders"
    assert (await owner.post(path, json={"folder_ids": [red]})).json() == {
        "ok": True,
        "added_folder_ids": [red],
    }
    assert (await owner.post(path, json={"folder_ids": [red, blue]})).json()[
        "added_folder_ids"
    ] == [blue]
    full = (await owner.get(f"/api/v1/items/{item}")).json()
    assert {folder["name"] for folder in full["folders"]} == {"Red", "Blue"}
    assert set(full["folder_ids"]) == {red, blue}
    assert (await owner.delete(f"{path}/{red}")).json() == {"ok": True}
    assert (await owner.delete(f"{path}/{red}")).status_code == 404
    unknown = await owner.post(path, json={"folder_ids": [house.folders["Theirs"]]})
    assert (unknown.status_code, unknown.json()["error"]) == (404, "not_found")


async def test_tokens_file_by_their_scope(house: House) -> None:
    red, blue, green = (house.folders[name] for name in ("Red", "Blue", "Green"))
    async with house.client("one_folder") as one, house.client("two_folder") as two:
        kept = await keep(one)
        assert kept["folder_id"] == red
        refused = await one.post(
            f"/api/v1/items/{kept['user_item_id']}/folders", json={"folder_ids": [red]}
        )
        assert (refused.status_code, refused.json()["error"]) == (403, "forbidden_scope")
        unfiled = await keep(two, "Two", f"{TEXT} Two.")
        assert unfiled["folder_id"] is None
        path = f"/api/v1/items/{unfiled['user_item_id']}/folders"
        outside = await two.post(path, json={"folder_ids": [blue, green]})
        assert (outside.status_code, outside.json()["out_of_scope"]) == (403, [green])
        assert (await two.post(path, json={"folder_ids": [blue]})).json()["added_folder_ids"] == [
            blue
        ]
        assert (await two.get(f"/api/v1/items/{unfiled['user_item_id']}")).json()["folder_ids"] == [
            blue
        ]


async def test_a_kb_only_token_adds_to_the_kb_and_cannot_take_out_of_it(house: House) -> None:
    async with house.client("kb_only") as client:
        path = f"/api/v1/items/{(await keep(client, in_kb=False))['user_item_id']}"
        assert (await client.get(path)).json()["in_kb"] is True
        refused = await client.patch(path, json={"in_kb": False})
        assert (refused.status_code, refused.json()["error"]) == (403, "forbidden_scope")


async def test_a_long_text_is_keyword_live_and_its_job_can_be_followed(
    house: House, owner: httpx.AsyncClient
) -> None:
    kept = await keep(owner, "Long", LONG_TEXT)
    job = (await owner.get(f"/api/v1/jobs/{kept['job_id']}")).json()
    assert (job["state"], job["item_id"], job["kind"]) == ("queued", kept["user_item_id"], "embed")
    found = (await owner.post("/api/v1/search", json={"query": "zebra", "mode": "hybrid"})).json()
    assert found["results"]
    assert found["degraded"] is not None
    assert await house.app.worker.run_once() == 1
    assert (await owner.get(f"/api/v1/jobs/{kept['job_id']}")).json()["state"] == "done"


async def test_an_address_is_refused_with_the_reason_and_nothing_is_stored(
    owner: httpx.AsyncClient,
) -> None:
    response = await owner.post(
        "/api/v1/ingest", json={"kind": "url", "url": "https://example.org/"}
    )
    assert (response.status_code, response.json()["error"]) == (422, "ingest_failed")
    assert (await owner.get("/api/v1/items")).json()["total"] == 0
