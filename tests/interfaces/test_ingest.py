"""Addresses become items: read within the call, once for everybody, or refused with a reason."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest

from commonplace.errors import EmbeddingFailed
from commonplace.model import Extracted, Mark
from tests.fakes import FakeVideos
from tests.interfaces.house import House, call_tool, open_house
from tests.interfaces.test_mcp import ERAS, connected
from tests.messages_service import MessagesService
from tests.stub_service import KEY, running
from tests.webserver import WebServer, Wire, in_turn, page, redirect, web_server

pytestmark = pytest.mark.anyio

BODY = "".join(
    f"<p>Paragraph {n}: the otter swims along the river bank, looking for crayfish under the roots of alders. "
    "It dives for half a minute and comes up with one between its teeth.</p>"
    for n in range(12)
)
ARTICLE = f"<html lang=en><head><title>About otters</title></head><body><article><h1>About otters</h1>{BODY}</article></body></html>"
NEWER = ARTICLE.replace("crayfish", "salmon").replace("About otters", "More about otters")
VTT = "WEBVTT\n\n" + "\n".join(
    f"00:{n:02}:00.000 --> 00:{n:02}:50.000\nMinute {n}. {'The ferry leaves the harbour on time. ' * 12}\n"
    for n in range(8)
)


@pytest.fixture
def web() -> Iterator[WebServer]:
    with web_server() as server:
        server.pages |= {
            "/otters": page(ARTICLE),
            "/talk.vtt": page(VTT, "text/vtt"),
            "/moved": redirect("/otters"),
            "/nothing": page("<html><body></body></html>"),
        }
        yield server


@pytest.fixture
async def house(data_dir: Path, web: WebServer) -> AsyncIterator[House]:
    async with open_house(data_dir, fetch_allow_hosts=web.host) as opened:
        yield opened


async def add(client: httpx.AsyncClient, url: str, **more: Any) -> httpx.Response:
    return await client.post("/api/v1/ingest", json={"kind": "url", "url": url, **more})


async def search(client: httpx.AsyncClient, query: str, mode: str = "hybrid") -> list[str]:
    hits = (await client.post("/api/v1/search", json={"query": query, "mode": mode})).json()[
        "results"
    ]
    return [hit["disk_title"] for hit in hits]


async def test_a_page_is_ready_found_described_and_says_where_it_came_from(
    house: House, web: WebServer
) -> None:
    async with house.client("owner") as owner:
        added = await add(owner, f"{web.url}/otters")
        assert (added.status_code, added.json()["status"]) == (201, "ready")
        item = (await owner.get(f"/api/v1/items/{added.json()['user_item_id']}")).json()
        assert (item["title"], item["kind"], item["url"]) == (
            "About otters",
            "url",
            f"{web.url}/otters",
        )
        assert item["transcription_status"] is None and "crayfish" in item["text"]
        assert item["summary"] and item["key_points"] and item["tags"] and not item["ai_generated"]
        assert all(section["key_points"] for section in item["sections"])
        assert await search(owner, "crayfish", "keyword") and await search(
            owner, "an animal that hunts in water", "semantic"
        )


async def test_sections_point_to_where_they_were(house: House, web: WebServer) -> None:
    async with house.client("owner") as owner:
        added = (await add(owner, f"{web.url}/talk.vtt")).json()
        item = (await owner.get(f"/api/v1/items/{added['user_item_id']}")).json()
    assert len(item["sections"]) > 3
    for section in item["sections"]:
        text = item["text"][section["start"] : section["end"]]
        minute = (
            int(text.removeprefix("Minute ").partition(".")[0])
            if text.startswith("Minute")
            else None
        )
        assert section["locator"]["seconds"] >= 0
        assert minute is None or section["locator"] == {"seconds": 60.0 * minute}


@pytest.mark.parametrize(
    "path", ["/not-found", "/nothing", "/redirect-to-metadata", "/circle", "/empty"]
)
async def test_what_cannot_be_read_is_refused_with_the_reason_and_nothing_is_stored(
    house: House, web: WebServer, path: str
) -> None:
    async with house.client("owner") as owner:
        refused = await add(owner, web.url + path)
        assert (refused.status_code, refused.json()["error"]) == (422, "ingest_failed")
        answer = await call_tool(owner, "add_to_knowledge", {"kind": "url", "url": web.url + path})
        assert (answer["error"]["code"], answer["error"]["data"]["error"]) == (
            -32603,
            "ingest_failed",
        )
        assert (
            answer["error"]["message"] == refused.json()["message"]
            and len(answer["error"]["message"]) > 10
        )
        assert (await owner.get("/api/v1/items")).json()["total"] == 0


@pytest.mark.parametrize(
    "link",
    [
        "http://ann:secret@sounds.example/a.mp3",
        "http://not a host/a.mp3",
        "http://sounds.example:0x/a.mp3",
    ],
)
async def test_a_page_is_kept_whatever_it_links_to(house: House, web: WebServer, link: str) -> None:
    web.pages["/linked"] = page(
        ARTICLE.replace("<article>", f"<article><audio src='{link}'></audio>").replace(
            BODY, BODY[:900]
        )
    )
    async with house.client("owner") as owner:
        added = await add(owner, f"{web.url}/linked")
        assert (added.status_code, added.json().get("status")) == (201, "ready"), added.text


async def test_a_private_address_is_refused_unless_it_is_allowed(
    data_dir: Path, web: WebServer
) -> None:
    async with open_house(data_dir) as house, house.client("owner") as owner:
        refused = await add(owner, f"{web.url}/otters")
        assert (refused.status_code, refused.json()["error"]) == (422, "ingest_failed")
        assert web.requests == []


async def test_what_is_not_an_address_is_invalid(house: House) -> None:
    async with house.client("owner") as owner:
        for url in ("http://", "https://user:secret@example.org/", "http://[half/"):
            refused = await add(owner, url)
            assert (refused.status_code, refused.json()["error"]) == (422, "invalid_request")


async def test_two_people_one_fetch_one_content_and_no_second_embedding(
    house: House, web: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house.client("owner") as owner, house.client("stranger") as stranger:
        first = (await add(owner, f"{web.url}/otters")).json()

        async def down(texts: object) -> Any:
            raise EmbeddingFailed("The embedder must not be asked again.")

        monkeypatch.setattr(house.app.embedder, "documents", down)
        second = (await add(stranger, f"{web.url}/otters?utm_source=mail#top")).json()
        assert (
            second["content_id"] == first["content_id"]
            and second["user_item_id"] != first["user_item_id"]
        )
        assert UUID(first["content_id"]).version == 4, (
            "it must not tell the second when the first came"
        )
        assert second["job_id"] is None, "all vectors are there"
        assert len(web.requests) == 1
        assert await search(stranger, "an animal that hunts in water", "semantic")
        assert (await stranger.get(f"/api/v1/items/{first['user_item_id']}")).status_code == 404


async def test_a_title_of_ones_own_is_not_told_to_others(house: House, web: WebServer) -> None:
    async with house.client("owner") as owner, house.client("stranger") as stranger:
        mine = (await add(owner, f"{web.url}/otters")).json()
        await owner.patch(
            f"/api/v1/items/{mine['user_item_id']}",
            json={"title": "For the secret project", "tags": ["secret"]},
        )
        theirs = (await add(stranger, f"{web.url}/otters")).json()
        item = (await stranger.get(f"/api/v1/items/{theirs['user_item_id']}")).json()
        assert item["title"] == "About otters" and "secret" not in str(item)


async def test_many_at_once_make_one_fetch_and_one_item(house: House, web: WebServer) -> None:
    async with house.client("owner") as owner:
        answers = await asyncio.gather(*(add(owner, f"{web.url}/otters") for _ in range(10)))
        assert sorted(answer.status_code for answer in answers) == [200] * 9 + [201]
        assert len({answer.json()["user_item_id"] for answer in answers}) == 1
        assert len(web.requests) == 1


async def test_many_at_once_wait_once_for_a_server_that_does_not_answer(
    data_dir: Path, web: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("commonplace.adapters.fetch.client.ANSWER_SECONDS", 0.5)
    web.pages["/late"] = in_turn(Wire.hang, page(ARTICLE))
    async with (
        open_house(data_dir, fetch_allow_hosts=web.host) as house,
        house.client("owner") as owner,
    ):
        answers = await asyncio.gather(*(add(owner, f"{web.url}/late") for _ in range(10)))
        assert {(answer.status_code, answer.json()["message"]) for answer in answers} == {
            (422, "The server did not answer within 0.5 s.")
        }
        assert len(web.requests) == 1
        assert (await add(owner, f"{web.url}/late")).status_code == 201, (
            "whoever comes later tries again"
        )


async def test_what_the_library_has_is_given_back_whatever_it_is_called_now(
    house: House, web: WebServer
) -> None:
    async with house.client("owner") as owner:
        first = (await add(owner, f"{web.url}/otters")).json()
        await owner.patch(f"/api/v1/items/{first['user_item_id']}", json={"title": "Renamed"})
        again = await add(owner, f"{web.url}/otters")
        assert (again.status_code, again.json()["user_item_id"]) == (200, first["user_item_id"])
        assert (await owner.get("/api/v1/items")).json()["total"] == 1


async def test_an_address_kept_out_of_the_kb_enters_it_when_it_is_added_for_it(
    house: House, web: WebServer
) -> None:
    async with house.client("owner") as owner:
        aside = (await add(owner, f"{web.url}/otters", in_kb=False)).json()
        assert await search(owner, "crayfish", "keyword") == []
        again = (await add(owner, f"{web.url}/otters")).json()
        assert (again["user_item_id"], again["status"]) == (aside["user_item_id"], "ready")
        assert await search(owner, "crayfish", "keyword") and len(web.requests) == 1


async def test_a_token_that_does_not_see_what_it_added_may_add_it_again_for_the_kb(
    house: House,
) -> None:
    """Of several folders, as long as nobody has filed it; of the KB only, once somebody has taken it out."""
    note = {"kind": "text", "title": "Tides", "text": "The sea comes and goes twice a day."}
    async with house.client("two_folder") as client:
        first = (await client.post("/api/v1/ingest", json={**note, "in_kb": False})).json()
        again = await client.post("/api/v1/ingest", json=note)
        assert (again.status_code, again.json()["user_item_id"]) == (200, first["user_item_id"])
        red = house.folders["Red"]
        assert (
            await client.post(
                f"/api/v1/items/{first['user_item_id']}/folders", json={"folder_ids": [red]}
            )
        ).status_code == 200
        assert await search(client, "tides", "keyword")
    async with house.client("kb_only") as client, house.client("owner") as owner:
        first = (await client.post("/api/v1/ingest", json=note | {"title": "Ebb"})).json()
        await owner.patch(f"/api/v1/items/{first['user_item_id']}", json={"in_kb": False})
        again = await client.post("/api/v1/ingest", json=note | {"title": "Ebb"})
        assert (again.status_code, again.json()["user_item_id"]) == (200, first["user_item_id"])
        assert (await owner.get(f"/api/v1/items/{first['user_item_id']}")).json()["in_kb"]


async def test_private_text_is_never_shared(house: House) -> None:
    text = {
        "kind": "text",
        "title": "Diary",
        "text": "Nobody else may know about the otter in the bath.",
    }
    async with house.client("owner") as owner, house.client("stranger") as stranger:
        mine, theirs = [
            (await client.post("/api/v1/ingest", json=text)).json() for client in (owner, stranger)
        ]
        assert mine["content_id"] != theirs["content_id"]


async def test_tags_of_ones_own_stay_as_they_are(house: House, web: WebServer) -> None:
    web.pages["/otters"] = in_turn(page(ARTICLE), page(NEWER))
    async with house.client("owner") as owner:
        item = (await add(owner, f"{web.url}/otters")).json()["user_item_id"]
        await owner.patch(f"/api/v1/items/{item}", json={"tags": ["mine"]})
        refreshed = (await owner.post(f"/api/v1/items/{item}/refresh")).json()
        assert refreshed["tags"] == ["mine"]


# -- progress


@pytest.mark.parametrize("era", ERAS)
async def test_who_asks_hears_of_each_step(house: House, web: WebServer, era: str) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async with connected(house, "owner", era) as client:
        await client.call_tool(
            "add_to_knowledge", {"kind": "url", "url": f"{web.url}/otters"}, progress_callback=hear
        )
        assert [message for *_, message in told] == [
            f"Fetching {web.host}",
            "Extracting text",
            "Indexing it",
        ]
        assert [progress for progress, *_ in told] == sorted({progress for progress, *_ in told})
        assert {total for _, total, _ in told} == {1.0}
        told.clear()
        await client.call_tool(
            "add_to_knowledge",
            {"kind": "text", "title": "Tides", "text": "The sea comes and goes."},
            progress_callback=hear,
        )
        assert [message for *_, message in told] == ["Indexing it"]


# -- video


async def test_a_video_is_kept_by_its_captions(data_dir: Path) -> None:
    captions = FakeVideos(
        Extracted(
            "Herons at dawn",
            "The heron waits. " * 300,
            (Mark(0, {"seconds": 1.5}),),
            author="River Paper",
        )
    )
    async with (
        open_house(data_dir, own={"own_videos": captions}) as house,
        house.client("owner") as owner,
    ):
        first = (await add(owner, "https://youtu.be/abcdefghijk?si=x")).json()
        again = (await add(owner, "https://www.youtube.com/watch?v=abcdefghijk&t=9")).json()
        assert (first["status"], again["user_item_id"]) == ("ready", first["user_item_id"])
        assert captions.asked == ["abcdefghijk"]
        item = (await owner.get(f"/api/v1/items/{first['user_item_id']}")).json()
        assert (item["title"], item["sections"][0]["locator"]) == (
            "Herons at dawn",
            {"seconds": 1.5},
        )


# -- refresh


async def test_refresh_replaces_text_sections_and_title_in_one_step(
    house: House, web: WebServer
) -> None:
    web.pages["/otters"] = in_turn(page(ARTICLE), page(NEWER))
    async with house.client("owner") as owner:
        added = (await add(owner, f"{web.url}/otters")).json()
        refreshed = (await owner.post(f"/api/v1/items/{added['user_item_id']}/refresh")).json()
        assert refreshed["title"] == "More about otters"
        assert refreshed["content_id"] != added["content_id"], (
            "what it said before stays what it was, as a version"
        )
        assert await search(owner, "crayfish", "keyword") == []
        assert set(await search(owner, "salmon", "keyword")) == {"More about otters"}


async def test_refresh_leaves_others_what_they_have_and_new_readers_get_the_new_text(
    house: House, web: WebServer
) -> None:
    web.pages["/otters"] = in_turn(page(ARTICLE), page(NEWER))
    async with house.client("owner") as owner, house.client("stranger") as stranger:
        mine = (await add(owner, f"{web.url}/otters")).json()
        theirs = (await add(stranger, f"{web.url}/otters")).json()
        refreshed = (await owner.post(f"/api/v1/items/{mine['user_item_id']}/refresh")).json()
        assert refreshed["content_id"] != theirs["content_id"]
        kept = (await stranger.get(f"/api/v1/items/{theirs['user_item_id']}")).json()
        assert "crayfish" in kept["text"] and await search(stranger, "crayfish", "keyword")
        await stranger.delete(f"/api/v1/items/{theirs['user_item_id']}")
        anew = (await add(stranger, f"{web.url}/otters")).json()
        assert anew["content_id"] == refreshed["content_id"]
        assert (
            "salmon" in (await stranger.get(f"/api/v1/items/{anew['user_item_id']}")).json()["text"]
        )


async def test_what_is_changed_while_the_page_is_fetched_again_stays_changed(
    house: House, web: WebServer
) -> None:
    asked, answer = threading.Event(), threading.Event()

    def slow(wire: Wire) -> None:
        asked.set()
        answer.wait(10)
        page(NEWER)(wire)

    web.pages["/otters"] = in_turn(page(ARTICLE), slow)
    async with house.client("owner") as owner:
        item = f"/api/v1/items/{(await add(owner, f'{web.url}/otters')).json()['user_item_id']}"
        refreshing = asyncio.create_task(owner.post(f"{item}/refresh"))
        await asyncio.to_thread(asked.wait, 10)
        wish = {"title": "Mine", "tags": ["mine"], "in_kb": False}
        await owner.patch(item, json=wish)
        answer.set()
        assert (await refreshing).status_code == 200
        after = (await owner.get(item)).json()
        assert {name: after[name] for name in wish} == wish and "salmon" in after["text"]
        assert await search(owner, "salmon") == []


async def test_a_refresh_that_fails_is_noted_and_changes_nothing_else(
    house: House, web: WebServer
) -> None:
    web.pages["/otters"] = in_turn(page(ARTICLE), page("gone", status=410))
    async with house.client("owner") as owner:
        item = (await add(owner, f"{web.url}/otters")).json()["user_item_id"]
        before = (await owner.get(f"/api/v1/items/{item}")).json()
        refused = await owner.post(f"/api/v1/items/{item}/refresh")
        assert (refused.status_code, refused.json()["error"]) == (422, "ingest_failed")
        after = (await owner.get(f"/api/v1/items/{item}")).json()
        noted = {"source_status", "source_status_since", "source_checked_at"}
        assert {name for name in after if after[name] != before[name]} == noted


async def test_a_text_cannot_be_fetched_again(house: House) -> None:
    item, _ = await house.add("Diary")
    async with house.client("owner") as owner:
        refused = await owner.post(f"/api/v1/items/{item}/refresh")
        assert (refused.status_code, refused.json()["error"]) == (422, "invalid_request")


# -- summaries


async def test_auto_transform_is_done_by_the_model_after_the_answer(
    data_dir: Path, web: WebServer
) -> None:
    with running(MessagesService()) as service:
        async with (
            open_house(
                data_dir,
                fetch_allow_hosts=web.host,
                model="anthropic",
                model_key=KEY,
                model_url=service.url,
            ) as house,
            house.client("owner") as owner,
        ):
            added = (await add(owner, f"{web.url}/otters", auto_transform=True)).json()
            before = (await owner.get(f"/api/v1/items/{added['user_item_id']}")).json()
            assert before["summary"] and not before["ai_generated"] and not service.bodies
            while await house.app.worker.run_once():
                pass
            after = (await owner.get(f"/api/v1/items/{added['user_item_id']}")).json()
            assert (after["summary"], after["ai_generated"]) == ("A text. It says things.", True)
            assert (before["cost_usd"], after["cost_usd"] > 0) == (0, True)
            assert after["sections"][0]["key_points"] == ["Point 0"] and after["tags"] == [
                "things",
                "text",
            ]
            assert await search(owner, "an animal that hunts in water", "semantic"), (
                "the vectors are still there"
            )


async def test_a_long_text_is_summarised_by_a_job(house: House) -> None:
    item, _ = await house.add(
        "Long",
        text="\n\n".join(f"The otter of day {n} caught a fish in the river." for n in range(1500)),
    )
    assert (await house.app.library.read(house.owner, item)).item.summary == ""
    while await house.app.worker.run_once():
        pass
    reading = await house.app.library.read(house.owner, item)
    assert reading.item.summary and all(section.key_points for section in reading.sections)
