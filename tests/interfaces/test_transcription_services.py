"""Speech that a service elsewhere writes down: begun once, whoever dies meanwhile, and asked for when it reports."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from commonplace.adapters.transcribe.service import AssemblyAITranscriber, GladiaTranscriber
from commonplace.model import now
from commonplace.settings import Settings
from tests import recordings
from tests.interfaces.house import ADDRESS, House, open_house
from tests.speech_service import SpeechService
from tests.stub_service import KEY, running
from tests.webserver import WebServer, page, web_server

pytestmark = pytest.mark.anyio

ADAPTERS: dict[str, Any] = {"assemblyai": AssemblyAITranscriber, "gladia": GladiaTranscriber}
NEWS = {
    "assemblyai": {"transcript_id": "job-0", "status": "completed"},
    "gladia": {"event": "transcription.success", "payload": {"id": "job-0"}},
}


@pytest.fixture(params=list(ADAPTERS))
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def service() -> Iterator[SpeechService]:
    with running(SpeechService()) as ready:
        yield ready


@pytest.fixture
def web(tmp_path: Path) -> Iterator[WebServer]:
    sound = recordings.record(tmp_path / "talk.mp3", recordings.tone(3, 48_000)).read_bytes()
    with web_server() as server:
        server.pages["/talk.mp3"] = page(sound, "audio/mpeg")
        yield server


@asynccontextmanager
async def opened(
    data_dir: Path, provider: str, service: SpeechService, web: WebServer, **more: Any
) -> AsyncIterator[tuple[House, httpx.AsyncClient]]:
    wanted = {
        "transcriber": provider,
        "transcriber_key": KEY,
        "transcriber_url": service.url,
        "fetch_allow_hosts": web.host,
    } | more
    transcriber = ADAPTERS[provider](
        Settings(data_dir=data_dir, **wanted), poll=0.01, pauses=(0.01,)
    )
    async with (
        open_house(data_dir, own={"own_transcriber": transcriber}, **wanted) as house,
        house.client("owner") as owner,
    ):
        yield house, owner


async def add(client: httpx.AsyncClient, web: WebServer) -> str:
    response = await client.post(
        "/api/v1/ingest", json={"kind": "url", "url": f"{web.url}/talk.mp3"}
    )
    assert response.json()["status"] == "transcribing"
    return str(response.json()["user_item_id"])


async def until(condition: Any) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - what it waits for happens in the service's thread
            await asyncio.sleep(0.01)


async def kill_while_it_waits(
    house: House, service: SpeechService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As kill -9 would: nothing is told to anybody."""
    working = asyncio.create_task(house.app.worker.run_once())
    await until(lambda: len([r for r in service.requests if r.path.endswith("job-0")]) > 2)

    async def nothing(*_: Any, **__: Any) -> None:
        pass

    with monkeypatch.context() as patch:
        for noun, verb in (
            (house.app.store.jobs, "postpone"),
            (house.app.store.jobs, "fail"),
            (house.app.store.quotas, "set_seconds"),
        ):
            patch.setattr(noun, verb, nothing)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


def an_hour_later(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("jobs", "contents"):
        monkeypatch.setattr(f"commonplace.store.{module}.now", lambda: now() + timedelta(hours=1))


async def test_who_goes_on_neither_sends_nor_pays_again(
    data_dir: Path,
    provider: str,
    service: SpeechService,
    web: WebServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service.busy = ["processing"] * 1_000_000
    async with opened(data_dir, provider, service, web) as (house, owner):
        item = await add(owner, web)
        await kill_while_it_waits(house, service, monkeypatch)
        service.busy = []
        an_hour_later(monkeypatch)  # the lease has run out
        del web.pages["/talk.mp3"]  # nor is the recording needed any more
        while await house.app.worker.run_once():
            pass
        found = await house.app.library.read(house.owner, item)
        assert found.item.transcription_status == "done" and "ferry leaves at dawn" in found.text
        assert (len(service.uploads), len(service.jobs)) == (1, 1)
        used = await house.app.store.quotas.used_seconds(
            house.owner.library_id, house.owner.person_id, f"{now():%Y-%m}"
        )
        assert used == 8, "counted once, as long as the service says it was"


async def test_what_failed_there_is_begun_anew(
    data_dir: Path,
    provider: str,
    service: SpeechService,
    web: WebServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service.error = {"assemblyai": "Server error, try again", "gladia": 500}[provider]
    async with opened(data_dir, provider, service, web) as (house, owner):
        item = await add(owner, web)
        await house.app.worker.run_once()
        assert (
            await house.app.library.read(house.owner, item)
        ).item.transcription_status == "queued"
        service.error = None
        an_hour_later(monkeypatch)
        while await house.app.worker.run_once():
            pass
        assert (await house.app.library.read(house.owner, item)).item.transcription_status == "done"
        assert len(service.jobs) == 2


async def test_the_service_reports_and_is_asked_at_once(
    data_dir: Path, provider: str, service: SpeechService, web: WebServer
) -> None:
    service.busy = ["processing"]
    async with (
        opened(data_dir, provider, service, web, public_url=ADDRESS) as (house, owner),
        house.client() as nobody,
    ):
        item = await add(owner, web)
        working = asyncio.create_task(house.app.worker.run_once())
        await until(lambda: not service.busy)
        [order] = service.jobs
        url, headers = order.get("webhook_url") or order["callback_config"]["url"], {}
        if provider == "assemblyai":
            headers = {order["webhook_auth_header_name"]: order["webhook_auth_header_value"]}
        assert KEY not in json.dumps(order)
        news = json.dumps(NEWS[provider]).encode()
        path = url.partition("?")[0]
        for wrong in (
            (path, {}),
            (f"{path}?secret=x", {}),
            (path, {"X-Commonplace-Secret": "é".encode()}),
            (url.replace(provider, "siri"), headers),
        ):
            answer = await nobody.post(wrong[0], headers=wrong[1], content=news)
            assert (answer.status_code, answer.json()["error"]) == (401, "unauthorized"), wrong
        assert (await nobody.post(url, headers=headers, content=b"{}")).status_code == 422
        assert (await nobody.get(url, headers=headers)).status_code == 401, (
            "only POST gets in without a token"
        )
        assert (await nobody.post(url, headers=headers, content=news)).json() == {"ok": True}
        async with asyncio.timeout(20):  # by itself it would have looked again after thirty seconds
            await working
        assert (await house.app.library.read(house.owner, item)).item.transcription_status == "done"


async def test_a_recording_whose_file_is_lost_says_so(
    data_dir: Path, service: SpeechService, web: WebServer, tmp_path: Path
) -> None:
    sound = recordings.record(tmp_path / "mine.mp3", recordings.tone(3, 48_000))
    async with opened(data_dir, "gladia", service, web) as (house, owner):
        added = await house.app.uploads.add_file(house.owner, sound)
        [blob] = [file for file in (data_dir / "blobs").rglob("*") if file.is_file()]
        blob.unlink()
        while await house.app.worker.run_once():
            pass
        item = (await owner.get(f"/api/v1/items/{added.item.id}")).json()
        assert (item["transcription_status"], item["transcription_error"]) == (
            "failed",
            "The recording's file no longer exists. Upload it again.",
        )
