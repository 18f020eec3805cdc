"""Texts of items are edited: what was there stays a version, and everything derived follows."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from commonplace.errors import EmbeddingFailed
from commonplace.model import Extracted, ItemRef, Mark
from tests.fakes import FakeVideos
from tests.interfaces.house import House, call_tool, open_house
from tests.interfaces.test_ingest import ARTICLE, NEWER
from tests.webserver import WebServer, in_turn, page, web_server

pytestmark = pytest.mark.anyio

OLD = "The heron stands in the shallow water and waits for a frog to move."
NEW = "The kestrel hovers over the motorway and drops on a vole in the grass."


@pytest.fixture
def web() -> Iterator[WebServer]:
    with web_server() as server:
        server.pages["/otters"] = page(ARTICLE)
        yield server


@pytest.fixture
async def house(
    data_dir: Path, web: WebServer, either_engine: dict[str, str]
) -> AsyncIterator[House]:
    async with open_house(data_dir, fetch_allow_hosts=web.host, **either_engine) as opened:
        yield opened


async def edit(client: httpx.AsyncClient, item_id: str, text: str, **more: Any) -> httpx.Response:
    return await client.patch(f"/api/v1/items/{item_id}", json={"text": text, **more})


async def read(client: httpx.AsyncClient, item_id: str) -> Any:
    return (await client.get(f"/api/v1/items/{item_id}")).raise_for_status().json()


async def versions(client: httpx.AsyncClient, item_id: str) -> list[Any]:
    found = await client.get(f"/api/v1/items/{item_id}/versions")
    return list(found.raise_for_status().json()["versions"])


async def ingest(client: httpx.AsyncClient, url: str) -> Any:
    added = await client.post("/api/v1/ingest", json={"kind": "url", "url": url})
    return added.raise_for_status().json()


async def found(client: httpx.AsyncClient, query: str, mode: str = "keyword") -> list[str]:
    answer = await client.post("/api/v1/search", json={"query": query, "mode": mode})
    return [hit["item_id"] for hit in answer.json()["results"]]


async def test_an_edit_changes_what_search_finds_and_keeps_the_old_text(house: House) -> None:
    item_id, _ = await house.add("Birds", text=OLD)
    async with house.client("owner") as owner:
        before = await read(owner, item_id)
        changed = await edit(owner, item_id, NEW)
        assert changed.status_code == 200, changed.text
        after = changed.json()
        assert (after["text"], after["revision"]) == (NEW, before["revision"] + 1)
        assert after["content_id"] != before["content_id"] and after["title"] == "Birds"
        assert after["word_count"] == 14 and NEW in after["text"]
        assert (await found(owner, "kestrel"), await found(owner, "heron")) == ([item_id], [])
        assert item_id in await found(owner, "a bird of prey hunting", "semantic")
        [version] = await versions(owner, item_id)
        assert (version["revision"], version["title"]) == (before["revision"], "Birds")
        events = (await owner.get("/api/v1/events?after=0")).json()["events"]
        assert [each["type"] for each in events if each["item_id"] == item_id][-1] == "item.changed"

        restored = await owner.post(f"/api/v1/items/{item_id}/versions/1/restore")
        assert restored.status_code == 200, restored.text
        assert (await read(owner, item_id))["text"] == OLD
        assert restored.json()["content_id"] == before["content_id"]
        assert (await found(owner, "kestrel"), await found(owner, "heron")) == ([], [item_id])
        assert [each["revision"] for each in await versions(owner, item_id)] == [2, 1]
        # and back again
        await owner.post(f"/api/v1/items/{item_id}/versions/2/restore")
        assert (await read(owner, item_id))["text"] == NEW


async def test_stale_revisions_are_refused_and_nothing_changes(house: House) -> None:
    item_id, _ = await house.add("Birds", text=OLD)
    async with house.client("owner") as owner:
        await edit(owner, item_id, NEW)
        refused = await edit(owner, item_id, "Mine.", expected_revision=1)
        assert (refused.status_code, refused.json()["error"]) == (409, "conflict")
        assert refused.json()["revision"] == 2
        stale = await owner.patch(
            f"/api/v1/items/{item_id}", json={"text": "Mine."}, headers={"If-Match": 'W/"1"'}
        )
        assert (stale.status_code, stale.json()["revision"]) == (412, 2)
        again = await owner.post(
            f"/api/v1/items/{item_id}/versions/1/restore", json={"expected_revision": 1}
        )
        assert (again.status_code, again.json()["revision"]) == (409, 2)
        assert (await read(owner, item_id))["text"] == NEW
        same = await edit(owner, item_id, NEW, expected_revision=2)
        assert same.status_code == 200 and len(await versions(owner, item_id)) == 1


@pytest.mark.parametrize("kind", ["task", "epic", "project"])
async def test_the_texts_of_work_change_by_their_own_routes(house: House, kind: str) -> None:
    async with house.client("owner") as owner:

        async def add(kind: str, **more: Any) -> Any:
            body = {"entity_type": kind, "title": f"Some {kind}", "content": OLD, **more}
            return (await owner.post("/api/entities?sync=true", json=body)).json()["id"]

        project = await add("project")
        item = project if kind == "project" else await add(kind, project=project)
        refused = await edit(owner, item, NEW)
        assert (
            refused.status_code == 422
            and f"The text of a{'n' * (kind == 'epic')}" in (refused.json()["message"])
        )
        assert (await read(owner, item))["text"] == OLD


@pytest.mark.parametrize("text", ["", "   \n", None, "x" * 500_001, 7])
async def test_texts_without_words_or_too_long_are_refused(house: House, text: Any) -> None:
    item_id, _ = await house.add("Birds", text=OLD)
    async with house.client("owner") as owner:
        refused = await edit(owner, item_id, text)
        assert refused.status_code == 422 and "text" in refused.json()["message"]
        assert (await edit(owner, item_id, "x")).status_code == 200


async def test_an_edited_page_is_private_and_is_found_again_by_its_address(
    house: House, web: WebServer
) -> None:
    url = f"{web.url}/otters"
    async with house.client("owner") as owner, house.client("stranger") as stranger:
        mine, theirs = await ingest(owner, url), await ingest(stranger, url)
        assert mine["content_id"] == theirs["content_id"]
        item_id = mine["user_item_id"]
        edited = (await edit(owner, item_id, NEW)).json()
        assert edited["content_id"] != mine["content_id"]
        assert "crayfish" in (await read(stranger, theirs["user_item_id"]))["text"]
        assert (await found(stranger, "kestrel"), await found(owner, "crayfish")) == ([], [])
        again = await ingest(owner, url)
        assert (again["user_item_id"], again["content_id"]) == (item_id, edited["content_id"])
        async with house.client("reader") as reader:
            assert (await edit(reader, item_id, OLD)).status_code == 403
        _, secret = await house.app.people.create_with_token("Carol", "carol@example.org")
        async with house.client(token=secret) as carol:
            fresh = await ingest(carol, url)
            assert fresh["content_id"] == mine["content_id"]


async def test_refreshing_an_edited_page_keeps_the_edit(house: House, web: WebServer) -> None:
    web.pages["/otters"] = in_turn(page(ARTICLE), page(ARTICLE), page(NEWER), page(NEWER))
    async with house.client("owner") as owner:
        item_id = (await ingest(owner, f"{web.url}/otters"))["user_item_id"]
        await edit(owner, item_id, NEW)
        for _ in range(3):  # unchanged, changed, unchanged since
            renewed = await owner.post(f"/api/v1/items/{item_id}/refresh")
            assert renewed.status_code == 200, renewed.text
            assert (await read(owner, item_id))["text"] == NEW
        kept = await versions(owner, item_id)
        assert [each["revision"] for each in kept] == [2, 1]
        newest = await owner.get(f"/api/v1/items/{item_id}/versions/2")
        assert "salmon" in newest.json()["text"] and newest.json()["title"] == "More about otters"
        assert (await read(owner, item_id))["revision"] == 3
        assert (await ingest(owner, f"{web.url}/otters"))["user_item_id"] == item_id
        # the page's own text again: from now on it follows the page
        await owner.post(f"/api/v1/items/{item_id}/versions/2/restore")
        assert "salmon" in (await read(owner, item_id))["text"]
        web.pages["/otters"] = page(ARTICLE)
        await owner.post(f"/api/v1/items/{item_id}/refresh")
        assert "crayfish" in (await read(owner, item_id))["text"]


async def test_times_stay_beside_their_words(data_dir: Path) -> None:
    spoken = [f"Minute {n} is about {word}. " for n, word in enumerate(("oaks", "elms", "limes"))]
    marks = [Mark(sum(map(len, spoken[:n])), {"seconds": 60.0 * n}) for n in range(3)]
    captions = FakeVideos(Extracted("Trees", "".join(spoken), tuple(marks)))
    async with (
        open_house(data_dir, own={"own_videos": captions}) as house,
        house.client("owner") as owner,
    ):
        item_id = (await ingest(owner, "https://www.youtube.com/watch?v=jNQXAC9IVRw"))[
            "user_item_id"
        ]
        before = await read(owner, item_id)
        text = before["text"].replace("Minute 1 is about elms.", "One, which is on elms and ash.")
        await edit(owner, item_id, f"An introduction. {text}")
        segments = (await read(owner, item_id))["transcript_segments"]
        assert [(each["start"], each["text"]) for each in segments] == [
            (0.0, "Minute 0 is about oaks."),
            (60.0, "One, which is on elms and ash."),
            (120.0, "Minute 2 is about limes."),
        ]
        # the places of the version are restored with it
        await owner.post(f"/api/v1/items/{item_id}/versions/1/restore")
        restored = (await read(owner, item_id))["transcript_segments"]
        assert restored == before["transcript_segments"]


async def test_a_memory_is_edited_and_its_capture_stays(house: House) -> None:
    async with house.client("owner") as owner:
        made = await owner.post("/api/v1/memory/remember", json={"title": "Birds", "content": OLD})
        entity = made.json()["id"]
        assert (await edit(owner, entity, NEW)).status_code == 200
        assert (await read(owner, entity))["text"] == NEW
        capture = await owner.get(f"/api/v1/memory/captures/{entity}")
        assert capture.json()["text"] == OLD, capture.text
        assert await found(owner, "heron") == []
        answer = await call_tool(
            owner, "remember", {"title": "Again", "content": NEW.replace("a vole", "two voles")}
        )
        conflicts = answer["result"]["structuredContent"]["conflicts"]
        assert [each["id"] for each in conflicts] == [entity], "compared with what it says now"


async def test_a_published_view_is_derived_from_the_edited_text(house: House) -> None:
    text = " ".join(f"Sentence {n} says that {OLD.lower()}" for n in range(12))
    item_id, _ = await house.add("Birds", text=text)
    async with house.client("owner") as owner, house.client("stranger") as stranger:
        await owner.post(f"/api/v1/disks/{item_id}/publish", json={})
        public = (await read(owner, item_id))["public_id"]
        await edit(owner, item_id, text.replace("heron", "kestrel"))
        seen = (await stranger.get(f"/api/v1/disks/{public}")).text
        assert "kestrel" in seen and "heron" not in seen


async def test_without_the_embedder_words_are_found_now_and_vectors_follow(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    item_id, _ = await house.add("Birds", text=OLD)

    async def down(*_: Any) -> Any:
        raise EmbeddingFailed("The embedder is down.")

    with monkeypatch.context() as outage:
        outage.setattr(house.app.embedder, "documents", down)
        async with house.client("owner") as owner:
            assert (await edit(owner, item_id, NEW)).status_code == 200
            assert await found(owner, "kestrel") == [item_id]
    while await house.app.worker.run_once():
        pass
    async with house.client("owner") as owner:
        assert item_id in await found(owner, "a bird of prey hunting", "semantic")


async def test_what_is_not_read_yet_has_no_text_to_edit(house: House, web: WebServer) -> None:
    item_id, _ = await house.add("Birds", text=OLD)
    item = await house.app.store.items.get(house.owner.scope, ItemRef(id=item_id))
    from commonplace.core.items.drafts import Draft

    queued = await house.app.queued_items.submit(
        house.owner, replace(Draft("url"), url=f"{web.url}/otters")
    )
    async with house.client("owner") as owner:
        refused = await edit(owner, queued.item.id, NEW)
        assert (refused.status_code, refused.json()["status"]) == (422, "queued")
    assert item.revision == 1


async def test_of_two_edits_at_once_none_is_lost(house: House) -> None:
    item_id, _ = await house.add("Birds", text=OLD)
    async with house.client("owner") as owner:
        texts = [f"{NEW} Number {n}." for n in range(4)]
        answers = await asyncio.gather(*(edit(owner, item_id, text) for text in texts))
        assert [each.status_code for each in answers] == [200] * 4
        kept = [
            (await owner.get(f"/api/v1/items/{item_id}/versions/{each['revision']}")).json()["text"]
            for each in await versions(owner, item_id)
        ]
        assert sorted([*kept, (await read(owner, item_id))["text"]]) == sorted([OLD, *texts])


async def test_scoped_tokens_edit_what_they_see(house: House) -> None:
    red, _ = await house.add("Red bird", text=OLD, folder="Red")
    hidden, _ = await house.add("Hidden bird", text=OLD)
    outside, _ = await house.add("Outside", text=OLD, folder="Red", in_kb=False)
    async with house.client("one_folder") as scoped:
        assert (await edit(scoped, red, NEW)).status_code == 200
        missing = await edit(scoped, hidden, NEW)
        assert missing.status_code == 404
        assert missing.json() == (await edit(scoped, "nothing", NEW)).json() | {
            "message": missing.json()["message"]
        }
        assert (await scoped.post(f"/api/v1/items/{hidden}/versions/1/restore")).status_code == 404
    async with house.client("kb_only") as kb_only:
        assert (await edit(kb_only, outside, NEW)).status_code == 404
