"""Recordings: queued, written down once for everybody, found afterwards; or failed, with the reason and a second chance."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from commonplace.adapters.fetch.address_guard import parse_allowed
from commonplace.adapters.fetch.client import WebFetcher
from commonplace.adapters.youtube import YouTube
from commonplace.core.ingest import transcription
from commonplace.core.ingest.pipeline import IngestPipeline
from commonplace.core.ingest.transcription import ATTEMPTS
from commonplace.core.jobs import worker
from commonplace.core.people.tokens import NewToken
from commonplace.errors import IngestFailed, TranscriptionFailed
from commonplace.model import Caller, Capability, now
from tests import recordings
from tests.fakes import FakeTranscriber
from tests.interfaces.house import MCP_HEADERS, House, call_tool, open_house
from tests.webserver import WebServer, in_turn, page, web_server
from tests.youtube_pages import VIDEO, YouTubePages, stream

pytestmark = pytest.mark.anyio

EPISODE = """<html><head><title>Episode 7: Pelicans</title><meta property="og:audio" content="/episode.mp3"></head>
<body><p>In this episode we talk about pelicans.</p></body></html>"""
BY_FEED = """<html><head><title>Episode 8</title><link rel="alternate" type="application/rss+xml" href="/feed"></head>
<body><p>Listen to this episode about the birds of the delta in your favourite app.</p></body></html>"""
FEED = """<rss version="2.0"><channel><title>Birds weekly</title>
<item><title>Episode 8</title><guid>8</guid><link>{url}/by-feed</link><enclosure url="{url}/episode.mp3" type="audio/mpeg" length="9"/></item>
<item><title>Episode 7</title><guid>7</guid><enclosure url="{url}/older.mp3" type="audio/mpeg" length="9"/></item></channel></rss>"""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Three seconds."""
    return recordings.record(
        tmp_path_factory.mktemp("sound") / "episode.mp3", recordings.tone(3, 48_000)
    ).read_bytes()


@pytest.fixture
def web(sound: bytes) -> Iterator[WebServer]:
    with web_server() as server:
        server.pages |= {
            "/episode.mp3": page(sound, "audio/mpeg"),
            "/show": page(EPISODE),
            "/vague.mp3": page(sound, "application/octet-stream"),
            "/listen": page(sound, "audio/mpeg"),
            "/player": page(EPISODE.replace("/episode.mp3", "/listen?to=7")),
            "/by-feed": page(BY_FEED),
            "/feed": page(FEED.format(url=server.url), "application/rss+xml"),
        }
        yield server


Opened = tuple[House, httpx.AsyncClient, FakeTranscriber]


@asynccontextmanager
async def opened(data_dir: Path, web: WebServer, **settings: Any) -> AsyncIterator[Opened]:
    transcriber = FakeTranscriber()
    async with (
        open_house(
            data_dir, own={"own_transcriber": transcriber}, fetch_allow_hosts=web.host, **settings
        ) as house,
        house.client("owner") as owner,
    ):
        yield house, owner, transcriber


async def add(client: httpx.AsyncClient, url: str) -> Any:
    response = await client.post("/api/v1/ingest", json={"kind": "url", "url": url})
    assert response.status_code in (200, 201), response.text
    return response.json()


async def item_of(client: httpx.AsyncClient, added: Any) -> Any:
    return (await client.get(f"/api/v1/items/{added['user_item_id']}")).json()


async def work_off(house: House) -> None:
    while await house.app.worker.run_once():
        pass


async def visitor(house: House, number: int) -> Caller:
    person = await house.app.people.create(f"Visitor {number}", f"visitor{number}@example.org")
    return Caller(person.id, person.id, person.name, frozenset(Capability))


@pytest.mark.parametrize(
    "path, title",
    [
        ("/episode.mp3", "episode"),
        ("/vague.mp3", "vague"),
        ("/show", "Episode 7: Pelicans"),
        ("/player", "Episode 7: Pelicans"),
        ("/by-feed", "Episode 8"),
        ("/feed", "Episode 8"),
    ],
)
async def test_a_recording_is_transcribing_then_done_and_found_with_its_seconds(
    data_dir: Path, web: WebServer, path: str, title: str
) -> None:
    async with opened(data_dir, web) as (house, owner, transcriber):
        added = await add(owner, web.url + path)
        assert added["status"] == "transcribing"
        before = await item_of(owner, added)
        assert (before["title"], before["transcription_status"], before["text"]) == (
            title,
            "queued",
            "",
        )
        assert (await owner.get(f"/api/v1/jobs/{added['job_id']}")).json()["state"] == "queued"
        await work_off(house)
        after = await item_of(owner, added)
        assert (after["transcription_status"], after["transcription_error"], transcriber.calls) == (
            "done",
            None,
            1,
        )
        # What the page says stands before what is said.
        intro = {
            "/show": "In this episode we talk about pelicans.",
            "/player": "In this episode we talk about pelicans.",
            "/by-feed": "Listen to this episode about the birds of the delta in your favourite app.",
        }.get(path)
        assert after["text"] == (f"{intro}\n\n## Transcript\n\n" if intro else "") + (
            "The pelican nests beside the lagoon. Its bill holds eleven litres.\n\n"
            "In winter it flies to the delta."
        )
        assert after["sections"][-1]["locator"] == {"seconds": 0.0}
        assert [(each["start"], each["text"]) for each in after["transcript_segments"]] == [
            (0.0, "The pelican nests beside the lagoon."),
            (4.5, "Its bill holds eleven litres."),
            (30.0, "In winter it flies to the delta."),
        ]
        hits = (await owner.post("/api/v1/search", json={"query": "pelican lagoon"})).json()[
            "results"
        ]
        assert [hit["item_id"] for hit in hits] == [added["user_item_id"]]
        assert (await owner.get(f"/api/v1/jobs/{added['job_id']}")).json()["state"] == "done"


@pytest.mark.parametrize("there", ["/gone.mp3", "/page.mp3", "http://169.254.169.254/episode.mp3"])
@pytest.mark.parametrize("path", ["/show", "/by-feed", "/feed"])
async def test_a_page_with_nothing_to_hear_at_its_link_is_kept_as_it_reads(
    data_dir: Path, web: WebServer, path: str, there: str
) -> None:
    link = there if there.startswith("http") else web.url + there
    web.pages |= {
        "/page.mp3": page("<html><body><p>This episode has moved.</p></body></html>"),
        "/show": page(EPISODE.replace("/episode.mp3", link)),
        "/feed": page(
            FEED.format(url=web.url).replace(f"{web.url}/episode.mp3", link), "application/rss+xml"
        ),
    }
    async with opened(data_dir, web) as (_, owner, _):
        added = await add(owner, web.url + path)
        assert added["status"] == "ready"
        said = {"/show": "pelicans", "/by-feed": "birds of the delta", "/feed": "Episode 8"}[path]
        assert said in (await item_of(owner, added))["text"]


async def test_a_video_without_captions_is_heard(
    data_dir: Path, web: WebServer, sound: bytes
) -> None:
    fetcher = WebFetcher(allowed=parse_allowed(web.host))
    youtube = YouTubePages(fetcher, [stream(f"{web.url}/episode.mp3?x=1", size=len(sound))])
    own = {
        "own_videos": YouTube(youtube),
        "own_transcriber": FakeTranscriber(),
    }
    async with open_house(data_dir, own=own) as house, house.client("owner") as owner:
        added = await add(owner, f"https://youtu.be/{VIDEO}")
        assert added["status"] == "transcribing" and not web.requests
        assert (await item_of(owner, added))["title"] == "Herons at dawn"
        await work_off(house)
        after = await item_of(owner, added)
        assert after["transcription_status"] == "done" and "pelican" in after["text"]
        assert (await add(owner, f"https://www.youtube.com/watch?v={VIDEO}"))[
            "user_item_id"
        ] == added["user_item_id"]


async def test_a_video_that_gives_neither_captions_nor_sound_is_refused(data_dir: Path) -> None:
    own = {
        "own_videos": YouTube(YouTubePages(WebFetcher(), [])),
    }
    async with open_house(data_dir, own=own) as house, house.client("owner") as owner:
        answer = await call_tool(
            owner, "add_to_knowledge", {"kind": "url", "url": f"https://youtu.be/{VIDEO}"}
        )
        assert (answer["error"]["code"], answer["error"]["data"]["error"]) == (
            -32603,
            "ingest_failed",
        )
        assert "Upload the audio" in answer["error"]["message"]
        assert (await owner.get("/api/v1/items")).json()["total"] == 0


async def test_fifty_people_make_one_transcription(data_dir: Path, web: WebServer) -> None:
    from commonplace.core.items.drafts import Draft

    async with opened(data_dir, web) as (house, _, transcriber):
        people = [await visitor(house, n) for n in range(50)]
        added = await asyncio.gather(
            *(
                house.app.library.add(who, Draft("url", url=f"{web.url}/episode.mp3"))
                for who in people
            )
        )
        assert len({one.item.content_id for one in added}) == 1 and {
            one.status for one in added
        } == {"transcribing"}
        await work_off(house)
        assert (transcriber.calls, len(web.requests)) == (1, 2), "one sample, one download"
        for who, one in zip(people, added, strict=True):
            reading = await house.app.library.read(who, one.item.id)
            assert (
                reading.item.transcription_status == "done"
                and "pelican" in reading.text
                and reading.sections
            )
        late = await house.app.library.add(
            house.stranger, Draft("url", url=f"{web.url}/episode.mp3")
        )
        assert (late.status, transcriber.calls, len(web.requests)) == ("ready", 1, 2)


async def test_who_comes_while_it_is_written_down_waits_and_uses_up_no_attempts(
    data_dir: Path, web: WebServer
) -> None:
    async with (
        opened(data_dir, web) as (house, owner, transcriber),
        house.client("stranger") as stranger,
    ):
        transcriber.go_on = asyncio.Event()
        mine = await add(owner, f"{web.url}/episode.mp3")
        working = asyncio.create_task(house.app.worker.run_once())
        await asyncio.wait_for(transcriber.begun.wait(), 60)
        theirs = await add(stranger, f"{web.url}/episode.mp3")
        async with open_second(data_dir, web) as second:
            assert await second.worker.run_once() == 1
        running = await item_of(owner, mine)
        assert (running["transcription_status"], running["transcription_progress"]) == (
            "running",
            0.5,
        )
        text = (await call_tool(owner, "get_item", {"item_id": mine["user_item_id"]}))["result"][
            "content"
        ][0]["text"]
        assert "running, 50% done" in text
        assert await told_progress(owner, mine["user_item_id"]) == [
            {"progress": 0.5, "total": 1.0, "progressToken": 7}
        ]
        waiting = (await stranger.get(f"/api/v1/jobs/{theirs['job_id']}")).json()
        assert (waiting["state"], waiting["attempts"]) == ("queued", 0)
        transcriber.go_on.set()
        await working
        await work_off(house)
        assert (await item_of(stranger, theirs))["transcription_status"] == "done"
        assert transcriber.calls == 1


async def told_progress(client: httpx.AsyncClient, item_id: str) -> list[Any]:
    """The progress notifications of a get_item that asks for them."""
    params = {"name": "get_item", "arguments": {"item_id": item_id}, "_meta": {"progressToken": 7}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    stream = (await client.post("/mcp", headers=MCP_HEADERS, json=message)).text
    sent = [
        json.loads(line.removeprefix("data: "))
        for line in stream.splitlines()
        if line.startswith("data: {")
    ]
    return [one["params"] for one in sent if one.get("method") == "notifications/progress"]


@asynccontextmanager
async def open_second(data_dir: Path, web: WebServer) -> AsyncIterator[Any]:
    """Another process's application on the same data."""
    from commonplace.app import open_app
    from commonplace.settings import Settings

    settings = Settings(data_dir=data_dir, embedder="static", fetch_allow_hosts=web.host)
    async with open_app(settings, own_transcriber=FakeTranscriber()) as app:
        yield app


async def test_a_recording_at_fault_fails_for_all_with_the_reason_and_can_be_retried(
    data_dir: Path, web: WebServer
) -> None:
    async with (
        opened(data_dir, web) as (house, owner, transcriber),
        house.client("stranger") as stranger,
    ):
        transcriber.troubles = [IngestFailed("No speech was found in the recording.")]
        mine, theirs = [await add(client, f"{web.url}/episode.mp3") for client in (owner, stranger)]
        await work_off(house)
        for client, added in ((owner, mine), (stranger, theirs)):
            item = await item_of(client, added)
            assert (item["transcription_status"], item["transcription_error"]) == (
                "failed",
                "No speech was found in the recording.",
            )
        assert transcriber.calls == 1
        text = (await call_tool(owner, "get_item", {"item_id": mine["user_item_id"]}))["result"][
            "content"
        ][0]["text"]
        assert "failed: No speech was found" in text
        retried = await owner.post(f"/api/v1/items/{mine['user_item_id']}/retry")
        assert (retried.status_code, retried.json()["transcription_status"]) == (200, "queued")
        assert (await stranger.post(f"/api/v1/jobs/{theirs['job_id']}/retry")).json()[
            "state"
        ] == "queued"
        await work_off(house)
        assert {
            (await item_of(client, added))["transcription_status"]
            for client, added in ((owner, mine), (stranger, theirs))
        } == {"done"}
        assert transcriber.calls == 2


async def test_adding_again_what_failed_tries_again(data_dir: Path, web: WebServer) -> None:
    async with opened(data_dir, web) as (house, owner, transcriber):
        transcriber.troubles = [IngestFailed("No.")]
        first = await add(owner, f"{web.url}/episode.mp3")
        await work_off(house)
        again = await add(owner, f"{web.url}/episode.mp3")
        assert (again["status"], again["user_item_id"], again["job_id"]) == (
            "transcribing",
            first["user_item_id"],
            first["job_id"],
        )
        await work_off(house)
        assert (await item_of(owner, first))["transcription_status"] == "done"


async def test_a_transcriber_at_fault_is_asked_again_later(data_dir: Path, web: WebServer) -> None:
    async with opened(data_dir, web) as (house, owner, transcriber):
        transcriber.troubles = [TranscriptionFailed("The service is overloaded.")]
        added = await add(owner, f"{web.url}/episode.mp3")
        assert await house.app.worker.run_once() == 1
        job = (await owner.get(f"/api/v1/jobs/{added['job_id']}")).json()
        assert (job["state"], job["attempts"], job["error"]) == (
            "queued",
            1,
            "The service is overloaded.",
        )
        assert (await item_of(owner, added))["transcription_status"] == "queued"


async def test_a_transcription_that_fails_for_an_unforeseen_reason_is_given_up(
    data_dir: Path, web: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In whatever step: here the text is there, and making passages of it fails."""
    monkeypatch.setattr(worker, "LONGEST_WAIT", 0)
    async with opened(data_dir, web) as (house, owner, transcriber):

        async def fail(*args: Any, **kwargs: Any) -> None:
            raise RuntimeError("a bug")

        added = await add(owner, f"{web.url}/episode.mp3")
        monkeypatch.setattr(house.app.worker._handlers["transcribe"], "_complete", fail)
        for _ in range(20):
            await house.app.worker.run_once()
        item = await item_of(owner, added)
        assert (item["transcription_status"], item["transcription_error"]) == (
            "failed",
            "Unexpected RuntimeError. See the server's log for details.",
        )
        job = (await owner.get(f"/api/v1/jobs/{added['job_id']}")).json()
        assert (job["state"], job["attempts"], transcriber.calls) == ("failed", ATTEMPTS, 1)


async def test_a_transcription_service_that_is_down_is_waited_for(
    data_dir: Path, web: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SHORTEST_PAUSE", "LONGEST_PAUSE"):
        monkeypatch.setattr(worker, name, 0)
    async with opened(data_dir, web) as (house, owner, transcriber):
        down = TranscriptionFailed("The speech service cannot be reached.")
        down.transient = True
        transcriber.troubles = [down] * 3 * ATTEMPTS
        added = await add(owner, f"{web.url}/episode.mp3")
        await work_off(house)
        assert (await item_of(owner, added))["transcription_status"] == "done"


async def test_a_recording_that_cannot_be_reached_for_a_moment_is_waited_for(
    data_dir: Path, web: WebServer, sound: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SHORTEST_PAUSE", "SOURCE_PAUSE"):
        monkeypatch.setattr(worker, name, 0)
    web.pages["/episode.mp3"] = in_turn(
        page(sound, "audio/mpeg"), *[page("busy", status=503)] * 3, page(sound, "audio/mpeg")
    )
    async with opened(data_dir, web) as (house, owner, _):
        added = await add(owner, f"{web.url}/episode.mp3")
        await work_off(house)
        assert (await item_of(owner, added))["transcription_status"] == "done"


async def test_a_recording_that_is_gone_by_then_fails_with_the_reason(
    data_dir: Path, web: WebServer, sound: bytes
) -> None:
    web.pages["/episode.mp3"] = in_turn(page(sound, "audio/mpeg"), page("gone", status=410))
    async with opened(data_dir, web) as (house, owner, transcriber):
        added = await add(owner, f"{web.url}/episode.mp3")
        await work_off(house)
        item = await item_of(owner, added)
        assert item["transcription_status"] == "failed" and "410" in item["transcription_error"]
        assert transcriber.calls == 0


async def test_an_item_deleted_meanwhile_is_no_trouble(data_dir: Path, web: WebServer) -> None:
    async with opened(data_dir, web) as (house, owner, transcriber):
        transcriber.go_on = asyncio.Event()
        added = await add(owner, f"{web.url}/episode.mp3")
        working = asyncio.create_task(house.app.worker.run_once())
        await asyncio.wait_for(transcriber.begun.wait(), 60)
        await owner.delete(f"/api/v1/items/{added['user_item_id']}")
        transcriber.go_on.set()
        await working
        assert (await owner.get("/api/v1/items")).json()["total"] == 0


@pytest.mark.parametrize("in_kb", [True, False])
async def test_what_is_changed_while_it_is_written_down_stays_changed(
    data_dir: Path, web: WebServer, in_kb: bool
) -> None:
    async with opened(data_dir, web) as (house, owner, transcriber):
        transcriber.go_on = asyncio.Event()
        body = {"kind": "url", "url": f"{web.url}/episode.mp3", "in_kb": not in_kb}
        added = (await owner.post("/api/v1/ingest", json=body)).json()
        working = asyncio.create_task(house.app.worker.run_once())
        await asyncio.wait_for(transcriber.begun.wait(), 60)
        wish = {
            "title": "Birds of the lagoon",
            "tags": ["mine"],
            "category": "Nature",
            "in_kb": in_kb,
        }
        assert (
            await owner.patch(f"/api/v1/items/{added['user_item_id']}", json=wish)
        ).status_code == 200
        transcriber.go_on.set()
        await working
        item = await item_of(owner, added)
        assert {name: item[name] for name in wish} == wish and item[
            "transcription_status"
        ] == "done"
        hits = (await owner.post("/api/v1/search", json={"query": "pelican"})).json()["results"]
        assert [hit["disk_title"] for hit in hits] == ["Birds of the lagoon"] * in_kb


async def test_out_of_the_kb_it_is_written_down_but_not_found(
    data_dir: Path, web: WebServer
) -> None:
    async with opened(data_dir, web) as (house, owner, _):
        added = (
            await owner.post(
                "/api/v1/ingest",
                json={"kind": "url", "url": f"{web.url}/episode.mp3", "in_kb": False},
            )
        ).json()
        await work_off(house)
        item = await item_of(owner, added)
        assert "pelican" in item["text"] and item["sections"] == []
        assert (await owner.post("/api/v1/search", json={"query": "pelican"})).json()[
            "results"
        ] == []


# -- minutes


async def test_past_the_cap_nothing_is_queued(data_dir: Path, web: WebServer, sound: bytes) -> None:
    web.pages["/second.mp3"] = page(sound, "audio/mpeg")
    async with opened(data_dir, web, transcription_minutes=1, tier="free") as (house, owner, _):
        await add(owner, f"{web.url}/episode.mp3")
        await work_off(house)  # settles at the 60 seconds that the transcriber counted
        refused = await owner.post(
            "/api/v1/ingest", json={"kind": "url", "url": f"{web.url}/second.mp3"}
        )
        quota = {"resource": "transcription_minutes", "tier": "free", "cap_per_month": 1}
        assert refused.status_code == 402
        assert refused.json() == {
            "error": "quota_exceeded",
            "message": refused.json()["message"],
            **quota,
        }
        error = (
            await call_tool(
                owner, "add_to_knowledge", {"kind": "url", "url": f"{web.url}/second.mp3"}
            )
        )["error"]
        assert (error["code"], error["data"]) == (
            402,
            {"error": "quota_exceeded", "message": refused.json()["message"], **quota},
        )
        assert (await owner.get("/api/v1/items")).json()["total"] == 1
        async with house.client("stranger") as stranger:
            assert (await add(stranger, f"{web.url}/episode.mp3"))["status"] == "ready", (
                "what is there costs nothing"
            )
            assert (await add(stranger, f"{web.url}/second.mp3"))["status"] == "transcribing", (
                "others have minutes of their own"
            )


async def test_too_little_left_fails_for_one_and_the_next_pays(
    data_dir: Path, web: WebServer, tmp_path: Path
) -> None:
    long = recordings.record(
        tmp_path / "long.mp3", recordings.tone(70, 16_000), 16_000, "mono"
    ).read_bytes()
    web.pages["/long.mp3"] = page(long, "audio/mpeg")
    async with opened(data_dir, web, transcription_minutes=1) as (house, owner, transcriber):
        added = await add(owner, f"{web.url}/long.mp3")
        await work_off(house)
        item = await item_of(owner, added)
        assert (
            item["transcription_status"] == "failed" and "1 minutes" in item["transcription_error"]
        )
        assert transcriber.calls == 0
        token = (await house.app.people.create_token(house.owner, NewToken("again", write=True)))[1]
        async with house.client(token=token) as client:
            assert (await add(client, f"{web.url}/episode.mp3"))["status"] == "transcribing", (
                "nothing was spent"
            )


async def test_a_transcription_that_fails_costs_nothing(data_dir: Path, web: WebServer) -> None:
    async with opened(data_dir, web, transcription_minutes=1) as (house, owner, transcriber):
        transcriber.troubles = [IngestFailed("No speech.")]
        await add(owner, f"{web.url}/episode.mp3")
        await work_off(house)
        assert (
            await house.app.store.quotas.used_seconds(
                house.owner.library_id, house.owner.person_id, f"{now():%Y-%m}"
            )
            == 0
        )
        await add(owner, f"{web.url}/episode.mp3")
        await work_off(house)
        assert (
            await house.app.store.quotas.used_seconds(
                house.owner.library_id, house.owner.person_id, f"{now():%Y-%m}"
            )
            == 60
        )


async def test_a_transcript_that_cannot_be_stored_is_given_up_after_some_attempts(
    data_dir: Path, web: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(data_dir, web) as (house, owner, transcriber):
        added = await add(owner, f"{web.url}/episode.mp3")

        async def broken(*_: object, **__: object) -> None:
            raise RuntimeError("nobody foresaw this")

        with monkeypatch.context() as patch:
            patch.setattr(IngestPipeline, "prepare", broken)
            patch.setattr(
                transcription,
                "retry_at",
                lambda job, error, attempts: None if job.attempts >= attempts else now(),
            )
            for _ in range(transcription.ATTEMPTS + 2):
                await house.app.worker.run_once()
        item = await item_of(owner, added)
        assert (item["status"], transcriber.calls) == ("failed", 1)
        assert "RuntimeError" in item["status_reason"]
        await owner.post(f"/api/v1/items/{added['user_item_id']}/retry")
        await work_off(house)
        assert ((await item_of(owner, added))["status"], transcriber.calls) == ("ready", 1)
