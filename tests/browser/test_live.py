"""Pages keep up with what agents and other tabs do, without being loaded again."""

import asyncio
import re
from pathlib import Path

import httpx
import pytest
from playwright.async_api import Browser, Page, expect

from commonplace.app import open_app
from commonplace.core.items.drafts import Draft
from commonplace.core.memory.reflection import Notes
from commonplace.core.people.tokens import NewToken
from tests.browser.conftest import Site, served
from tests.browser.test_graph import entity
from tests.fakes import FakeTranscriber
from tests.recordings import record, tone

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


async def agent(site: Site, **wish: object) -> httpx.AsyncClient:
    wanted = NewToken("agent", write=True, **wish)  # type: ignore[arg-type]
    _, secret = await site.app.people.create_token(site.owner, wanted)
    return httpx.AsyncClient(
        base_url=site.url, headers={"Authorization": f"Bearer {secret}"}, timeout=60
    )


async def remember(client: httpx.AsyncClient, title: str) -> None:
    body = {"kind": "text", "title": title, "text": f"{title}: the zebra grazes by the river."}
    answer = await client.post("/api/v1/ingest", json=body)
    assert answer.is_success, answer.text


async def tabs(site: Site, path: str, count: int = 2) -> list[Page]:
    first = await site.signed_in()
    pages = [first, *[await first.context.new_page() for _ in range(count - 1)]]
    for page in pages:
        await page.goto(path)
    return pages


async def test_what_an_agent_adds_is_offered_in_each_tab(site: Site) -> None:
    folder = await site.app.folders.create(site.owner, "Herons")
    await site.add("Here before")
    pages = await tabs(site, "/")
    async with await agent(site, folders=(folder.id,)) as client:
        await remember(client, "By an agent")
        for page in pages:
            await expect(page.get_by_role("button", name="1 new item")).to_be_visible()
            await expect(page.locator(".row .title")).to_have_text(["Here before"])
            await expect(page.locator("#total")).to_have_text("2 items")
            await expect(page.locator(".folders a small")).to_have_text("1")
        await remember(client, "Another")
    for page in pages:
        await page.get_by_role("button", name="2 new items").click()
        await expect(page.locator(".row .title")).to_have_text(
            ["Another", "By an agent", "Here before"]
        )
        await expect(page.locator(".row .title").first).to_be_focused()
        await expect(page.locator("[data-news]")).to_be_hidden()


async def test_ten_tabs_share_one_stream_and_stay_usable(site: Site) -> None:
    pages = await tabs(site, "/", 10)
    await site.add("For all of them")
    for page in pages:
        await expect(page.locator(".row .title")).to_have_text(["For all of them"])
    assert sum(site.app.events._streams.values()) == 1  # it is open, since they have heard of it
    await pages[0].close()
    await pages[1].goto("/search")
    await expect(pages[1].get_by_role("searchbox")).to_be_visible()


async def test_without_shared_workers_each_visible_tab_has_its_own_stream(site: Site) -> None:
    page = await site.signed_in()
    await page.add_init_script("delete window.SharedWorker")
    await page.goto("/")
    await site.add("It comes all the same")
    await expect(page.locator(".row .title")).to_have_text(["It comes all the same"])


async def test_a_task_that_is_moved_moves_in_the_other_tab(site: Site) -> None:
    project = await entity(site, "Ship it", "project")
    await entity(site, "Write the docs", "task", project=project.entity_id)
    one, other = await tabs(site, "/work")
    async with one.expect_response(re.compile("/move")):
        await one.locator(".task").drag_to(one.get_by_role("region", name="Doing"))
    moved = other.get_by_role("region", name="Doing")
    await expect(moved.locator(".task")).to_have_text(re.compile("Write the docs"))
    await expect(moved.locator("h2 small")).to_have_text("1")
    async with other.expect_response(re.compile("/move")):
        await other.locator(".task").drag_to(other.get_by_role("region", name="Review"))
    await expect(one.get_by_role("region", name="Review").locator(".task")).to_have_count(1)


async def test_the_trash_offers_what_is_deleted_elsewhere(site: Site) -> None:
    first, second = [await site.add(title) for title in ("First", "Second")]
    await site.app.library.delete(site.owner, first.id)
    [page] = await tabs(site, "/trash", 1)
    await site.app.library.delete(site.owner, second.id)
    await expect(page.get_by_role("button", name="1 new item")).to_be_visible()
    await expect(page.locator(".row .title")).to_have_text(["First"])
    await expect(page.locator("#total")).to_contain_text("2 items")
    await page.get_by_role("button", name="1 new item").click()
    await expect(page.locator(".row .title")).to_have_text(["Second", "First"])
    await site.app.trash.restore(site.owner, second.id)
    await expect(page.locator(".row .title")).to_have_text(["First"])


async def test_review_counts_and_offers_new_candidates(site: Site) -> None:
    elsewhere, review = await tabs(site, "/search")
    await review.goto("/review")
    notes = "We decided to use Postgres for the archive, because it is there already."
    await site.app.reflection.reflect(site.owner, Notes(notes, persist=True, review=True))
    await expect(elsewhere.locator("#waiting")).to_contain_text("1")
    await expect(review.locator(".candidate")).to_have_count(1)
    await review.get_by_text("Edit before saving").click()
    await review.get_by_label("Title").last.fill("Half a")
    again = "Always rotate the keys of the staging cluster every month."
    await site.app.reflection.reflect(site.owner, Notes(again, persist=True, review=True))
    await expect(review.get_by_role("button", name="1 new candidate")).to_be_visible()
    await expect(review.get_by_label("Title").last).to_have_value("Half a")
    found, _ = await site.app.reflection.candidates(site.owner)
    for each in found:
        await site.app.reflection.reject(site.owner, each.id)
    await expect(elsewhere.locator("#waiting")).to_have_text("")
    await expect(review.locator(".candidate")).to_have_count(0)


async def test_health_list_and_reader_follow_a_transcription(
    data_dir: Path, browser: Browser, tmp_path: Path
) -> None:
    recording = record(tmp_path / "owl.wav", tone(60, 8_000), 8_000, "mono")
    transcriber = FakeTranscriber(go_on=asyncio.Event())
    async with served(data_dir, browser, own={"own_transcriber": transcriber}) as site:
        health, reader = await tabs(site, "/health")
        added = await site.app.uploads.add_file(site.owner, recording)
        await expect(health.locator("#health")).to_contain_text("transcribe")
        await reader.goto(f"/items/{added.item.public_id}")
        await expect(reader.locator("#facts progress")).to_be_visible()
        await reader.reload()
        await expect(reader.locator("#facts progress")).to_be_visible()
        library = await reader.context.new_page()
        await library.goto("/")
        await expect(library.locator(".row progress")).to_be_visible()
        assert transcriber.go_on
        transcriber.go_on.set()
        await expect(health.get_by_text("No jobs in progress.")).to_be_visible()
        await expect(reader.locator("#text .passage")).not_to_have_count(0)
        await expect(reader.locator("#facts progress")).to_have_count(0)
        await expect(library.locator(".row progress")).to_have_count(0)


async def test_the_stream_goes_on_after_the_server_was_away(
    data_dir: Path, browser: Browser
) -> None:
    async with served(data_dir, browser) as site:
        site.expected.append("ERR_")
        pages = await tabs(site, "/")
        await site.add("Before")
        for page in pages:
            await expect(page.locator(".row .title")).to_have_text(["Before"])
        async with site.away():
            await site.add("Meanwhile")
        for page in pages:
            await expect(page.get_by_role("button", name="1 new item")).to_be_visible()
        await site.add("Afterwards")
        for page in pages:
            await page.get_by_role("button", name="2 new items").click()


async def test_who_views_as_a_token_hears_only_of_its_folders(site: Site) -> None:
    red, blue = [await site.app.folders.create(site.owner, name) for name in ("Red", "Blue")]
    await site.add("Already there", folder=red.id)
    token, _ = await site.app.people.create_token(site.owner, NewToken("reader", folders=(red.id,)))
    page = await site.signed_in()
    await page.goto("/tokens")
    await page.evaluate(
        """async ([token, csrf]) => fetch("/view-as", {method: "POST", body: new URLSearchParams({token, csrf})})""",
        [token.id, await page.evaluate("document.body.dataset.csrf")],
    )
    await page.goto("/")
    await expect(page.locator(".row .title")).to_have_text(["Already there"])
    await site.add("Hidden", folder=blue.id)
    await site.add("Seen", folder=red.id)
    await expect(page.get_by_role("button", name="1 new item")).to_be_visible()
    await page.get_by_role("button", name="1 new item").click()
    await expect(page.locator(".row .title")).to_have_text(["Seen", "Already there"])


async def test_a_tab_hears_of_what_another_replica_writes(
    data_dir: Path, browser: Browser, postgres_url: str, postgres_schema: str
) -> None:
    place = {"database_url": postgres_url, "database_schema": postgres_schema}
    async with served(data_dir, browser, **place) as site:
        page = await site.signed_in()
        wanted = site.app.settings
        async with open_app(wanted, workers=0) as replica:
            await replica.library.add(
                site.owner, Draft("text", "From afar", "The zebra grazes by the river.")
            )
        await expect(page.locator(".row .title")).to_have_text(["From afar"])
