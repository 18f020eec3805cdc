"""The pages that texts were read from: kept, shown in a sandbox, read anew, deleted with the last text."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from commonplace.core.transfer.markdown_folder import export_folder, import_folder
from tests.interfaces.house import House, open_house
from tests.interfaces.test_redirects import ARTICLE, WORDS, add
from tests.interfaces.test_uploads import finish, send
from tests.interfaces.test_web_people import browser
from tests.webserver import WebServer, page, web_server

pytestmark = pytest.mark.anyio

SCRIPT = "<script>parent.postMessage(document.cookie)</script>"
RAW = ARTICLE.replace("</body>", f"{SCRIPT}</body>")


@pytest.fixture
def web() -> Iterator[WebServer]:
    with web_server() as server:
        server.pages |= {"/otters": page(RAW)}
        yield server


@pytest.fixture
async def house(
    either_engine: dict[str, str], data_dir: Path, web: WebServer
) -> AsyncIterator[House]:
    async with open_house(data_dir, fetch_allow_hosts=web.host, **either_engine) as opened:
        yield opened


async def saved(client: httpx.AsyncClient, item_id: str) -> httpx.Response:
    return await client.get(f"/api/v1/items/{item_id}/page")


def blobs(house: House) -> int:
    folder = house.app.settings.data_dir / "blobs" / "sources"
    return sum(1 for file in folder.rglob("*") if file.is_file()) if folder.exists() else 0


async def test_a_page_is_shown_as_it_was_and_can_do_nothing(house: House, web: WebServer) -> None:
    async with house.client("owner") as owner:
        item_id = (await add(owner, f"{web.url}/otters"))["user_item_id"]
        answer = await saved(owner, item_id)
    assert answer.text == RAW
    async with await browser(house, house.owner.person_id) as person:
        shown = await person.get(f"/items/{item_id}/page")
        assert "Saved page" in (await person.get(f"/items/{item_id}")).text
    assert shown.text == RAW
    for each in (answer, shown):
        policy = each.headers["content-security-policy"].split("; ")
        assert {"sandbox", "default-src 'none'", "frame-ancestors 'none'"} <= set(policy)
        assert not any(rule.startswith(("script-src", "connect-src")) for rule in policy)
        assert each.headers["x-content-type-options"] == "nosniff"


async def test_only_those_who_see_the_item_see_its_page(house: House, web: WebServer) -> None:
    async with house.client("owner") as owner:
        item_id = (await add(owner, f"{web.url}/otters"))["user_item_id"]
        await owner.post(
            f"/api/v1/items/{item_id}/folders", json={"folder_ids": [house.folders["Red"]]}
        )
    for character, status in {
        "reader": 200,
        "one_folder": 200,
        "kb_only": 200,
        "viewer": 200,
        "stranger": 404,
        "revoked": 401,
    }.items():
        async with house.client(character) as client:
            assert (await saved(client, item_id)).status_code == status, character
    async with house.client("owner") as owner:
        await owner.patch(f"/api/v1/items/{item_id}", json={"in_kb": False})
    async with house.client("kb_only") as client:
        assert (await saved(client, item_id)).status_code == 404


async def test_each_library_has_its_copy_and_the_last_text_takes_it_along(
    house: House, web: WebServer
) -> None:
    async with house.client("owner") as owner, house.client("stranger") as stranger:
        mine = (await add(owner, f"{web.url}/otters"))["user_item_id"]
        theirs = (await add(stranger, f"{web.url}/otters"))["user_item_id"]
        assert [each.path for each in web.requests].count("/otters") == 1 and blobs(house) == 2
        await owner.delete(f"/api/v1/items/{mine}")
        await house.app.uploads.cleanup()
        assert blobs(house) == 2, "it can be restored from the trash"
        await owner.post(f"/api/v1/trash/{mine}/restore")
        assert (await saved(owner, mine)).text == RAW
        await owner.delete(f"/api/v1/items/{mine}?permanent=true")
        await house.app.uploads.cleanup()
        assert blobs(house) == 1
        assert (await saved(stranger, theirs)).text == RAW


async def test_pages_count_in_quotas(house: House, web: WebServer) -> None:
    async with house.client("owner") as owner:
        used = (await house.app.store.figures.usage(house.owner.library_id))[0].size
        item_id = (await add(owner, f"{web.url}/otters"))["user_item_id"]
        text = (await owner.get(f"/api/v1/items/{item_id}")).json()["text"]
        [file] = (await house.app.store.source_files.keys()).values()
        added = (await house.app.store.figures.usage(house.owner.library_id))[0].size - used
        assert added == len(text.encode()) + file.size
        await owner.delete(f"/api/v1/items/{item_id}?permanent=true")
        await house.app.uploads.cleanup()
        assert (await house.app.store.figures.usage(house.owner.library_id))[0].size == used


async def test_nothing_is_kept_where_it_is_off(house_with, web: WebServer) -> None:  # type: ignore[no-untyped-def]
    async with (
        house_with(archive="off", fetch_allow_hosts=web.host) as house,
        house.client("owner") as owner,
    ):
        item_id = (await add(owner, f"{web.url}/otters"))["user_item_id"]
        assert (await saved(owner, item_id)).status_code == 404
        assert blobs(house) == 0


async def test_pages_are_read_anew_without_a_fetch(
    house: House, web: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house.client("owner") as owner, house.client("stranger") as stranger:
        for client in (owner, stranger):
            await add(client, f"{web.url}/otters")
        item_id = (await add(owner, f"{web.url}/otters"))["user_item_id"]
        done = await house.app.page_updates.reextract(lambda done, total: None)
        assert (done.pages, done.changed, done.failed) == (2, 0, ())
        extract = house.app.library._sources._extractor.extract

        async def better(*args, **more):  # type: ignore[no-untyped-def]
            from dataclasses import replace

            found = await extract(*args, **more)
            return replace(found, text=found.text.replace("crayfish", "**crayfish**"))

        monkeypatch.setattr(house.app.library._sources._extractor, "extract", better)
        asked = len(web.requests)
        done = await house.app.page_updates.reextract(lambda done, total: None)
        assert (done.pages, done.changed) == (2, 2)
        assert len(web.requests) == asked
        item = (await owner.get(f"/api/v1/items/{item_id}")).json()
        assert "**crayfish**" in item["text"] and item["title"] == "Otters"
        assert (await saved(owner, item_id)).text == RAW
        done = await house.app.page_updates.reextract(lambda done, total: None)
        assert done.changed == 0
        versions = (await owner.get(f"/api/v1/items/{item_id}/versions")).json()
        assert "**" not in str(versions) and len(versions["versions"]) == 1


async def test_an_edited_text_is_not_read_anew(house: House, web: WebServer) -> None:
    async with house.client("owner") as owner:
        item_id = (await add(owner, f"{web.url}/otters"))["user_item_id"]
        await owner.patch(f"/api/v1/items/{item_id}", json={"text": "My own words on otters."})
        done = await house.app.page_updates.reextract(lambda done, total: None)
        assert done.changed == 0
        assert (await owner.get(f"/api/v1/items/{item_id}")).json()["text"] == (
            "My own words on otters."
        )


async def test_a_backup_has_the_pages(house: House, web: WebServer, tmp_path: Path) -> None:
    async with house.client("owner") as owner:
        item_id = (await add(owner, f"{web.url}/otters"))["user_item_id"]
        store, files = house.app.store, house.app.originals.blobs
        await store.dump(tmp_path / "full.backup", blobs=files)
        await store.dump(tmp_path / "rows.backup")
        key = next(iter(await store.source_files.keys()))
        await files.delete(key)
        await store.load(tmp_path / "full.backup", replace=True, blobs=files)
        assert (await saved(owner, item_id)).text == RAW
        await files.delete(key)
        await store.load(tmp_path / "rows.backup", replace=True, blobs=files)
        assert (await saved(owner, item_id)).status_code == 404
        assert await store.source_files.keys() == {}


async def test_an_export_has_the_pages(house: House, web: WebServer, tmp_path: Path) -> None:
    app = house.app
    async with house.client("owner") as owner, house.client("stranger") as stranger:
        await add(owner, f"{web.url}/otters")
        await export_folder(
            app.library,
            app.versions,
            app.folders,
            house.owner,
            tmp_path / "out",
            lambda done, total: None,
            app.originals,
        )
        [kept] = (tmp_path / "out").rglob("page.html")
        assert kept.read_text() == RAW
        into = app.bulk_import, app.folders, house.stranger, tmp_path / "out"
        await import_folder(*into, lambda done, total: None, app.originals)
        [item] = (await stranger.get("/api/v1/items")).json()["items"]
        original = await app.originals.find(house.stranger, item["id"])
        assert original is not None
        async with app.originals.open(original) as file:
            assert file.read_text() == RAW


async def test_a_file_of_single_file_has_its_address(house: House, web: WebServer) -> None:
    comment = f"<!--\n Page saved with SingleFile \n url: {web.url}/club \n saved date: Mon -->"
    text = WORDS.replace("</p>", ' <a href="/den">den</a></p>', 1)
    html = f"<!DOCTYPE html> <html>{comment}<head><title>Club</title><link rel=canonical href=http://a.example/b></head><body><article>{text}</article></body></html>"
    async with house.client("owner") as owner:
        upload = await send(house, owner, html.encode(), "club.html", "text/html")
        item_id = (await finish(owner, upload)).json()["user_item_id"]
        item = (await owner.get(f"/api/v1/items/{item_id}")).json()
        assert (item["url"], item["title"]) == (f"{web.url}/club", "Club")
        assert f"[den]({web.url}/den)" in item["text"]
        again = await add(owner, f"{web.url}/club")
        assert again["user_item_id"] == item_id and not web.requests
    async with house.client("stranger") as stranger:
        answer = await stranger.post(
            "/api/v1/ingest", json={"kind": "url", "url": f"{web.url}/club"}
        )
        assert answer.json()["error"] == "ingest_failed"
