"""Files by upload: announced, sent, read or queued; and everything that can go wrong on the way."""

import asyncio
import errno
import os
import tracemalloc
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from commonplace.core.items.uploads import Part
from commonplace.model import now
from tests.fakes import FakeTranscriber
from tests.interfaces.conftest import OpenHouse
from tests.interfaces.house import House
from tests.object_store import BUCKET, CREDENTIALS, running_s3
from tests.recordings import picture_only, record, speech, tone
from tests.services import free_port

pytestmark = pytest.mark.anyio

NOTES = b"# Herons\n\nA grey heron stands in the shallow water by the weir and waits for eels.\n"


async def announce(
    client: httpx.AsyncClient,
    content: bytes,
    name: str = "notes.md",
    kind: str = "text/markdown",
    **changes: Any,
) -> Any:
    body = {"filename": name, "content_type": kind, "size": len(content)} | changes
    response = await client.post("/api/v1/uploads/signed-url", json=body)
    assert response.status_code == 201, response.text
    return response.json()


async def send(
    house: House,
    client: httpx.AsyncClient,
    content: bytes,
    name: str = "notes.md",
    kind: str = "text/markdown",
) -> str:
    """The id of an upload whose bytes are there."""
    upload = await announce(client, content, name, kind)
    async with house.client() as nobody:  # the address is enough
        response = await nobody.put(upload["url"], content=content)
        assert (response.status_code, response.json()["received"]) == (200, len(content))
    return str(upload["upload_id"])


async def finish(
    client: httpx.AsyncClient, upload_id: str, document: bool = True, **more: Any
) -> httpx.Response:
    path = "/api/v1/uploads/finalize-document" if document else "/api/v1/uploads/finalize"
    return await client.post(path, json={"upload_id": upload_id, **more})


def blobs(house: House) -> list[Path]:
    return [
        file
        for folder in ("blobs/uploads", "incoming")
        for file in (house.app.settings.data_dir / folder).rglob("*")
        if file.is_file()
    ]


async def search(client: httpx.AsyncClient, query: str) -> list[Any]:
    hits = (await client.post("/api/v1/search", json={"query": query})).json()["results"]
    return list(hits)


# -- documents


async def test_a_document_is_read_within_the_call_and_its_original_kept(
    house: House, owner: httpx.AsyncClient
) -> None:
    answer = await finish(owner, await send(house, owner, NOTES))
    assert answer.status_code == 201
    kept = answer.json()
    assert (kept["status"], kept["folder_id"]) == ("ready", None)
    assert kept.keys() == {"status", "user_item_id", "content_id", "folder_id", "job_id"}
    assert [hit["item_id"] for hit in await search(owner, "heron weir")] == [kept["user_item_id"]]
    item = (await owner.get(f"/api/v1/items/{kept['user_item_id']}")).json()
    assert (item["kind"], item["title"]) == ("file", "Herons")
    assert "waits for eels" in item["text"]
    assert [file.read_bytes() for file in blobs(house)] == [NOTES]


@pytest.mark.slow
async def test_text_past_five_megabytes_is_cut_and_everything_says_so(
    house: House, owner: httpx.AsyncClient
) -> None:
    long = b"# Herons\n\n" + b"The heron waits for eels at the weir.\n\n" * 140_000
    announced, again = [await send(house, owner, long) for _ in range(2)]
    kept = (await finish(owner, announced)).json()
    assert kept["truncated"] is True
    assert (await finish(owner, again)).json()["truncated"] is True, (
        "read once, and known to be cut"
    )
    item = (await owner.get(f"/api/v1/items/{kept['user_item_id']}")).json()
    assert (item["truncated"], len(item["text"].encode())) == (True, 5_000_000)
    assert item["text"][item["sections"][-1]["end"] :].strip() == ""
    assert (await search(owner, "heron weir"))[0]["item_id"] == kept["user_item_id"]
    short = (await finish(owner, await send(house, owner, NOTES))).json()
    assert {
        each["id"]: each["truncated"]
        for each in (await owner.get("/api/v1/items")).json()["items"]
        if each["id"] in (kept["user_item_id"], short["user_item_id"])
    } == {kept["user_item_id"]: True, short["user_item_id"]: False}


async def test_originals_stay_until_the_item_goes(house: House, owner: httpx.AsyncClient) -> None:
    kept = (await finish(owner, await send(house, owner, NOTES))).json()
    await finish(owner, await send(house, owner, NOTES, "copy.md"))
    await house.app.uploads.cleanup()
    assert [file.read_bytes() for file in blobs(house)] == [NOTES], "of two copies, one is kept"
    assert (await house.app.overview.report(house.owner)).originals == len(NOTES)
    await owner.delete(f"/api/v1/items/{kept['user_item_id']}")
    await house.app.uploads.cleanup()
    assert [file.read_bytes() for file in blobs(house)] == [NOTES], "it may be restored"
    await owner.delete("/api/v1/trash")
    await house.app.uploads.cleanup()
    assert blobs(house) == []
    assert (await house.app.overview.report(house.owner)).originals == 0


async def test_originals_are_deleted_after_reading_where_they_are_not_kept(
    house_with: OpenHouse, whistle: bytes
) -> None:
    async with (
        house_with(own={"own_transcriber": FakeTranscriber()}, keep_originals=False) as house,
        house.client("owner") as owner,
    ):
        kept = (await finish(owner, await send(house, owner, NOTES))).json()
        assert blobs(house) == []
        await finish(
            owner, await send(house, owner, whistle, "w.mp3", "audio/mpeg"), document=False
        )
        assert len(blobs(house)) == 1, "it is still to be transcribed"
        await work_off(house)
        assert blobs(house) == []
        assert (await house.app.overview.report(house.owner)).originals == 0
        item_id = kept["user_item_id"]
        assert await house.app.originals.find(house.owner, item_id) is None


async def test_a_file_that_was_not_kept_is_kept_when_it_comes_again(
    house: House, owner: httpx.AsyncClient
) -> None:
    settings = house.app.originals._settings
    house.app.originals._settings = replace(settings, keep_originals=False)
    kept = (await finish(owner, await send(house, owner, NOTES))).json()
    house.app.originals._settings = settings
    assert await house.app.originals.find(house.owner, kept["user_item_id"]) is None
    again = (await finish(owner, await send(house, owner, NOTES, "copy.md"))).json()
    assert again["user_item_id"] == kept["user_item_id"]
    original = await house.app.originals.find(house.owner, kept["user_item_id"])
    assert original and original.filename == "copy.md"
    await house.app.uploads.cleanup()
    assert [file.read_bytes() for file in blobs(house)] == [NOTES]


async def test_title_and_kb_are_the_callers(house: House, owner: httpx.AsyncClient) -> None:
    kept = (await finish(owner, await send(house, owner, NOTES), title="Birds", in_kb=False)).json()
    item = (await owner.get(f"/api/v1/items/{kept['user_item_id']}")).json()
    assert (item["title"], item["in_kb"]) == ("Birds", False)
    assert await search(owner, "heron weir") == []


async def test_finishing_twice_and_sending_the_same_file_again_give_one_item(
    house: House, owner: httpx.AsyncClient
) -> None:
    upload = await send(house, owner, NOTES)
    first, again = await finish(owner, upload), await finish(owner, upload)
    other = await finish(owner, await send(house, owner, NOTES, "copy.md"), title="Another name")
    assert (first.status_code, again.status_code, other.status_code) == (201, 200, 200)
    assert (
        first.json()["user_item_id"] == again.json()["user_item_id"] == other.json()["user_item_id"]
    )
    at_once = await send(house, owner, NOTES + b"More.")
    both = await asyncio.gather(finish(owner, at_once), finish(owner, at_once))
    assert len({answer.json()["user_item_id"] for answer in both}) == 1
    assert (await owner.get("/api/v1/items")).json()["total"] == 2


async def test_another_library_shares_nothing(house: House, owner: httpx.AsyncClient) -> None:
    mine = (await finish(owner, await send(house, owner, NOTES))).json()
    async with house.client("stranger") as stranger:
        theirs = (await finish(stranger, await send(house, stranger, NOTES))).json()
    assert mine["content_id"] != theirs["content_id"]


async def test_an_upload_is_filed_and_kept_in_the_kb_as_its_token_says(house: House) -> None:
    async with house.client("one_folder") as client:
        kept = (await finish(client, await send(house, client, NOTES))).json()
        assert kept["folder_id"] == house.folders["Red"]
    async with house.client("kb_only") as client:
        kept = (await finish(client, await send(house, client, NOTES + b"x"), in_kb=False)).json()
        assert (await client.get(f"/api/v1/items/{kept['user_item_id']}")).json()["in_kb"] is True


async def test_what_cannot_be_read_leaves_nothing_behind(
    house: House, owner: httpx.AsyncClient
) -> None:
    answer = await finish(
        owner, await send(house, owner, b"%PDF-1.7 and then nothing", "x.pdf", "application/pdf")
    )
    assert (answer.status_code, answer.json()["error"]) == (422, "ingest_failed")
    assert (await owner.get("/api/v1/items")).json()["total"] == 0


# -- recordings


@pytest.fixture
def whistle(tmp_path: Path) -> bytes:
    return record(tmp_path / "whistle.mp3", tone(1, 48_000)).read_bytes()


@pytest.fixture
async def listening(house_with: OpenHouse) -> AsyncIterator[House]:
    async with house_with(own={"own_transcriber": FakeTranscriber()}) as house:
        yield house


async def work_off(house: House) -> None:
    while await house.app.worker.run_once():
        pass


async def test_a_recording_is_queued_transcribed_and_its_original_kept(
    listening: House, whistle: bytes
) -> None:
    async with listening.client("owner") as owner:
        answer = await finish(
            owner,
            await send(listening, owner, whistle, "whistle.mp3", "audio/mpeg"),
            document=False,
        )
        kept = answer.json()
        assert (answer.status_code, kept["status"]) == (201, "transcribing")
        assert (await owner.get(f"/api/v1/jobs/{kept['job_id']}")).json()["kind"] == "transcribe"
        assert len(blobs(listening)) == 1
        await work_off(listening)
        item = (await owner.get(f"/api/v1/items/{kept['user_item_id']}")).json()
        assert (item["transcription_status"], item["title"]) == ("done", "whistle")
        assert [hit["item_id"] for hit in await search(owner, "pelican lagoon")] == [item["id"]]
        await listening.app.uploads.cleanup()
        assert [file.read_bytes() for file in blobs(listening)] == [whistle]


async def test_a_recording_with_too_few_minutes_left_is_refused_at_once(
    house_with: OpenHouse, tmp_path: Path, whistle: bytes
) -> None:
    long = record(tmp_path / "long.mp3", tone(70, 16_000), 16_000, "mono").read_bytes()
    async with (
        house_with(
            own={"own_transcriber": FakeTranscriber()}, transcription_minutes=1, tier="free"
        ) as house,
        house.client("owner") as owner,
    ):
        refused = await finish(
            owner, await send(house, owner, long, "long.mp3", "audio/mpeg"), document=False
        )
        assert refused.status_code == 402 and refused.json() | {"message": ""} == {
            "error": "quota_exceeded",
            "message": "",
            "resource": "transcription_minutes",
            "tier": "free",
            "cap_per_month": 1,
        }
        assert (await owner.get("/api/v1/items")).json()["total"] == 0
        short = await finish(
            owner, await send(house, owner, whistle, "whistle.mp3", "audio/mpeg"), document=False
        )
        assert short.json()["status"] == "transcribing"


async def test_a_recording_that_cannot_be_heard_is_refused_at_once(
    house: House, owner: httpx.AsyncClient, tmp_path: Path
) -> None:
    silent = picture_only(tmp_path / "silent.mp4").read_bytes()
    refused = await finish(
        owner, await send(house, owner, silent, "silent.mp4", "video/mp4"), document=False
    )
    assert refused.json() == {
        "error": "ingest_failed",
        "message": "The recording has no audio track.",
    }
    assert (await owner.get("/api/v1/items")).json()["total"] == 0


async def test_a_recording_that_is_there_already_is_not_written_down_again(
    listening: House, whistle: bytes
) -> None:
    async with listening.client("owner") as owner:
        first = (
            await finish(
                owner, await send(listening, owner, whistle, "a.mp3", "audio/mpeg"), document=False
            )
        ).json()
        waiting = (
            await finish(
                owner, await send(listening, owner, whistle, "b.mp3", "audio/mpeg"), document=False
            )
        ).json()
        assert (waiting["user_item_id"], waiting["status"]) == (
            first["user_item_id"],
            "transcribing",
        )
        assert waiting["job_id"] == first["job_id"]
        await work_off(listening)
        again = (
            await finish(
                owner, await send(listening, owner, whistle, "c.mp3", "audio/mpeg"), document=False
            )
        ).json()
        assert (again["user_item_id"], again["status"]) == (first["user_item_id"], "ready")


async def test_a_file_out_of_scope_is_not_told_of_and_one_in_scope_is_found(
    house: House, owner: httpx.AsyncClient
) -> None:
    hidden = (await finish(owner, await send(house, owner, NOTES))).json()
    async with house.client("one_folder") as client:
        mine = await finish(client, await send(house, client, NOTES))
        assert (mine.status_code, mine.json()["content_id"] != hidden["content_id"]) == (201, True)
        await client.delete(f"/api/v1/items/{mine.json()['user_item_id']}")
        await owner.post(
            f"/api/v1/items/{hidden['user_item_id']}/folders",
            json={"folder_ids": [house.folders["Red"]]},
        )
        found = await finish(client, await send(house, client, NOTES))
        assert (found.status_code, found.json()["user_item_id"]) == (200, hidden["user_item_id"])


async def test_the_owner_does_not_get_twice_what_a_scoped_token_added(
    house: House, owner: httpx.AsyncClient
) -> None:
    async with house.client("one_folder") as client:
        theirs = (await finish(client, await send(house, client, NOTES))).json()
    again = await finish(owner, await send(house, owner, NOTES))
    assert (again.status_code, again.json()["user_item_id"]) == (200, theirs["user_item_id"])


@pytest.mark.slow
async def test_real_speech_is_sent_written_down_and_found_with_its_second(
    house: House, owner: httpx.AsyncClient, tmp_path: Path
) -> None:
    """All of it real: a voice, the three steps of an upload, the transcriber that comes with the program, a search."""
    spoken = speech(
        tmp_path / "talk.wav",
        "Good morning. This is a short talk about rivers. "
        "The quick brown fox jumps over the lazy dog. Thank you for listening.",
    ).read_bytes()
    kept = await finish(
        owner, await send(house, owner, spoken, "talk.wav", "audio/wav"), document=False
    )
    assert (kept.status_code, kept.json()["status"]) == (201, "transcribing")
    await work_off(house)
    item = (await owner.get(f"/api/v1/items/{kept.json()['user_item_id']}")).json()
    assert (item["transcription_status"], item["transcription_error"]) == ("done", None)
    for query, mode in (
        ("quick brown fox", "keyword"),
        ("an animal leaping over another", "semantic"),
    ):
        hits = (await owner.post("/api/v1/search", json={"query": query, "mode": mode})).json()[
            "results"
        ]
        assert hits[0]["item_id"] == item["id"], mode
    assert "seconds" in item["sections"][0]["locator"]
    await house.app.uploads.cleanup()
    assert [file.read_bytes() for file in blobs(house)] == [spoken]


# -- what goes wrong


@pytest.mark.parametrize(
    ("kind", "document", "says"),
    [
        ("audio/mpeg", True, "POST /api/v1/uploads/finalize."),
        ("text/markdown", False, "POST /api/v1/uploads/finalize-document."),
    ],
)
async def test_the_wrong_end_names_the_right_one(
    house: House, owner: httpx.AsyncClient, whistle: bytes, kind: str, document: bool, says: str
) -> None:
    content, name = (whistle, "w.mp3") if kind == "audio/mpeg" else (NOTES, "n.md")
    answer = await finish(owner, await send(house, owner, content, name, kind), document=document)
    assert (answer.status_code, answer.json()["error"]) == (422, "invalid_request")
    assert says in answer.json()["message"]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 40, "application/pdf"),
        (NOTES, "image/png"),
        (b"%PDF-1.7\n", "text/plain"),
        (b"GIF89a" + b"\0" * 40, "image/png"),
    ],
)
async def test_a_file_that_is_not_what_was_announced_is_refused(
    house: House, owner: httpx.AsyncClient, content: bytes, kind: str
) -> None:
    answer = await finish(owner, await send(house, owner, content, "file", kind))
    assert answer.status_code == 422
    assert f"announced as {kind}, but its first bytes are those of" in answer.json()["message"]


async def test_a_file_of_no_known_kind_is_not_called_by_one(
    house: House, owner: httpx.AsyncClient
) -> None:
    answer = await finish(
        owner, await send(house, owner, b"MZ" + bytes(400), "setup.exe", "application/x-msdownload")
    )
    assert answer.json() == {
        "error": "invalid_request",
        "message": (
            "The file was announced as application/x-msdownload, but its first bytes are of an unknown type."
        ),
    }


async def test_the_bytes_must_be_there_and_as_many_as_promised(
    house: House, owner: httpx.AsyncClient
) -> None:
    upload = await announce(owner, NOTES)
    early = await finish(owner, upload["upload_id"])
    assert (early.status_code, early.json()["error"]) == (409, "conflict")
    for content in (NOTES + b"x", NOTES[:-1]):
        answer = await owner.put(upload["url"], content=content)
        assert answer.status_code == 422, answer.text
        asked = await owner.put(upload["url"], headers={"Content-Range": f"bytes */{len(NOTES)}"})
        assert asked.json()["received"] <= len(NOTES), "what was not promised is not kept"
    assert "not arrived completely" in (await finish(owner, upload["upload_id"])).json()["message"]


async def test_a_file_larger_than_the_server_takes_is_refused_at_once(
    house_with: OpenHouse,
) -> None:
    async with house_with(upload_max_mb=1) as house, house.client("owner") as owner:
        body = {"filename": "x.mp4", "content_type": "video/mp4", "size": 1_000_001}
        answer = await owner.post("/api/v1/uploads/signed-url", json=body)
        assert (answer.status_code, "up to 1 MB" in answer.json()["message"]) == (413, True)


async def test_a_cut_off_transfer_goes_on_where_it_was(
    house: House, owner: httpx.AsyncClient
) -> None:
    content = bytes(range(256)) * 12_000
    content = b"# Long\n\n" + content.hex().encode()
    upload = await announce(owner, content, "long.txt", "text/plain")

    await lose_connection(house, upload["url"], content[:2_000_000])
    size = len(content)
    asked = await owner.put(upload["url"], headers={"Content-Range": f"bytes */{size}"})
    assert asked.json()["received"] == 2_000_000
    wrong = await owner.put(
        upload["url"],
        content=content[10:],
        headers={"Content-Range": f"bytes 10-{size - 1}/{size}"},
    )
    assert (wrong.status_code, wrong.json()["received"]) == (409, 2_000_000)
    rest = await owner.put(
        upload["url"],
        content=content[2_000_000:],
        headers={"Content-Range": f"bytes 2000000-{size - 1}/{size}"},
    )
    assert (rest.status_code, rest.json()["received"]) == (200, size)
    [blob] = blobs(house)
    assert blob.read_bytes() == content


async def lose_connection(house: House, url: str, content: bytes) -> None:
    """Send this much, as a server sees it, and be gone."""
    messages = iter(
        [{"type": "http.request", "body": content, "more_body": True}, {"type": "http.disconnect"}]
    )

    async def receive() -> Any:
        return next(messages)

    async def send(message: Any) -> None:
        pass

    target = httpx.URL(url)
    await house.asgi(
        {
            "type": "http",
            "method": "PUT",
            "path": target.path,
            "raw_path": target.raw_path,
            "headers": [(b"host", b"127.0.0.1:8642")],
            "query_string": target.query,
            "scheme": "http",
            "root_path": "",
            "http_version": "1.1",
            "server": ("127.0.0.1", 8642),
            "client": None,
        },
        receive,
        send,
    )


@pytest.mark.parametrize(
    "header", ["bytes 0-5", "lines 0-5/6", "bytes 0-5/7", "bytes 6-5/6", "bytes 0-6/6"]
)
async def test_a_range_that_makes_no_sense_is_refused(
    house: House, owner: httpx.AsyncClient, header: str
) -> None:
    upload = await announce(owner, b"123456")
    answer = await owner.put(upload["url"], content=b"123456", headers={"Content-Range": header})
    assert (answer.status_code, answer.json()["error"]) == (422, "invalid_request")


async def test_only_the_signed_address_takes_bytes_and_only_for_its_time(
    house: House, owner: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = await announce(owner, NOTES)
    url = httpx.URL(upload["url"])
    for changed in (
        {"signature": "0" * 64},
        {"signature": "é"},
        {"expires": str(int(url.params["expires"]) + 1)},
        {"expires": ""},
    ):
        answer = await owner.put(url.copy_merge_params(changed), content=NOTES)
        assert (answer.status_code, answer.json()["error"]) == (401, "unauthorized"), changed
    other = await announce(owner, NOTES)
    assert (
        await owner.put(
            upload["url"].replace(upload["upload_id"], other["upload_id"]), content=NOTES
        )
    ).status_code == 401
    monkeypatch.setattr(
        "commonplace.core.items.upload_checks.now", lambda: now() + timedelta(hours=2)
    )
    answer = await owner.put(upload["url"], content=NOTES)
    assert (answer.status_code, "link has expired" in answer.json()["message"]) == (401, True)


async def test_an_upload_ends_with_its_time(
    house: House, owner: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = await send(house, owner, NOTES)
    monkeypatch.setattr("commonplace.core.items.uploads.now", lambda: now() + timedelta(hours=2))
    assert "has expired" in (await finish(owner, upload)).json()["message"]
    await house.app.uploads.cleanup()
    assert blobs(house) == []
    assert (await finish(owner, upload)).status_code == 404


async def test_nobody_else_can_finish_it_and_nothing_can_be_sent_afterwards(
    house: House, owner: httpx.AsyncClient
) -> None:
    announced = await announce(owner, NOTES)
    await owner.put(announced["url"], content=NOTES)
    for character in ("stranger", "two_folder", "kb_only"):
        async with house.client(character) as client:
            answer, missing = (
                await finish(client, announced["upload_id"]),
                await finish(client, "no-such-upload"),
            )
            assert (answer.status_code, answer.json()) == (404, missing.json())
    assert (await finish(owner, announced["upload_id"])).status_code == 201
    assert (await owner.put(announced["url"], content=NOTES)).status_code == 409


async def test_uploads_are_counted(house_with: OpenHouse) -> None:
    async with house_with(rate_deletes_per_hour=2) as house, house.client("owner") as owner:
        for _ in range(2):
            await announce(owner, NOTES)
        body = {"filename": "n.md", "content_type": "text/markdown", "size": 5}
        answer = await owner.post("/api/v1/uploads/signed-url", json=body)
        assert (answer.status_code, answer.json()["error"]) == (429, "rate_limited")


async def test_a_large_file_never_lies_in_memory(house: House) -> None:
    """What comes is written as it comes: no more than a buffer of it is held."""
    upload, path = await house.app.uploads.announce(
        house.owner, "film.mp4", "video/mp4", 64_000_000
    )
    url = httpx.URL(path)

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(64):
            yield b"\0" * 1_000_000

    tracemalloc.start()
    received = await house.app.uploads.receive(
        upload.id, url.params["expires"], url.params["signature"], Part(), chunks()
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert received == 64_000_000
    assert peak < 16_000_000


# -- when an object store takes the bytes


@pytest.mark.slow
async def test_an_object_store_takes_the_bytes_itself(
    house_with: OpenHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_s3(free_port()) as address:
        for name, value in {**CREDENTIALS, "AWS_ENDPOINT_URL": address}.items():
            monkeypatch.setenv(name, value)
        async with (
            house_with(blobs_url=f"s3://{BUCKET}/files") as house,
            house.client("owner") as owner,
            httpx.AsyncClient() as elsewhere,
        ):
            upload = await announce(owner, NOTES)
            assert upload["url"].startswith(address)
            (await elsewhere.put(upload["url"], content=NOTES + b"more")).raise_for_status()
            wrong = await finish(owner, upload["upload_id"])
            assert (wrong.status_code, wrong.json()["error"]) == (409, "conflict")
            (await elsewhere.put(upload["url"], content=NOTES)).raise_for_status()
            kept = await finish(owner, upload["upload_id"])
            assert (kept.status_code, kept.json()["status"]) == (201, "ready")
            assert [hit["item_id"] for hit in await search(owner, "heron weir")] == [
                kept.json()["user_item_id"]
            ]
            listed = (await elsewhere.get(f"{address}/{BUCKET}?list-type=2")).text
            assert listed.count("<Key>") == 1  # the original


async def test_a_full_disk_is_said_when_the_first_upload_is_announced(
    house: House, owner: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    body = {"filename": "a.txt", "content_type": "text/plain", "size": 5}
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        answer = await owner.post("/api/v1/uploads/signed-url", json=body)
    assert (answer.status_code, answer.json()["error"]) == (503, "storage_failed")
    assert "No space left" in answer.json()["message"]
    assert not list(house.app.settings.data_dir.glob("*upload.key*")), "nothing is left behind"
    assert (await owner.post("/api/v1/uploads/signed-url", json=body)).status_code < 300
