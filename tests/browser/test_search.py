"""Search as you type, and what a hit leads to."""

import re

import pytest
from playwright.async_api import expect

from tests.browser.conftest import Site

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
LONG = "\n\n".join(f"## Part {n}\n\n" + f"Of the part numbered {n} there is little to tell, and that at length. " * 12 for n in range(8))


async def test_hits_come_while_one_types_and_open_at_their_passage(site: Site) -> None:
    await site.add("A long story", f"{LONG}\n\n## The end\n\nOnly here does the narwhal appear, with its horn and forty words of "
                                   "its own, so that this passage stands by itself at the very end of the whole story. " * 3)
    page = await site.signed_in()
    await page.keyboard.press("g")
    await page.keyboard.press("s")
    await page.get_by_label("Search for").press_sequentially("narwhal horn", delay=20)
    await expect(page.locator(".hits mark").first).to_have_text(re.compile("narwhal|horn"))
    await expect(page).to_have_url(re.compile(r"q=narwhal"))
    await page.locator(".hits .title").first.click()
    await expect(page.locator(".passage:target")).to_contain_text("narwhal")
    await expect(page.locator(".passage:target")).to_be_in_viewport()


async def test_modes_and_filters_narrow_the_hits(site: Site) -> None:
    folder = await site.app.library.create_folder(site.owner, "Sea")
    await site.add("Whales", "Whales sing under water, sometimes for hours.", folder=folder.id)
    await site.add("Singing", "People sing in choirs, sometimes for hours.")
    page = await site.signed_in()
    await page.goto("/search?q=sing")
    await expect(page.locator(".hits .row")).to_have_count(2)
    await page.get_by_label("Folder").select_option("Sea")
    await expect(page.locator(".hits .title")).to_have_text(["Whales"])
    await page.get_by_label("Type").select_option("task")
    await expect(page.get_by_text("Nothing found")).to_be_visible()
    await page.get_by_label("Type").select_option("")
    await page.get_by_label("Added").select_option("1")
    await page.get_by_label("Words").check()
    await expect(page.locator(".hits .title")).to_have_text(["Whales"])
    await expect(page).to_have_url(re.compile("mode=keyword.*since=1|since=1.*mode=keyword"))


async def test_search_works_without_scripts(site: Site) -> None:
    await site.add("Whales", "Whales sing under water, sometimes for hours.")
    page = await site.signed_in(java_script_enabled=False)
    await page.goto("/search")
    await page.get_by_label("Search for").fill("whales")
    await page.get_by_role("button", name="Search").click()
    await page.locator(".hits .title").click()
    await expect(page.get_by_role("heading", name="Whales")).to_be_visible()
