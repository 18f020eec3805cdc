"""Files without scripts; and rows that tell how far things are without getting in the way of whoever works in the list."""

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from commonplace.model import ItemFilter
from tests.browser.conftest import Site, served
from tests.fakes import FakeTranscriber
from tests.recordings import record, tone

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


async def test_files_are_sent_by_a_plain_form(site: Site, tmp_path: Path) -> None:
    folder = await site.app.library.create_folder(site.owner, "Papers")
    for name, text in (("owls.md", "# On owls\n\nOwls turn their heads, for their eyes cannot move."), ("empty.txt", ""),
                       ("mice.txt", "Mice hear owls only when it is too late for them.")):
        (tmp_path / name).write_text(text)
    page = await site.signed_in(java_script_enabled=False)
    await page.get_by_label("Files", exact=True).set_input_files(tmp_path / "owls.md")
    await page.get_by_label("Into the folder").select_option("Papers")
    await page.get_by_role("button", name="Add", exact=True).click()
    await expect(page.get_by_role("heading", name="On owls")).to_be_visible()
    items, _ = await site.app.library.page(site.owner, ItemFilter(folder_id=folder.id))
    assert [item.title for item in items] == ["On owls"]
    await page.goto("/")
    await page.get_by_label("Files", exact=True).set_input_files([tmp_path / "mice.txt", tmp_path / "empty.txt"])
    site.expected.append("422")
    await page.get_by_role("button", name="Add", exact=True).click()
    await expect(page.get_by_text("empty.txt: The file is empty.")).to_be_visible()
    await page.goto("/")
    await expect(page.locator(".row .title")).to_have_text(["mice", "On owls"])


async def test_a_row_that_changes_keeps_the_focus_the_choice_and_a_half_made_click(data_dir: Path, browser: Browser, tmp_path: Path) -> None:
    recording = record(tmp_path / "owl.wav", tone(60, 8_000), 8_000, "mono")
    transcriber = FakeTranscriber(go_on=asyncio.Event())
    async with served(data_dir, browser, own={"own_transcriber": transcriber}) as site:
        await site.app.uploads.add_file(site.owner, recording)
        page = await site.signed_in()
        row = page.locator(".row", has_text="owl")
        await expect(row.locator("progress")).to_be_visible()
        await row.get_by_role("checkbox").check()
        await row.locator(".title").focus()
        await page.evaluate("document.querySelector('.row').kept = document.querySelector('.row .title').kept = true")
        await row.locator(".title").hover()
        await page.mouse.down()
        assert transcriber.go_on
        transcriber.go_on.set()
        await expect(page.locator(".row.open")).to_have_count(0)
        await expect(row).to_contain_text("words")
        assert await page.evaluate("document.querySelector('.row').kept && document.querySelector('.row .title').kept"), "the same elements"
        assert await page.evaluate("document.activeElement.className") == "title"
        await expect(row.get_by_role("checkbox")).to_be_checked()
        await page.mouse.up()
        await expect(page.get_by_role("heading", name="owl")).to_be_visible()
