"""The add box without scripts: files come in with the form."""

import json

import pytest

from tests.interfaces.house import House
from tests.interfaces.test_web_people import browser, csrf

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("name", "kept_as"),
    [
        ("plain.txt", "plain"),
        ("..", "."),
        ("記" * 190 + ".txt", "記" * 190),
        ("C:\\papers\\mine.txt", "mine"),
    ],
)
async def test_a_file_is_kept_whatever_it_is_called(house: House, name: str, kept_as: str) -> None:
    async with await browser(house, house.owner.person_id) as client:
        sent = await client.post(
            "/add",
            data={"csrf": await csrf(client)},
            files={"file": (name, b"A text that is long enough.")},
        )
        assert sent.status_code == 303, sent.text
        while await house.app.worker.run_once():
            pass
        [item] = await house.app.library.recent(house.owner)
        assert item.title == kept_as


async def test_an_export_is_imported_by_a_job_that_writes_a_report(house: House) -> None:
    notes = [
        {"title": title, "content": {"type": "text", "text": "Build a hide."}, "createdAt": at}
        for title, at in (("Idea", 1700000001), ("Idea", 1700000002), ("Plan", 1700000003))
    ] + [{"title": "Picture", "content": {"type": "asset"}}]
    export = json.dumps({"bookmarks": notes}).encode()
    async with await browser(house, house.owner.person_id) as client:

        async def send(**fields: str) -> str:
            sent = await client.post(
                "/import",
                data={"csrf": await csrf(client), **fields},
                files={"file": ("../my <export>.json", export)},
            )
            assert (sent.status_code, sent.headers["location"]) == (303, "/import"), sent.text
            assert "Waiting" in (await client.get("/import")).text
            while await house.app.worker.run_once():
                pass
            return (await client.get("/import")).text

        assert "3 notes" in await send(dry_run="1")
        assert await house.app.library.recent(house.owner) == []
        for outcome in ("3 added", "3 unchanged"):
            page = await send()
            assert outcome in page and "my &lt;export&gt;.json" in page
            assert "Picture: The export has neither" in page and "Idea is the same as" not in page
        assert len(await house.app.library.recent(house.owner)) == 3
        refused = await client.post(
            "/import", data={"csrf": await csrf(client)}, files={"file": ("a.bin", b"\0\1")}
        )
        assert refused.status_code == 303
        while await house.app.worker.run_once():
            pass
        assert "Not imported: Nothing to import was found" in (await client.get("/import")).text
    blobs = house.app.settings.data_dir / "blobs"
    assert len([file for file in blobs.rglob("*") if file.is_file()]) <= 1  # of the refused one
