"""Quotas of a library: past them nothing is stored, whoever adds, however many at once."""

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from commonplace.app import make_asgi, open_app
from commonplace.core.items import uploads
from commonplace.database import usage
from commonplace.model import Usage, now
from commonplace.settings import Settings
from tests.interfaces.command import Commands
from tests.interfaces.house import NO_LIMITS, House, call_tool, open_house
from tests.interfaces.test_web_people import browser, csrf
from tests.webserver import page, web_server

pytestmark = pytest.mark.anyio

Engine = dict[str, str]


@pytest.fixture
async def full(data_dir: Path, either_engine: Engine) -> AsyncIterator[House]:
    """A house whose library may hold two items, and does."""
    async with open_house(data_dir, quota_items=2, **either_engine) as house:
        for title in ("One", "Two"):
            await house.add(title)
        yield house


async def held(house: House) -> Usage:
    return (await house.app.store.figures.usage(house.owner.library_id))[0]


async def titles(client: httpx.AsyncClient) -> set[str]:
    return {item["title"] for item in (await client.get("/api/v1/items")).json()["items"]}


async def ingest(client: httpx.AsyncClient, title: str, text: str = "") -> httpx.Response:
    body = {"kind": "text", "title": title, "text": text or f"{title}: the zebra grazes."}
    return await client.post("/api/v1/ingest", json=body)


async def test_the_answer_past_a_quota_is_402_and_nothing_is_stored(full: House) -> None:
    told = {"resource": "items", "cap": 2, "used": 2}
    async with full.client("owner") as owner:
        before = await held(full)
        added = [
            await ingest(owner, "Three"),
            await owner.post("/api/entities", json={"title": "Four", "content": "Four okapis."}),
            await owner.post("/api/v1/memory/remember", json={"title": "Five", "content": "5."}),
        ]
        for answer in added:
            assert answer.status_code == 402
            body = answer.json()
            assert body["error"] == "quota_exceeded"
            assert "COMMONPLACE_QUOTA_ITEMS" in body.pop("message")
            assert body == {"error": "quota_exceeded", **told}
        for path in ("/mcp", "/mcp?errors=result"):
            error = (await call_tool(owner, "add", {"title": "Six", "content": "6."}, path))[
                "error"
            ]
            assert error["code"] == 402
            assert {"error": "quota_exceeded", **told}.items() <= error["data"].items()
        assert await titles(owner) == {"One", "Two"}
        assert await held(full) == before
        # What is there already is found, and can be changed.
        again = await ingest(owner, "One", "One: the zebra grazes by the river.")
        assert again.status_code == 200, again.text
        changed = await owner.patch(
            f"/api/v1/items/{again.json()['user_item_id']}", json={"title": "1"}
        )
        assert changed.status_code == 200
        # Quotas are each library's own.
        async with full.client("stranger") as stranger:
            assert (await ingest(stranger, "Theirs")).status_code == 201


async def test_the_trash_counts_until_it_is_emptied(full: House) -> None:
    async with full.client("owner") as owner:
        found = (await owner.get("/api/v1/items")).json()["items"]
        one = next(item["id"] for item in found if item["title"] == "One")
        before = await held(full)
        await owner.delete(f"/api/v1/items/{one}")
        assert await held(full) == before
        assert (await ingest(owner, "Three")).status_code == 402
        assert (await owner.post(f"/api/v1/trash/{one}/restore")).status_code == 200
        assert await held(full) == before
        await owner.delete(f"/api/v1/items/{one}")
        assert (await owner.delete("/api/v1/trash")).is_success
        assert (await ingest(owner, "Three")).status_code == 201
        assert (await held(full)).items == 2


async def test_servers_that_add_at_once_store_no_more_than_the_quota(
    data_dir: Path, either_engine: Engine
) -> None:
    settings: dict[str, Any] = {"quota_items": 7, "workers": 0, **either_engine}
    async with (
        open_house(data_dir, **settings) as house,
        open_app(
            Settings(data_dir=data_dir, embedder="static", **(NO_LIMITS | settings))
        ) as second,
    ):
        other = make_asgi(second)
        async with (
            other.api.router.lifespan_context(other.api),
            house.client("owner") as one,
            replace(house, app=second, asgi=other).client("owner") as two,
        ):
            answers = await asyncio.gather(
                *[ingest((one, two)[n % 2], f"Note {n}") for n in range(30)]
            )
            statuses = sorted(answer.status_code for answer in answers)
            assert statuses == [201] * 7 + [402] * 23
            assert (await held(house)).items == 7
            assert len(await titles(two)) == 7


async def test_what_servers_delete_and_restore_at_once_is_counted_once(
    data_dir: Path, either_engine: Engine
) -> None:
    settings = Settings(data_dir=data_dir, embedder="static", **NO_LIMITS, **either_engine)
    async with open_house(data_dir, **either_engine) as house, open_app(settings) as second:
        apps = [house.app, second]
        ids = [(await house.add(f"Note {n}"))[0] for n in range(24)]
        for item in ids[:16]:
            await house.app.library.delete(house.owner, item)
        await asyncio.gather(
            *(app.trash.delete(house.owner, item) for item in ids[:16] for app in apps),
            *(app.trash.restore(house.owner, item) for item in ids[:8] for app in apps),
            *(
                app.library.delete(house.owner, item, permanent=True)
                for item in ids[16:]
                for app in apps
            ),
            return_exceptions=True,
        )
        kept = await held(house)
        await house.app.store._db.write(usage.recount)
        assert kept == await held(house)


async def test_sections_and_megabytes_have_quotas_too(
    data_dir: Path, either_engine: Engine
) -> None:
    words = " ".join(f"zebra{n} grazes by the river." for n in range(800))
    async with (
        open_house(data_dir, quota_sections=3, **either_engine) as house,
        house.client("owner") as owner,
    ):
        refused = await ingest(owner, "Long", words)
        assert (refused.status_code, refused.json()["resource"]) == (402, "sections")
        assert await held(house) == Usage()
        item = (await ingest(owner, "Short")).json()["user_item_id"]
        assert (await owner.patch(f"/api/v1/items/{item}", json={"text": words})).status_code == 402
        text = (await owner.get(f"/api/v1/items/{item}")).json()["text"]
        assert text == "Short: the zebra grazes."


async def test_megabytes_are_of_texts_and_announced_files(
    data_dir: Path, either_engine: Engine
) -> None:
    async with open_house(data_dir, quota_mb=1, **either_engine) as house:
        async with house.client("owner") as owner:
            announced = {"filename": "a.md", "content_type": "text/markdown", "size": 1_000_001}
            refused = await owner.post("/api/v1/uploads/signed-url", json=announced)
            assert refused.status_code == 402
            assert refused.json() | {"message": ""} == {
                "error": "quota_exceeded",
                "message": "",
                "resource": "megabytes",
                "cap": 1,
                "used": 0,
            }
            for size, status in ((999_000, 201), (999_000, 402)):
                body = announced | {"size": size}
                answer = await owner.post("/api/v1/uploads/signed-url", json=body)
                assert answer.status_code == status
            assert (await ingest(owner, "Grün", "Ü" * 480)).status_code == 201
            assert (await held(house)).size == 999_000 + 960
            me = (await owner.get("/api/v1/me")).json()
            assert me["usage"]["megabytes"] == {"used": 1.0, "cap": 1}
            assert me["usage"]["items"] == {"used": 1, "cap": 0}
            assert (await ingest(owner, "More", "Ä" * 480)).status_code == 402
        async with house.client("one_folder") as limited:  # sees no sizes of the whole library
            assert (await limited.get("/api/v1/me")).json()["usage"] is None


async def test_counts_that_are_kept_equal_a_recount(
    data_dir: Path, either_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(7)
    async with open_house(data_dir, **either_engine) as house, house.client("owner") as owner:
        ids: list[str] = []
        trash: list[str] = []
        for step in range(60):
            text = " ".join(f"word{chance.randrange(9000)}" for _ in range(chance.choice((5, 900))))
            match chance.choice("aaaeeddrpuo"):
                case "a":
                    ids.append((await ingest(owner, f"Step {step}", text)).json()["user_item_id"])
                case "e" if ids:
                    await owner.patch(f"/api/v1/items/{chance.choice(ids)}", json={"text": text})
                case "d" if ids:
                    trash.append(ids.pop(chance.randrange(len(ids))))
                    await owner.delete(f"/api/v1/items/{trash[-1]}")
                case "r" if trash:
                    ids.append(trash.pop())
                    await owner.post(f"/api/v1/trash/{ids[-1]}/restore")
                case "p" if trash:
                    await owner.delete(f"/api/v1/trash/{trash.pop()}")
                case "o" if ids:
                    await owner.delete(f"/api/v1/items/{ids.pop()}?permanent=true")
                case "u":
                    content = text.encode()
                    body = {
                        "filename": "a.md",
                        "content_type": "text/markdown",
                        "size": len(content),
                    }
                    upload = (await owner.post("/api/v1/uploads/signed-url", json=body)).json()
                    await owner.put(upload["url"], content=content)
                    done = await owner.post(
                        "/api/v1/uploads/finalize-document",
                        json={"upload_id": upload["upload_id"]},
                    )
                    ids.append(done.json()["user_item_id"])
        monkeypatch.setattr(uploads, "now", lambda: now() + timedelta(days=9))
        await house.app.uploads.cleanup()
        kept = await held(house)
        await house.app.store._db.write(usage.recount)
        assert kept == await held(house)
        assert kept.items == len(ids) + len(trash) and kept.sections > len(ids) and kept.size > 0


async def test_a_feed_goes_on_when_there_is_room(
    data_dir: Path, either_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with web_server() as web:
        entries = "".join(
            f"<item><title>Issue {n}</title><link>{web.url}/{n}</link><guid>{n}</guid></item>"
            for n in range(1, 6)
        )
        feed = f'<rss version="2.0"><channel><title>News</title>{entries}</channel></rss>'
        web.pages["/feed"] = page(feed, "application/rss+xml")
        for n in range(1, 6):
            words = f"<p>{f'Issue {n} tells of otters in the river. ' * 30}</p>"
            web.pages[f"/{n}"] = page(
                f"<html><head><title>Issue {n}</title></head><body><article>{words}</article></body></html>"
            )
        async with (
            open_house(
                data_dir, quota_items=3, fetch_allow_hosts=web.host, **either_engine
            ) as house,
            house.client("owner") as owner,
        ):
            await owner.post("/api/v1/feeds", json={"url": f"{web.url}/feed", "newest": 9})
            await house.app.feeds.poll_next()
            [read] = await house.app.feeds.all(house.owner)
            assert "COMMONPLACE_QUOTA_ITEMS" in (read.error or "")
            first = await titles(owner)
            assert len(first) == 3
            for item in (await owner.get("/api/v1/items")).json()["items"]:
                await owner.delete(f"/api/v1/items/{item['id']}?permanent=true")
            for module in ("commonplace.store.feeds", "commonplace.core.items.feeds"):
                monkeypatch.setattr(f"{module}.now", lambda: now() + timedelta(hours=2))
            await house.app.feeds.poll_next()
            assert len(await titles(owner) | first) == 5
            [read] = await house.app.feeds.all(house.owner)
            assert read.error is None


def test_an_import_stops_between_notes_and_a_backup_is_restored_whole(
    data_dir: Path, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    for n in range(700):
        (notes / f"{n}.md").write_text(f"# Note {n}\n\nThe otter {n} swims in the river.\n")
    limited = Commands(data_dir, quota_items="300")
    told = limited.run("import", notes)
    assert told.exit_code == 1
    assert "COMMONPLACE_QUOTA_ITEMS" in told.stderr
    kept = len(limited.json("list", "--limit", "100"))
    assert kept <= 300
    assert "COMMONPLACE_QUOTA_ITEMS" in Commands(data_dir, quota_items="1").fails(
        "add", "-n", "A note."
    )
    everything = Commands(data_dir)
    everything.text("import", notes)
    everything.text("backup", tmp_path / "all.backup")
    small = Commands(tmp_path / "other", quota_items="5")
    small.text("restore", tmp_path / "all.backup", "--force")
    assert "700 items" in small.fails("add", "-n", "One more.")


async def test_the_web_app_says_so_and_health_shows_what_is_used(full: House) -> None:
    async with await browser(full, full.owner.person_id) as client:
        form = {"csrf": await csrf(client), "text": "A third note."}
        answer = await client.post("/add", data=form, follow_redirects=True)
        assert "holds 2 items of at most 2" in answer.text
        health = (await client.get("/health")).text
        assert "Items with trash</dt><dd>2 <small>of 2</small>" in health
        assert "Storage with trash" not in health
    assert (await held(full)).items == 2
