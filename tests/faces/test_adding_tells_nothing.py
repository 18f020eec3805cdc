"""Adding is safe to repeat, and tells a scoped token nothing about what it may not see."""

import pytest

from tests.faces.house import LONG_TEXT, House

pytestmark = pytest.mark.anyio
TEXT = {"kind": "text", "title": "Fox", "text": "The quick brown fox jumps over the lazy dog."}


@pytest.mark.parametrize("character", ["owner", "one_folder", "two_folder", "kb_only"])
async def test_adding_the_same_again_gives_the_item_that_is_there(house: House, character: str) -> None:
    async with house.client(character) as client:
        first, second = [await client.post("/api/v1/ingest", json=TEXT) for _ in range(2)]
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json()["user_item_id"] == second.json()["user_item_id"]


async def test_what_lies_in_scope_is_found_whoever_added_it(house: House) -> None:
    item_id, _ = await house.add(TEXT["title"], folder="Red", text=TEXT["text"])
    async with house.client("one_folder") as client:
        answer = await client.post("/api/v1/ingest", json=TEXT)
    assert (answer.status_code, answer.json()["user_item_id"]) == (200, item_id)


async def test_no_id_tells_that_the_text_is_kept_out_of_scope(house: House) -> None:
    hidden_id, _ = await house.add(TEXT["title"], folder="Green", text=TEXT["text"])
    hidden = await house.app.library.read(house.owner, hidden_id)
    seen = []
    async with house.client("one_folder") as client:
        for _ in range(2):
            added = (await client.post("/api/v1/ingest", json=TEXT)).json()
            seen.append(added["content_id"])
            assert (await client.delete(f"/api/v1/items/{added['user_item_id']}")).status_code == 200
    assert len({*seen, hidden.item.content_id}) == 3


async def test_what_is_deleted_here_and_stays_elsewhere_reads_like_gone(house: House) -> None:
    seen = []
    async with house.client("one_folder") as client, house.client("owner") as owner:
        for elsewhere in (True, False):
            added = (await client.post("/api/v1/ingest", json=TEXT)).json()
            item = f"/api/v1/items/{added['user_item_id']}"
            if elsewhere:
                await owner.post(f"{item}/folders", json={"folder_ids": [house.folders["Green"]]})
            seen.append([added["content_id"], *[(answer.status_code, answer.json()) for answer in (
                await client.delete(item), await client.delete(item), await client.get(item))]])
            assert (await owner.get(item)).status_code == (200 if elsewhere else 404)
    assert seen[0][0] != seen[1][0] and seen[0][1:] == seen[1][1:]


async def test_jobs_out_of_scope_do_not_show_in_a_search(house: House) -> None:
    await house.add("Zebras", folder="Green", text=LONG_TEXT)  # no worker runs: its vectors stay missing
    async with house.client("owner") as owner, house.client("one_folder") as scoped:
        query = {"query": "zebra"}
        assert (await owner.post("/api/v1/search", json=query)).json()["degraded"]
        assert not (await scoped.post("/api/v1/search", json=query)).json().get("degraded")
