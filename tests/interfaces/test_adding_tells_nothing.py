"""Adding is safe to repeat, and tells a scoped token nothing about what it may not see."""

import pytest

from commonplace.core.entities.validation import NewEntity
from tests.interfaces.house import LONG_TEXT, House

pytestmark = pytest.mark.anyio
TEXT = {"kind": "text", "title": "Fox", "text": "The quick brown fox jumps over the lazy dog."}


@pytest.mark.parametrize("character", ["owner", "one_folder", "two_folder", "kb_only"])
async def test_adding_the_same_again_gives_the_item_that_is_there(
    house: House, character: str
) -> None:
    async with house.client(character) as client:
        first, second = [await client.post("/api/v1/ingest", json=TEXT) for _ in range(2)]
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json()["user_item_id"] == second.json()["user_item_id"]


async def test_what_lies_in_scope_is_found_whoever_added_it(house: House) -> None:
    item_id, _ = await house.add(TEXT["title"], folder="Red", text=TEXT["text"])
    async with house.client("one_folder") as client:
        answer = await client.post("/api/v1/ingest", json=TEXT)
    assert (answer.status_code, answer.json()["user_item_id"]) == (200, item_id)


@pytest.mark.parametrize("character", ["one_folder", "kb_only"])
async def test_no_id_tells_that_the_text_is_kept_out_of_scope(house: House, character: str) -> None:
    hidden_id, _ = await house.add(
        TEXT["title"], folder="Green", text=TEXT["text"], in_kb=character != "kb_only"
    )
    hidden = await house.app.library.read(house.owner, hidden_id)
    seen = []
    async with house.client(character) as client:
        for _ in range(2):
            added = (await client.post("/api/v1/ingest", json=TEXT)).json()
            seen.append(added["content_id"])
            assert (
                await client.delete(f"/api/v1/items/{added['user_item_id']}")
            ).status_code == 200
    assert len({*seen, hidden.item.content_id}) == 3


async def test_what_is_deleted_here_and_stays_elsewhere_reads_like_gone(house: House) -> None:
    seen = []
    async with house.client("one_folder") as client, house.client("owner") as owner:
        for elsewhere in (True, False):
            added = (await client.post("/api/v1/ingest", json=TEXT)).json()
            item = f"/api/v1/items/{added['user_item_id']}"
            if elsewhere:
                await owner.post(f"{item}/folders", json={"folder_ids": [house.folders["Green"]]})
            seen.append(
                [
                    added["content_id"],
                    *[
                        (answer.status_code, answer.text.replace(added["user_item_id"], "ID"))
                        for answer in (
                            await client.delete(item),
                            await client.delete(item),
                            await client.get(item),
                        )
                    ],
                ]
            )
            assert (await owner.get(item)).status_code == (200 if elsewhere else 404)
    assert seen[0][0] != seen[1][0] and seen[0][1:] == seen[1][1:]


async def test_nothing_that_was_made_of_what_is_deleted_here_tells_that_it_stays_elsewhere(
    house: House,
) -> None:
    """Neither an idempotency key, nor the review queue, nor an upload that is finished again."""
    told = []
    async with house.client("one_folder") as client, house.client("owner") as owner:
        for elsewhere in (True, False):
            memory = {
                "title": "Zebra",
                "content": "The zebra grazes by the river.",
                "idempotency_key": f"{elsewhere}",
            }
            kept = (await client.post("/api/v1/memory/remember", json=memory)).json()
            notes = {
                "content": f"We decided to let it graze, and that is {elsewhere}.",
                "persist": True,
                "review": True,
            }
            source = (await client.post("/api/v1/memory/reflect", json=notes)).json()["source_id"]
            file = {
                "filename": "n.md",
                "content_type": "text/markdown",
                "size": len(notes["content"]),
            }
            promised = (await client.post("/api/v1/uploads/signed-url", json=file)).json()
            await client.put(promised["url"], content=notes["content"].encode())
            finish = {"upload_id": promised["upload_id"]}
            sent = (await client.post("/api/v1/uploads/finalize-document", json=finish)).json()
            assert (await client.get("/api/v1/memory/candidates")).json()["total"] == 1
            items = [kept["id"], source, sent["user_item_id"]]
            for item in items:
                if elsewhere:
                    await owner.post(
                        f"/api/v1/items/{item}/folders",
                        json={"folder_ids": [house.folders["Green"]]},
                    )
                assert (await client.delete(f"/api/v1/items/{item}")).status_code == 200
                assert (await owner.get(f"/api/v1/items/{item}")).status_code == (
                    200 if elsewhere else 404
                )
            again = (await client.post("/api/v1/memory/remember", json=memory)).json()
            told.append(
                (
                    again["repeated"],
                    again["id"] == kept["id"],
                    (await client.get("/api/v1/memory/candidates", params={"state": "all"})).json()[
                        "total"
                    ],
                    (await client.post("/api/v1/uploads/finalize-document", json=finish))
                    .json()["message"]
                    .replace(sent["user_item_id"], "ID"),
                )
            )
            if elsewhere:
                capture = (await owner.get(f"/api/v1/memory/captures/{kept['id']}")).json()
                assert (capture["id"], capture["text"]) == (kept["capture_id"], memory["content"])
            await client.delete(f"/api/v1/items/{again['id']}")
    assert told[0] == told[1] == (False, False, 0, "No item 'ID'.")


async def test_jobs_out_of_scope_do_not_show_in_a_search(house: House) -> None:
    await house.add(
        "Zebras", folder="Green", text=LONG_TEXT
    )  # no worker runs: its vectors stay missing
    async with house.client("owner") as owner, house.client("one_folder") as scoped:
        query = {"query": "zebra"}
        assert (await owner.post("/api/v1/search", json=query)).json()["degraded"]
        assert not (await scoped.post("/api/v1/search", json=query)).json().get("degraded")


@pytest.mark.parametrize("character", ["owner", "stranger"])
async def test_what_was_noted_on_a_task_is_not_in_a_text_that_reads_like_it(
    house: House, character: str
) -> None:
    entities = house.app.entities
    project = (await entities.add(house.owner, NewEntity("Zoo", "The animals.", "project"))).item.id
    task = await entities.add(
        house.owner, NewEntity(TEXT["title"], TEXT["text"], "task", project=project), sync=True
    )
    await house.app.tasks.note(house.owner, task.item.id, "The gate opens with 4711.")
    async with house.client(character) as client:
        added = (await client.post("/api/v1/ingest", json=TEXT)).json()
    read = await house.app.library.read(getattr(house, character), added["user_item_id"])
    assert [section.text for section in read.sections] == [TEXT["text"]]
