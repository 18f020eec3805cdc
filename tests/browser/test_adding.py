"""Files without scripts; and rows that tell how far things are without getting in the way of whoever works in the list."""

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from commonplace.model import Item, ItemFilter
from tests.browser.conftest import Site, served
from tests.fakes import FakeTranscriber
from tests.recordings import record, tone

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


async def test_files_are_sent_by_a_plain_form(site: Site, tmp_path: Path) -> None:
    folder = await site.app.folders.create(site.owner, "Papers")
    for name, text in (
        ("owls.md", "# On owls\n\nOwls turn their heads, for their eyes cannot move."),
        ("empty.txt", ""),
        ("mice.txt", "Mice hear owls only when it is too late for them."),
    ):
        (tmp_path / name).write_text(text)
    page = await site.signed_in(java_script_enabled=False)
    await page.get_by_label("Files", exact=True).set_input_files(tmp_path / "owls.md")
    await page.get_by_label("Add to folder").select_option("Papers")
    await page.get_by_role("button", name="Add", exact=True).click()
    await expect(page.get_by_role("heading", name="owls")).to_be_visible()
    await settled(site, 1)
    items, _ = await site.app.library.page(site.owner, ItemFilter(folder_id=folder.id))
    assert [item.title for item in items] == ["On owls"]
    await page.goto("/")
    await page.get_by_label("Files", exact=True).set_input_files(
        [tmp_path / "mice.txt", tmp_path / "empty.txt"]
    )
    site.expected.append("422")
    await page.get_by_role("button", name="Add", exact=True).click()
    await expect(page.get_by_text("empty.txt: The file is empty.")).to_be_visible()
    await settled(site, 2)
    await page.goto("/")
    await expect(page.locator(".row .title")).to_have_text(["mice", "On owls"])


async def settled(site: Site, count: int) -> list[Item]:
    """So many items, once each is ready or has failed."""
    async with asyncio.timeout(60):
        while True:
            items, total = await site.app.library.page(site.owner, ItemFilter(), limit=100)
            if total == count and all(item.state in ("ready", "failed") for item in items):
                return items
            await asyncio.sleep(0.05)


async def drop(page: Page, files: dict[str, str]) -> None:
    transfer = await page.evaluate_handle(
        """(files) => {
        const transfer = new DataTransfer();
        for (const [name, text] of Object.entries(files)) transfer.items.add(new File([text], name, { type: "text/plain" }));
        return transfer;
    }""",
        files,
    )
    await page.dispatch_event("body", "drop", {"dataTransfer": transfer})


async def test_files_whose_last_byte_has_arrived_are_kept_when_the_tab_is_closed(
    site: Site,
) -> None:
    """Whatever is still to be done for them then: the page never hears that they were stored."""
    page = await site.signed_in()
    await page.route(
        "**/add", lambda route: None
    )  # the page waits for an answer until it is closed
    arrived: list[str] = []
    page.on(
        "requestfinished",
        lambda request: arrived.append(request.url) if request.method == "PUT" else None,
    )
    await drop(
        page,
        {
            f"{n}.txt": f"File {n}: the heron stands by the weir at dawn and waits for eels."
            for n in range(13)
        }
        | {"broken.pdf": "%PDF-1.7 and then nothing"},
    )
    async with asyncio.timeout(30):
        while len(arrived) < 14:  # noqa: ASYNC110 (events of the page fill it)
            await asyncio.sleep(0.02)
    await page.context.close()
    items = await settled(site, 14)
    assert sorted(item.title for item in items) == sorted(["broken", *map(str, range(13))])
    assert {item.title for item in items if item.state == "failed"} == {"broken"}


async def test_rows_follow_what_becomes_of_many_files_and_offer_another_try(site: Site) -> None:
    page = await site.signed_in()
    await drop(
        page,
        {
            f"{n}.txt": f"File {n}: the heron stands by the weir at dawn and waits for eels."
            for n in range(8)
        }
        | {"broken.pdf": "%PDF-1.7 and then nothing"},
    )
    await expect(page.locator(".row")).to_have_count(9)
    await expect(page.locator(".row.open")).to_have_count(0, timeout=30_000)
    await expect(page.locator("#adding li")).to_have_count(0)
    failed = page.locator(".row", has_text="broken")
    await expect(failed.locator(".state")).to_contain_text("Failed:")
    await page.reload()
    await expect(failed.locator(".state")).to_contain_text("Failed:")
    await failed.get_by_role("button", name="Retry").click()
    await expect(page.get_by_text("Retrying.")).to_be_visible()
    await expect(page.locator("h1")).to_have_text("Library")
    await settled(site, 9)


async def test_a_row_that_changes_keeps_the_focus_the_choice_and_a_half_made_click(
    data_dir: Path, browser: Browser, tmp_path: Path
) -> None:
    recording = record(tmp_path / "owl.wav", tone(60, 8_000), 8_000, "mono")
    transcriber = FakeTranscriber(go_on=asyncio.Event())
    async with served(data_dir, browser, own={"own_transcriber": transcriber}) as site:
        await site.app.uploads.add_file(site.owner, recording)
        page = await site.signed_in()
        row = page.locator(".row", has_text="owl")
        await expect(row.locator("progress")).to_be_visible()
        await row.get_by_role("checkbox").check()
        await row.locator(".title").focus()
        await page.evaluate(
            "document.querySelector('.row').kept = document.querySelector('.row .title').kept = true"
        )
        await row.locator(".title").hover()
        await page.mouse.down()
        assert transcriber.go_on
        transcriber.go_on.set()
        await expect(page.locator(".row.open")).to_have_count(0)
        await expect(row).to_contain_text("words")
        assert await page.evaluate(
            "document.querySelector('.row').kept && document.querySelector('.row .title').kept"
        ), "the same elements"
        assert await page.evaluate("document.activeElement.className") == "title"
        await expect(row.get_by_role("checkbox")).to_be_checked()
        await page.mouse.up()
        await expect(page.get_by_role("heading", name="owl")).to_be_visible()
