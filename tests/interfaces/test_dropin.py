"""Scripts that were written for Graniite, SkillDiscs and Sibyl run with another base URL and key."""

import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from commonplace.errors import EmbeddingFailed
from tests.fakes import FakeTranscriber
from tests.interfaces.house import House, call_tool, open_house
from tests.interfaces.live import live_house
from tests.recordings import record, tone
from tests.webserver import page, web_server

SCRIPTS = Path(__file__).parent / "dropin"
DISKS = {
    "Forgetting": "Forgetting follows a curve: what is not repeated is forgotten within days.",
    "Bread": "Sourdough needs flour, water, salt and a warm kitchen.",
    "Rivers": "Herons stand in shallow rivers and wait for fish.",
}


def run(name: str, address: str, house: House, **environment: str) -> None:
    settings = {"BASE_URL": address, "API_KEY": house.tokens["owner"], **environment}
    done = subprocess.run(
        [sys.executable, SCRIPTS / f"{name}.py"],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_graniite(data_dir: Path, tmp_path: Path) -> None:
    article = "<title>On herons</title><article>" + "<p>Herons wait in rivers for fish.</p>" * 9
    with web_server() as web:
        web.pages["/herons"] = page(article + "</article>")
        settings = {"fetch_allow_hosts": web.host, "own": {"own_transcriber": FakeTranscriber()}}
        with live_house(data_dir, **settings) as (address, house):
            run("graniite", address, house, PAGE_URL=f"{web.url}/herons")


@pytest.mark.anyio
async def test_recordings_show_their_transcripts(data_dir: Path, tmp_path: Path) -> None:
    whistle = record(tmp_path / "whistle.mp3", tone(1, 48_000)).read_bytes()
    own = {"own_transcriber": FakeTranscriber()}
    async with open_house(data_dir, own=own) as house, house.client("owner") as owner:
        about = {"mime": "audio/mpeg", "size": len(whistle)}
        signed = (await owner.post("/api/v1/uploads/signed-url", json=about)).json()
        assert (await owner.put(signed["signed_url"], content=whistle)).is_success
        made = await owner.post(signed["finalize_endpoint"], json={"path": signed["path"]})
        path = f"/api/v1/items/{made.json()['user_item_id']}"
        waiting = (await owner.get(path)).json()
        assert (waiting["status"], waiting["transcript"]) == ("transcribing", None)
        assert (waiting["media_kind"], waiting["mime_type"]) == ("audio", "audio/mpeg")
        await house.app.worker.run_once()
        read = (await owner.get(path)).json()
        assert read["transcription_status"] == "done"
        assert read["transcript"] == read["text"]
        assert read["duration_seconds"] > 0
        segments = read["transcript_segments"]
        assert segments
        assert "\n\n".join(each["text"] for each in segments).split() == read["text"].split()
        for one in segments:
            assert one.keys() == {"start", "end", "text", "speaker"}
            assert one["start"] <= one["end"]


def test_skilldiscs(data_dir: Path) -> None:
    with live_house(data_dir) as (address, house):
        token = {"Authorization": f"Bearer {house.tokens['owner']}"}
        ids = [
            httpx.post(
                f"{address}/api/v1/ingest",
                json={"kind": "text", "title": title, "text": text},
                headers=token,
            ).json()["user_item_id"]
            for title, text in DISKS.items()
        ]
        read = httpx.get(f"{address}/api/v1/items/{ids[0]}", headers=token).json()
        run("skilldiscs", address, house, DISK=read["public_id"])


def test_sibyl(data_dir: Path) -> None:
    with live_house(data_dir) as (address, house):
        run("sibyl", address, house)


@pytest.mark.anyio
async def test_search_by_meaning_alone_fails_with_the_embedder(
    house: House, owner: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def down(*args: object) -> None:
        raise EmbeddingFailed("The embedder does not answer.")

    await house.add("Herons")
    monkeypatch.setattr(house.app.embedder, "query", down)
    found = await owner.get("/api/v1/disks", params={"search": "heron"})
    assert (found.status_code, found.json()["error"]) == (500, "search_failed")
    answer = await call_tool(owner, "search_knowledge", {"query": "heron"})
    assert answer["error"]["code"] == -32603
    assert answer["error"]["data"]["error"] == "search_failed"
    assert (await owner.get("/api/v1/disks")).status_code == 200
